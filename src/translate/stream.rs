//! Translates streams event by event, without I/O.

use bytes::Bytes;

use super::restore_names::NameRestorer;
use super::signatures::SignatureRecorder;
use super::surrogate_pairs::SurrogatePairs;
use super::upstream_error::{chunk_too_large, decode_bare_error, undecoded_event};
use super::usage;
use crate::formats::{Codec, ResponseObserver, ResponseOptions, StreamDecoder, StreamEncoder};
use crate::model::{ApiError, Block, Event, Format, Losses, SignedParts};
use crate::sse::{SseFrame, SseFrames, SseWriter};

/// Translates a whole stream at once; a broken one ends with the error of the client's format.
pub fn stream(from: Format, to: Format, bytes: &[u8], options: &ResponseOptions) -> Vec<u8> {
    stream_with_losses(from, to, bytes, options).0
}

/// The same, with what the client's format cannot express of it.
pub(super) fn stream_with_losses(
    from: Format,
    to: Format,
    bytes: &[u8],
    options: &ResponseOptions,
) -> (Vec<u8>, Losses) {
    let mut translator = StreamTranslator::new(from, to, options);
    let mut observer = ResponseObserver::default();
    let mut out = None;
    let translated = translator.translate_chunk(bytes, true, usize::MAX, &mut observer, &mut out);
    let mut whole = out.unwrap_or_default().to_vec();
    if let Err(api_error) = translated {
        whole.extend_from_slice(&translator.encode_stream_error(&api_error));
    }
    (whole, translator.take_losses())
}

/// Translates one stream for a client of another format.
pub(super) struct StreamTranslator {
    frames: SseFrames,
    surrogate_pairs: SurrogatePairs,
    codec: &'static dyn Codec,
    decoder: Box<dyn StreamDecoder>,
    names: NameRestorer,
    /// The open block holds reasoning.
    in_reasoning: bool,
    /// For clients that may not send back signatures.
    signatures: Option<SignatureRecorder>,
    encoder: Box<dyn StreamEncoder>,
    out: SseWriter,
}

impl StreamTranslator {
    pub(super) fn new(from: Format, to: Format, options: &ResponseOptions) -> StreamTranslator {
        StreamTranslator {
            frames: SseFrames::default(),
            surrogate_pairs: SurrogatePairs::default(),
            codec: from.codec(),
            decoder: from.codec().stream_decoder(),
            names: NameRestorer::new(options),
            in_reasoning: false,
            signatures: (!to.codec().clients_return_signatures()).then(SignatureRecorder::default),
            encoder: to.codec().stream_encoder(options),
            out: SseWriter::default(),
        }
    }

    pub(super) fn buffered(&self) -> usize {
        let sides = self.decoder.held() + self.encoder.held();
        self.frames.buffered() + sides + self.names.buffered_bytes()
    }

    /// Translates one chunk of the upstream's stream.
    pub(super) fn translate_chunk(
        &mut self,
        chunk: &[u8],
        end: bool,
        limit: usize,
        observer: &mut ResponseObserver,
        out: &mut Option<Bytes>,
    ) -> Result<(), ApiError> {
        let mut translation = ChunkTranslation {
            surrogate_pairs: &mut self.surrogate_pairs,
            codec: self.codec,
            decoder: &mut *self.decoder,
            names: &mut self.names,
            in_reasoning: &mut self.in_reasoning,
            signatures: self.signatures.as_mut(),
            encoder: &mut *self.encoder,
            out: &mut self.out,
            observer,
            limit,
            api_error: None,
        };
        self.frames
            .push(chunk, |frame| translation.translate_frame(&frame));
        if end {
            // An event without a blank line after it may be the half of one.
            let is_unread = translation.observer.is_unread;
            self.frames
                .finish(|frame| translation.translate_frame(&frame));
            translation.observer.is_unread = is_unread;
            translation.finish();
        }
        let api_error = translation.api_error;
        let bytes = self.out.take();
        *out = (!bytes.is_empty()).then_some(bytes);
        match api_error {
            Some(api_error) => Err(api_error),
            None if self.buffered() > limit => Err(chunk_too_large(limit, observer)),
            None => Ok(()),
        }
    }

    /// Takes the signed parts of a response that is complete.
    pub(super) fn take_signatures(&mut self) -> Option<SignedParts> {
        self.signatures.as_mut().and_then(SignatureRecorder::take)
    }

    pub(super) fn take_losses(&mut self) -> Losses {
        self.decoder.take_losses()
    }

