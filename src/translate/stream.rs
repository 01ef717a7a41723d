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
mod tests {
    use super::*;
    use crate::formats::Framing;
    use crate::model::TranslationState;

    fn options() -> ResponseOptions {
        ResponseOptions {
            model: "m".to_owned(),
            stream: true,
            framing: Framing::Sse,
            include_usage: false,
            request_id: "req_1".to_owned(),
            created_at: 1,
            translation_state: TranslationState::default(),
        }
    }

    #[test]
    fn what_a_stream_may_hold_is_limited() {
        let text = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
        let call = |at: u32, arguments: &str| {
            let function = format!(r#"{{"name":"f","arguments":"{arguments}"}}"#);
            let call = format!(r#"{{"index":{at},"id":"c{at}","function":{function}}}"#);
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n"
            )
        };
        let two_calls = |length| call(0, "1") + &call(1, &"2".repeat(length));
        let choice =
            |at: u32| format!("data: {{\"choices\":[{{\"index\":{at},\"delta\":{{}}}}]}}\n\n");
        let candidate = |at: u32| format!("data: {{\"candidates\":[{{\"index\":{at}}}]}}\n\n");
        let too_large = Some("is larger than 4000 bytes (`server.body_limit`)");
        let too_many = Some("the upstream's choice 128 is over the limit of 128 choices");
        for (from, bytes, fault) in [
            (Format::Chat, text.repeat(10), None),
            (Format::Chat, text.repeat(100), too_large),
            (Format::Chat, two_calls(1000), None),
            // The second call waits for the end of the first.
            (Format::Chat, two_calls(5000), too_large),
            (Format::Chat, choice(127), None),
            (Format::Chat, choice(128), too_many),
            (Format::Native, candidate(127), None),
            (Format::Native, candidate(128), too_many),
        ] {
            let mut translator = StreamTranslator::new(from, Format::Messages, &options());
            let mut observer = ResponseObserver::default();
            let chunk = bytes.as_bytes();
            let translated =
                translator.translate_chunk(chunk, false, 4000, &mut observer, &mut None);
            let message =
                translated.map_or_else(|api_error| api_error.message.clone(), |()| "".into());
            let is_expected = fault.map_or(message.is_empty(), |fault| message.contains(fault));
            let length = chunk.len();
            assert!(is_expected, "{from:?} {length}: {message}");
            assert_eq!(observer.is_unread, fault.is_some(), "{from:?} {length}");
        }
    }

    #[test]
    fn what_is_held_of_many_events_is_limited() {
        let long = "x".repeat(100);
        let chat = |delta: String| format!(r#"{{"choices":[{{"index":0,"delta":{{{delta}}}}}]}}"#);
        let call = |at: usize, arguments: &str| {
            let function = format!(r#"{{"name":"f","arguments":"{arguments}"}}"#);
            chat(format!(
                r#""tool_calls":[{{"index":{at},"id":"{long}{at}","function":{function}}}]"#
            ))
        };
        let text = |_| chat(format!(r#""content":"{long}""#));
        let native = |part: String| {
            format!(r#"{{"candidates":[{{"index":0,"content":{{"parts":[{part}]}}}}]}}"#)
        };
        type Events<'e> = &'e dyn Fn(usize) -> String;
        let waiting_calls: Events<'_> = &|at| call(at, if at == 0 { "1" } else { "" });
        let complete_calls: Events<'_> = &|at| call(at, "{}");
        let cited: Events<'_> = &|at| match at {
            0 => r#"{"type":"message_start","message":{"id":"m"}}"#.to_owned(),
            1 => r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#
                .to_owned(),
            _ => format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"citations_delta","citation":{{"type":"web_search_result_location","url":"http://{long}{at}"}}}}}}"#
            ),
        };
        let images: Events<'_> = &|at| {
            match at {
            0 => r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}"#.to_owned(),
            _ => format!(
                r#"{{"type":"response.output_item.done","output_index":{at},"item":{{"type":"image_generation_call","id":"i{at}","result":"{long}"}}}}"#
            ),
        }
        };
        let partial: Events<'_> = &|at| {
            let name = if at == 0 { r#""name":"f","# } else { "" };
            let argument = format!(r#"{{"jsonPath":"$.a","stringValue":"{long}"}}"#);
            native(format!(
                r#"{{"functionCall":{{{name}"partialArgs":[{argument}],"willContinue":true}}}}"#
            ))
        };
        let native_text: Events<'_> = &|_| native(format!(r#"{{"text":"{long}"}}"#));
        let arguments: Events<'_> = &|_| call(0, "1");
        let reasoning: Events<'_> = &|_| native(format!(r#"{{"text":"{long}","thought":true}}"#));
        let (limit, most) = (20_000, 400);
        for (from, to, events, is_limited) in [
            (Format::Chat, Format::Messages, waiting_calls, true),
            (Format::Chat, Format::Messages, complete_calls, true),
            (Format::Messages, Format::Chat, cited, true),
            (Format::Responses, Format::Chat, images, true),
            (Format::Native, Format::Chat, partial, true),
            (Format::Native, Format::Messages, native_text, true),
            (Format::Chat, Format::Responses, &text, true),
            (Format::Chat, Format::Native, &text, true),
            (Format::Native, Format::Chat, reasoning, true),
            (Format::Chat, Format::Messages, &text, false),
            (Format::Chat, Format::Messages, arguments, false),
            (
                Format::Messages,
                Format::Native,
                &|at| cited(at.min(1)),
                false,
            ),
        ] {
            let mut translator = StreamTranslator::new(from, to, &options());
            let mut observer = ResponseObserver::default();
            let failed = (0..most).find_map(|at| {
                let event = format!("data: {}\n\n", events(at));
                let event = event.as_bytes();
                let translated =
                    translator.translate_chunk(event, false, limit, &mut observer, &mut None);
                translated
                    .err()
                    .map(|api_error| (at, api_error.message.clone()))
            });
            let sample = events(2);
            match failed {
                Some((at, message)) => {
                    assert!(
                        message.contains("is larger than 20000 bytes"),
                        "{message}: {sample}"
                    );
                    assert!(is_limited && at > 10, "{from:?} -> {to:?}: {at}: {sample}");
                }
                None => assert!(!is_limited, "{from:?} -> {to:?}: {sample}"),
            }
        }
    }

    #[test]
    fn a_response_may_have_thousands_of_items() {
        let item = |at: usize| {
            let call = format!(
                r#"{{"type":"function_call","call_id":"c{at}","name":"f","arguments":"{{}}"}}"#
            );
            format!(
                "data: {{\"type\":\"response.output_item.done\",\"output_index\":{at},\"item\":{call}}}\n\n"
            )
        };
        let mut bytes: String = (0..5000).map(item).collect();
        bytes +=
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
        let sent = stream(
            Format::Responses,
            Format::Messages,
            bytes.as_bytes(),
            &options(),
        );
        let sent = String::from_utf8_lossy(&sent);
        assert_eq!(sent.matches("\"tool_use\",\"id\"").count(), 5000);
        assert!(sent.contains("message_stop"));
    }

    #[test]
    fn the_usage_of_an_error_event_is_counted() {
        let failed = r#"{"type":"response.failed","response":{"id":"resp_1","status":"failed",
            "error":{"code":"server_error","message":"Gone."},"usage":{"input_tokens":5,
            "output_tokens":2,"total_tokens":7}}}"#;
        let error =
            r#"{"error":{"message":"Gone."},"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
        for (from, data) in [(Format::Responses, failed), (Format::Chat, error)] {
            let data = data.replace('\n', "");
            let mut translator = StreamTranslator::new(from, Format::Messages, &options());
            let mut observer = ResponseObserver::default();
            let bytes = format!("data: {data}\n\n");
            let translated =
                translator.translate_chunk(bytes.as_bytes(), true, 9999, &mut observer, &mut None);
            assert!(translated.is_err());
            let usage = observer.usage.expect("usage");
            assert_eq!((usage.input, usage.output), (5, 2), "{data}");
        }
    }

    #[test]
    fn split_surrogate_pairs_and_empty_events_do_not_break_a_stream() {
        let chunk =
            |rest: &str| format!("data: {{\"choices\":[{{\"index\":0,{rest}}}]}}\n\ndata:\n\n");
        let bytes = [
            chunk(r#""delta":{"content":"\ud83d"}"#),
            chunk(r#""delta":{"content":"\ude00"}"#),
            chunk(r#""delta":{},"finish_reason":"stop""#),
        ];
        let bytes = bytes.concat();
        let sent = stream(Format::Chat, Format::Messages, bytes.as_bytes(), &options());
        let sent = String::from_utf8_lossy(&sent);
        assert!(
            sent.contains("😀") && sent.contains("message_stop"),
            "{sent}"
        );
    }
}
