//! Passes an SSE stream through to a client of the same format, and observes its events.
//!
//! Only complete events are sent: a client cannot use half an event, and this allows to replace
//! the model's name, to leave out usage that the client did not ask for, and to frame an event anew
//! for clients that do not read every framing.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::upstream_error::{
    chunk_too_large, decode_bare_error, incomplete_stream, undecoded_event,
};
use crate::formats::{Codec, PassthroughEndpoint, ResponseObserver, to_json_string};
use crate::model::ApiError;
use crate::sse::{SseFrame, SseFrames};

/// An SSE stream that passes through.
pub(super) struct SsePassthrough {
    codec: &'static dyn Codec,
    /// The endpoint whose events these are, where they are not those of the format.
    endpoint: Option<PassthroughEndpoint>,
    frames: SseFrames,
    /// The model id of the client, and the same as JSON.
    model: String,
    name: Vec<u8>,
    hide_usage: bool,
    /// The last frame was dropped and ended in a carriage return: a line feed after it is dropped
    /// as well.
    drop_line_feed: bool,
}

impl SsePassthrough {
    pub(super) fn new(codec: &'static dyn Codec, model: &str, hide_usage: bool) -> SsePassthrough {
        SsePassthrough {
            codec,
            endpoint: None,
            frames: SseFrames::default(),
            model: model.to_owned(),
            name: to_json_string(model),
            hide_usage,
            drop_line_feed: false,
        }
    }

    /// The same for the events of an endpoint beside those of the format.
    pub(super) fn of_endpoint(mut self, endpoint: Option<PassthroughEndpoint>) -> SsePassthrough {
        self.endpoint = endpoint;
        self
    }

    /// The number of bytes of an event that is not complete yet.
    pub(super) fn buffered(&self) -> usize {
        self.frames.buffered()
    }

    /// Returns the model id of the client.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Passes a chunk through.
    pub(super) fn push(
        &mut self,
        mut chunk: Bytes,
        end: bool,
        limit: usize,
        observer: &mut ResponseObserver,
        out: &mut Option<Bytes>,
    ) -> Result<(), ApiError> {
        let mut passthrough = PassthroughChunk {
            codec: self.codec,
            endpoint: self.endpoint,
            name: &self.name,
            hide_usage: self.hide_usage,
            drop_line_feed: &mut self.drop_line_feed,
            observer,
            chunk: &chunk,
            untouched: (self.frames.buffered() == 0).then_some(0),
            copied: BytesMut::new(),
            api_error: None,
        };
        self.frames
            .push(&chunk, |frame| passthrough.process_frame(&frame));
        if end {
            passthrough.finish(&mut self.frames);
        }
        let (untouched, copied, api_error) = (
            passthrough.untouched,
            passthrough.copied,
            passthrough.api_error,
        );
        let bytes = match untouched {
            Some(count) => {
                chunk.truncate(count);
                chunk
            }
            None => copied.freeze(),
        };
        *out = (!bytes.is_empty()).then_some(bytes);
        match api_error {
            Some(api_error) => Err(api_error),
            None if self.frames.buffered() > limit => Err(chunk_too_large(limit, observer)),
            None if end && !observer.ended => Err(incomplete_stream()),
            None => Ok(()),
        }
    }
}

/// One chunk on its way through. As long as nothing changes, the output is a slice of it.
struct PassthroughChunk<'a> {
    codec: &'static dyn Codec,
    endpoint: Option<PassthroughEndpoint>,
    name: &'a [u8],
    hide_usage: bool,
    drop_line_feed: &'a mut bool,
    observer: &'a mut ResponseObserver,
    chunk: &'a [u8],
    /// How many leading bytes of the chunk are sent unchanged; `None`: the output is a copy.
    untouched: Option<usize>,
    copied: BytesMut,
    api_error: Option<ApiError>,
}