    /// Encodes the error that ends a stream which cannot go on.
    pub(super) fn encode_stream_error(&mut self, api_error: &ApiError) -> Bytes {
        self.encoder.encode_error(api_error, &mut self.out);
        self.out.take()
    }
}

/// One chunk on its way from decoder to encoder.
struct ChunkTranslation<'a> {
    surrogate_pairs: &'a mut SurrogatePairs,
    codec: &'static dyn Codec,
    decoder: &'a mut dyn StreamDecoder,
    names: &'a mut NameRestorer,
    in_reasoning: &'a mut bool,
    signatures: Option<&'a mut SignatureRecorder>,
    encoder: &'a mut dyn StreamEncoder,
    out: &'a mut SseWriter,
    observer: &'a mut ResponseObserver,
    /// No chunk may become longer than this: it may have been compressed.
    limit: usize,
    api_error: Option<ApiError>,
}

impl ChunkTranslation<'_> {
    fn translate_frame(&mut self, frame: &SseFrame<'_>) {
        if self.api_error.is_none() && self.out.length() > self.limit {
            self.api_error = Some(chunk_too_large(self.limit, self.observer));
        }
        if self.api_error.is_some() {
            return;
        }
        // An event without a payload only keeps the connection alive.
        match frame.data.as_deref().filter(|data| !data.is_empty()) {
            Some(data) => self.translate_event(data),
            None => self.api_error = decode_bare_error(self.codec, frame.raw),
        }
    }

    fn translate_event(&mut self, data: &str) {
        let data = self.surrogate_pairs.join(data);
        self.decode(|decoder, out| decoder.decode_event(&data, out));
        if let Some(api_error) = self.api_error.take() {
            let api_error = undecoded_event(self.codec, &data, api_error, self.observer);
            self.api_error = Some(api_error);
            self.record_usage_of_error(&data);
        }
        if let Some(report) = self.decoder.take_usage_report() {
            self.observer.record_usage(report);
        }
    }

    /// Records the usage that an error event may report.
    fn record_usage_of_error(&mut self, data: &str) {
        let mut seen = ResponseObserver::default();
        seen.adopt_usage(self.observer);
        // That the event is an error is known already.
        if self.codec.observe_event(data, &mut seen).is_ok() {
            self.observer.adopt_usage(&seen);
        }
    }

    fn finish(&mut self) {
        self.decode(|decoder, out| decoder.finish(out));
        if self.api_error.as_ref().is_some_and(|error| !error.is_sent) {
            self.observer.note_end();
        }
    }

    /// Runs the decoder and encodes its events; nothing follows an error.
    fn decode(
        &mut self,
        decode: impl FnOnce(&mut dyn StreamDecoder, &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError>,
    ) {
        if self.api_error.is_some() {
            return;
        }
        let (encoder, out, observer) = (&mut *self.encoder, &mut *self.out, &mut *self.observer);
        let (names, signatures) = (&mut *self.names, &mut self.signatures);
        let in_reasoning = &mut *self.in_reasoning;
        let decoded = decode(self.decoder, &mut |event| {
            observe(observer, in_reasoning, &event);
            names.restore_event(event, &mut |event| {
                if let Some(signatures) = signatures {
                    signatures.record_event(&event);
                }
                encoder.encode_event(event, out);
            });
        });
        self.api_error = decoded.err();
    }
}

/// Observes an event of the upstream's stream.
fn observe(observer: &mut ResponseObserver, in_reasoning: &mut bool, event: &Event<'_>) {
    match event {
        Event::Delta { delta, .. } => {
            observer.has_content = true;
            usage::add_delta(&mut observer.uncounted, *in_reasoning, delta);
        }
        Event::Close { .. } => observer.has_content = true,
        Event::Finish { choice, reason } => {
            (observer.has_content, observer.finished) = (true, true);
            observer.complete_choice(*choice);
            observer.observe_finish(reason);
        }
        // It is recorded as the decoder has read it.
        Event::Usage(_) => {}
        Event::End => (observer.ended, observer.closed) = (true, true),
        Event::Start { model, .. } => {
            observer.started = true;
            observer.observe_model(model);
        }
        // A block that was only opened has no content yet.
        Event::Open { block, .. } => {
            *in_reasoning = matches!(block, Block::Reasoning);
            usage::add_block(&mut observer.uncounted, block);
            if let Block::Media(media) = block {
                observer.images += u64::from(media.mime.starts_with("image/"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
