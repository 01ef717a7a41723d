//! A stream of another format: events in, events out, piece by piece and without I/O.

use bytes::Bytes;

use super::halves::Halves;
use super::meter;
use super::proofs::Noting;
use super::reply::{bare_error, too_long};
use super::undo::Undo;
use crate::formats::{Codec, ResponseObserver, ResponseOptions, StreamDecoder, StreamEncoder};
use crate::model::{ApiError, Block, Event, Format, Losses, SignedParts};
use crate::sse::{SseFrame, SseFrames, SseWriter};

pub(super) struct Relay {
    frames: SseFrames,
    halves: Halves,
    codec: &'static dyn Codec,
    decoder: Box<dyn StreamDecoder>,
    undo: Undo,
    /// The block that is open holds thoughts.
    thinks: bool,
    /// Where the client may not send back what it is given.
    noting: Option<Noting>,
    encoder: Box<dyn StreamEncoder>,
    out: SseWriter,
}

impl Relay {
    pub(super) fn new(from: Format, to: Format, asked: &ResponseOptions) -> Relay {
        Relay {
            frames: SseFrames::default(),
            halves: Halves::default(),
            codec: from.codec(),
            decoder: from.codec().stream_decoder(),
            undo: Undo::new(asked),
            thinks: false,
            noting: (!to.codec().clients_return_signatures()).then(Noting::default),
            encoder: to.codec().stream_encoder(asked),
            out: SseWriter::default(),
        }
    }

    pub(super) fn push(
        &mut self,
        chunk: &[u8],
        end: bool,
        limit: usize,
        observer: &mut ResponseObserver,
        out: &mut Option<Bytes>,
    ) -> Result<(), ApiError> {
        let mut step = Step {
            halves: &mut self.halves,
            codec: self.codec,
            decoder: &mut *self.decoder,
            undo: &mut self.undo,
            thinks: &mut self.thinks,
            noting: self.noting.as_mut(),
            encoder: &mut *self.encoder,
            out: &mut self.out,
            observer,
            api_error: None,
        };
        self.frames.push(chunk, |frame| step.frame(&frame));
        if end {
            self.frames.finish(|frame| step.frame(&frame));
            step.close();
        }
        let api_error = step.api_error;
        let bytes = self.out.take();
        *out = (!bytes.is_empty()).then_some(bytes);
        match api_error {
            Some(api_error) => Err(api_error),
            None if self.frames.buffered() + self.undo.held() > limit => Err(too_long(limit)),
            None => Ok(()),
        }
    }

    /// The proofs of a reply that has come to its end.
    pub(super) fn take_signatures(&mut self) -> Option<SignedParts> {
        self.noting.as_mut().and_then(Noting::take)
    }

    pub(super) fn take_losses(&mut self) -> Losses {
        self.decoder.take_losses()
    }

    /// What the client is told when the stream cannot go on.
    pub(super) fn cut(&mut self, api_error: &ApiError) -> Bytes {
        self.encoder.encode_error(api_error, &mut self.out);
        self.out.take()
    }
}

/// One chunk on its way from decoder to encoder.
struct Step<'a> {
    halves: &'a mut Halves,
    codec: &'static dyn Codec,
    decoder: &'a mut dyn StreamDecoder,
    undo: &'a mut Undo,
    thinks: &'a mut bool,
    noting: Option<&'a mut Noting>,
    encoder: &'a mut dyn StreamEncoder,
    out: &'a mut SseWriter,
    observer: &'a mut ResponseObserver,
    api_error: Option<ApiError>,
}

impl Step<'_> {
    fn frame(&mut self, frame: &SseFrame<'_>) {
        if self.api_error.is_some() {
            return;
        }
        // An event without a payload keeps a connection alive and says nothing.
        match frame.data.as_deref().filter(|data| !data.is_empty()) {
            Some(data) => self.event(data),
            None => self.api_error = bare_error(self.codec, frame.raw),
        }
    }

    fn event(&mut self, data: &str) {
        let data = self.halves.join(data);
        self.run(|decoder, out| decoder.decode_event(&data, out));
        if self.api_error.is_some() {
            self.meter(&data);
        }
        // Told again and again in some formats; what was known already measures nothing new.
        let told = self.decoder.usage_so_far();
        if let Some(usage) = told.filter(|_| told != self.observer.usage) {
            self.observer.record_usage(usage);
        }
    }

    /// A failure may tell what it has cost.
    fn meter(&mut self, data: &str) {
        let mut seen = ResponseObserver::default();
        seen.usage = self.observer.usage;
        // The event has been found wanting already.
        if let (Ok(_), Some(usage)) = (self.codec.observe_event(data, &mut seen), seen.usage) {
            self.observer.record_usage(usage);
        }
    }

    fn close(&mut self) {
        self.run(|decoder, out| decoder.finish(out));
    }

    /// After an error nothing may follow.
    fn run(
        &mut self,
        decode: impl FnOnce(&mut dyn StreamDecoder, &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError>,
    ) {
        if self.api_error.is_some() {
            return;
        }
        let (encoder, out, observer) = (&mut *self.encoder, &mut *self.out, &mut *self.observer);
        let (undo, noting) = (&mut *self.undo, &mut self.noting);
        let thinks = &mut *self.thinks;
        let decoded = decode(self.decoder, &mut |event| {
            note(observer, thinks, &event);
            undo.event(event, &mut |event| {
                if let Some(noting) = noting {
                    noting.event(&event);
                }
                encoder.encode_event(event, out);
            });
        });
        self.api_error = decoded.err();
    }
}

fn note(observer: &mut ResponseObserver, thinks: &mut bool, event: &Event<'_>) {
    match event {
        Event::Delta { delta, .. } => {
            observer.has_content = true;
            meter::hear(&mut observer.uncounted, *thinks, delta);
        }
        Event::Close { .. } | Event::Finish { .. } => observer.has_content = true,
        Event::Usage(usage) => observer.record_usage(*usage),
        Event::End => (observer.ended, observer.closed) = (true, true),
        Event::Start { .. } => observer.started = true,
        // What is only opened holds nothing yet.
        Event::Open { block, .. } => {
            *thinks = matches!(block, Block::Reasoning);
            if let Block::Media(media) = block {
                observer.images += u64::from(media.mime.starts_with("image/"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Framing;
    use crate::model::TranslationState;

    #[test]
    fn what_a_failure_has_cost_is_counted() {
        let asked = ResponseOptions {
            model: "m".to_owned(),
            stream: true,
            framing: Framing::Sse,
            include_usage: false,
            request_id: "req_1".to_owned(),
            created_at: 1,
            translation_state: TranslationState::default(),
        };
        let failed = r#"{"type":"response.failed","response":{"id":"resp_1","status":"failed",
            "error":{"code":"server_error","message":"Gone."},"usage":{"input_tokens":5,
            "output_tokens":2,"total_tokens":7}}}"#;
        let error =
            r#"{"error":{"message":"Gone."},"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
        for (from, data) in [(Format::Responses, failed), (Format::Chat, error)] {
            let data = data.replace('\n', "");
            let mut relay = Relay::new(from, Format::Messages, &asked);
            let mut observer = ResponseObserver::default();
            let bytes = format!("data: {data}\n\n");
            let relayed = relay.push(bytes.as_bytes(), true, 9999, &mut observer, &mut None);
            assert!(relayed.is_err());
            let usage = observer.usage.expect("usage");
            assert_eq!((usage.input, usage.output), (5, 2), "{data}");
        }
    }
}