impl PassthroughChunk<'_> {
    fn process_frame(&mut self, frame: &SseFrame<'_>) {
        if self.api_error.is_some() {
            return;
        }
        if std::mem::take(self.drop_line_feed) && frame.raw == b"\n" {
            return self.start_copying();
        }
        let Some(data) = frame.data.as_ref().filter(|data| !data.is_empty()) else {
            self.api_error = decode_bare_error(self.codec, frame.raw);
            return match self.api_error {
                Some(_) => {}
                // A blank line alone may end the line before it.
                None if self.codec.allows_any_framing() || frame.raw.trim_ascii().is_empty() => {
                    self.send(frame.raw);
                }
                None => self.drop_frame(frame),
            };
        };
        let observed = match self.endpoint {
            Some(endpoint) => endpoint.observe_event(data, self.observer),
            None => self.codec.observe_event(data, self.observer),
        };
        let observation = match observed {
            Ok(observation) => observation,
            Err(api_error) => {
                let api_error = undecoded_event(self.codec, data, api_error, self.observer);
                return self.api_error = Some(api_error);
            }
        };
        let model = observation.model.clone();
        self.observer
            .observe_raw_model(model.map(|range| &data.as_bytes()[range]));
        if observation.is_foreign || (observation.usage_only && self.hide_usage) {
            return self.drop_frame(frame);
        }
        if !self.codec.allows_any_framing() && !frame.is_plain() {
            return self.send_plain(frame, data, observation.model);
        }
        match (observation.model, frame.data_at) {
            (Some(range), Some(at)) if data.as_bytes()[range.clone()] != *self.name => {
                self.start_copying();
                self.copied
                    .extend_from_slice(&frame.raw[..at + range.start]);
                self.copied.extend_from_slice(self.name);
                self.copied.extend_from_slice(&frame.raw[at + range.end..]);
            }
            _ => self.send(frame.raw),
        }
    }

    /// Handles an event at the end of the stream without a blank line after it. It is sent where it
    /// completes the stream; elsewhere the error that follows would become a part of it.
    fn finish(&mut self, frames: &mut SseFrames) {
        if self.api_error.is_some() {
            return;
        }
        self.start_copying();
        let (complete, ended) = (self.copied.len(), self.observer.ended);
        // Such an event may be the half of one.
        let is_unread = self.observer.is_unread;
        frames.finish(|frame| self.process_frame(&frame));
        self.observer.is_unread = is_unread;
        if !self.observer.ended {
            self.copied.truncate(complete);
        }
        if ended {
            // The stream was complete already.
            self.api_error = None;
        }
        if self.api_error.as_ref().is_none_or(|error| !error.is_sent) {
            self.observer.note_end();
        }
    }

    fn send(&mut self, raw: &[u8]) {
        match &mut self.untouched {
            Some(count) => *count += raw.len(),
            None => self.copied.extend_from_slice(raw),
        }
    }

    /// Sends an event in the framing that every client reads.
    fn send_plain(&mut self, frame: &SseFrame<'_>, data: &str, model: Option<Range<usize>>) {
        self.drop_frame(frame);
        self.copied.extend_from_slice(b"data: ");
        let start = self.copied.len();
        let data = data.as_bytes();
        match model {
            Some(range) => {
                self.copied.extend_from_slice(&data[..range.start]);
                self.copied.extend_from_slice(self.name);
                self.copied.extend_from_slice(&data[range.end..]);
            }
            None => self.copied.extend_from_slice(data),
        }
        // In JSON, a line feed stands only where a space may.
        for byte in &mut self.copied[start..] {
            if *byte == b'\n' {
                *byte = b' ';
            }
        }
        self.copied.extend_from_slice(b"\n\n");
    }

    fn drop_frame(&mut self, frame: &SseFrame<'_>) {
        *self.drop_line_feed = frame.raw.ends_with(b"\r");
        self.start_copying();
    }

    fn start_copying(&mut self) {
        if let Some(count) = self.untouched.take() {
            self.copied.reserve(self.chunk.len() + self.name.len());
            self.copied.extend_from_slice(&self.chunk[..count]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Format;

    fn passed_through(format: Format, chunks: &[&[u8]]) -> Vec<u8> {
        let mut stream = SsePassthrough::new(format.codec(), "m", true);
        let (mut observer, mut passed) = (ResponseObserver::default(), Vec::new());
        for (number, bytes) in chunks.iter().enumerate() {
            let (chunk, end) = (Bytes::copy_from_slice(bytes), number + 1 == chunks.len());
            let mut out = None;
            let pushed = stream.push(chunk, end, usize::MAX, &mut observer, &mut out);
            pushed.expect("a stream");
            passed.extend_from_slice(&out.unwrap_or_default());
        }
        passed
    }

    #[test]
    fn events_of_another_format_are_dropped() {
        let content = r#"data: {"candidates":[{"finishReason":"STOP"}]}"#;
        let body = format!("{content}\n\ndata: [DONE]\n\n");
        let mut stream = SsePassthrough::new(Format::Native.codec(), "m", false);
        let (mut observer, mut out) = (ResponseObserver::default(), None);
        let pushed = stream.push(body.into(), true, usize::MAX, &mut observer, &mut out);
        pushed.expect("a whole stream");
        assert_eq!(out.expect("an event"), format!("{content}\n\n"));
    }

    #[test]
    fn a_dropped_event_is_dropped_with_its_end_however_it_is_chunked() {
        let content = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":1}}"#;
        for end in ["\n\n", "\r\n\r\n", "\r\r", "\r\r\n", "\n\r\n"] {
            let stream = format!("{content}{end}{usage}{end}data: [DONE]\n\n");
            let kept = format!("{content}{end}data: [DONE]\n\n");
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            for chunks in [&[stream.as_bytes()][..], &bytes] {
                let passed = String::from_utf8(passed_through(Format::Chat, chunks)).expect("text");
                assert_eq!(passed, kept, "{end:?}");
            }
        }
    }

    /// The official SDKs of the native format read nothing but `data: `, a payload and a blank line.
    #[test]
    fn a_native_stream_is_framed_as_its_clients_read_it() {
        let first = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"modelVersion":"m"}"#;
        let last = r#"{"candidates":[{"finishReason":"STOP"}]}"#;
        let plain = format!("data: {first}\n\ndata: {last}\n\n");
        for other in [
            format!("data:{first}\n\ndata:{last}\n\n"),
            format!(": ping\n\ndata: {first}\n\n: ping\ndata: {last}\n\n"),
            format!("event: message\ndata: {first}\n\nid: 7\ndata: {last}\nretry: 1\n\n"),
            format!("\u{feff}data: {first}\n\ndata: {last}"),
            format!("data:{first}\r\n\r\ndata:{last}\r\n\r\n"),
        ] {
            let bytes: Vec<&[u8]> = other.as_bytes().chunks(1).collect();
            for chunks in [&[other.as_bytes()][..], &bytes] {
                let passed = passed_through(Format::Native, chunks);
                assert_eq!(String::from_utf8_lossy(&passed), plain, "{other:?}");
            }
        }
        let lines = plain.replace(r#""modelVersion""#, "\ndata: \"modelVersion\"");
        let passed = passed_through(Format::Native, &[lines.as_bytes()]);
        let one_line = plain.replace(r#""modelVersion""#, r#" "modelVersion""#);
        assert_eq!(String::from_utf8_lossy(&passed), one_line);
        // What the clients read stays as it came.
        for end in ["\n\n", "\r\n\r\n", "\r\r"] {
            let stream = plain.replace("\n\n", end);
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            for chunks in [&[stream.as_bytes()][..], &bytes] {
                let passed = passed_through(Format::Native, chunks);
                assert_eq!(String::from_utf8_lossy(&passed), stream);
            }
        }
    }
}
