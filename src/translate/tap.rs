//! A stream in the client's own format: its bytes pass, its events are read on the way.
//!
//! Only complete events go out, which costs a client nothing (it cannot use half an event) and
//! lets the model's name be put right and the usage nobody asked for be left out.

use bytes::{Bytes, BytesMut};

use super::reply::{bare_error, cut_short, too_long};
use crate::formats::{Codec, ResponseObserver, to_json_string};
use crate::model::ApiError;
use crate::sse::{SseFrame, SseFrames};

pub(super) struct Tap {
    codec: &'static dyn Codec,
    frames: SseFrames,
    /// The client's id for the model, and the same as JSON.
    model: String,
    name: Vec<u8>,
    hide_usage: bool,
    /// The last frame was left out and ended in a carriage return: so is a line feed after it.
    left_out: bool,
}

impl Tap {
    pub(super) fn new(codec: &'static dyn Codec, model: &str, hide_usage: bool) -> Tap {
        Tap {
            codec,
            frames: SseFrames::default(),
            model: model.to_owned(),
            name: to_json_string(model),
            hide_usage,
            left_out: false,
        }
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn push(
        &mut self,
        mut chunk: Bytes,
        end: bool,
        limit: usize,
        observer: &mut ResponseObserver,
        out: &mut Option<Bytes>,
    ) -> Result<(), ApiError> {
        let mut passing = Passing {
            codec: self.codec,
            name: &self.name,
            hide_usage: self.hide_usage,
            left_out: &mut self.left_out,
            observer,
            chunk: &chunk,
            untouched: (self.frames.buffered() == 0).then_some(0),
            copied: BytesMut::new(),
            api_error: None,
        };
        self.frames.push(&chunk, |frame| passing.frame(&frame));
        if end {
            passing.rest(&mut self.frames);
        }
        let (untouched, copied, api_error) = (passing.untouched, passing.copied, passing.api_error);
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
            None if self.frames.buffered() > limit => Err(too_long(limit)),
            None if end && !observer.ended => Err(cut_short()),
            None => Ok(()),
        }
    }
}

/// One chunk on its way through. As long as nothing had to change, it is a slice of itself.
struct Passing<'a> {
    codec: &'static dyn Codec,
    name: &'a [u8],
    hide_usage: bool,
    left_out: &'a mut bool,
    observer: &'a mut ResponseObserver,
    chunk: &'a [u8],
    /// How many leading bytes of the chunk go out as they are; `None`: output is being copied.
    untouched: Option<usize>,
    copied: BytesMut,
    api_error: Option<ApiError>,
}

impl Passing<'_> {
    fn frame(&mut self, frame: &SseFrame<'_>) {
        if self.api_error.is_some() {
            return;
        }
        if std::mem::take(self.left_out) && frame.raw == b"\n" {
            return self.copy_what_was_untouched();
        }
        let Some(data) = frame.data.as_ref().filter(|data| !data.is_empty()) else {
            self.api_error = bare_error(self.codec, frame.raw);
            return match self.api_error {
                Some(_) => {}
                // A blank line alone may be the second half of the one before it.
                None if self.codec.allows_comments() || frame.raw.trim_ascii().is_empty() => {
                    self.pass(frame.raw);
                }
                None => self.leave_out(frame),
            };
        };
        let observation = match self.codec.observe_event(data, self.observer) {
            Ok(observation) => observation,
            Err(api_error) => return self.api_error = Some(api_error),
        };
        if observation.is_foreign || (observation.usage_only && self.hide_usage) {
            return self.leave_out(frame);
        }
        match (observation.model, frame.data_at) {
            (Some(range), Some(at)) if data.as_bytes()[range.clone()] != *self.name => {
                self.copy_what_was_untouched();
                self.copied
                    .extend_from_slice(&frame.raw[..at + range.start]);
                self.copied.extend_from_slice(self.name);
                self.copied.extend_from_slice(&frame.raw[at + range.end..]);
            }
            _ => self.pass(frame.raw),
        }
    }

    /// An event without the blank line after it, which readers drop. It goes out where it is part
    /// of a proper end; elsewhere the error that follows would become a part of it.
    fn rest(&mut self, frames: &mut SseFrames) {
        if self.api_error.is_some() {
            return;
        }
        self.copy_what_was_untouched();
        let (complete, ended) = (self.copied.len(), self.observer.ended);
        frames.finish(|frame| self.frame(&frame));
        if !self.observer.ended {
            self.copied.truncate(complete);
        }
        if ended {
            // Nothing was lost that counts.
            self.api_error = None;
        }
    }

    fn pass(&mut self, raw: &[u8]) {
        match &mut self.untouched {
            Some(count) => *count += raw.len(),
            None => self.copied.extend_from_slice(raw),
        }
    }

    fn leave_out(&mut self, frame: &SseFrame<'_>) {
        *self.left_out = frame.raw.ends_with(b"\r");
        self.copy_what_was_untouched();
    }

    fn copy_what_was_untouched(&mut self) {
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

    fn passed(pieces: &[&[u8]]) -> Vec<u8> {
        let mut tap = Tap::new(Format::Chat.codec(), "m", true);
        let (mut observer, mut passed) = (ResponseObserver::default(), Vec::new());
        for (number, piece) in pieces.iter().enumerate() {
            let (chunk, end) = (Bytes::copy_from_slice(piece), number + 1 == pieces.len());
            let mut out = None;
            let pushed = tap.push(chunk, end, usize::MAX, &mut observer, &mut out);
            pushed.expect("a stream");
            passed.extend_from_slice(&out.unwrap_or_default());
        }
        passed
    }

    #[test]
    fn words_of_another_format_do_not_reach_the_client() {
        let said = r#"data: {"candidates":[{"finishReason":"STOP"}]}"#;
        let stream = format!("{said}\n\ndata: [DONE]\n\n");
        let mut tap = Tap::new(Format::Native.codec(), "m", false);
        let (mut observer, mut out) = (ResponseObserver::default(), None);
        let pushed = tap.push(stream.into(), true, usize::MAX, &mut observer, &mut out);
        pushed.expect("a whole stream");
        assert_eq!(out.expect("an event"), format!("{said}\n\n"));
    }

    #[test]
    fn the_end_of_what_is_left_out_goes_with_it_however_it_is_cut() {
        let said = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":1}}"#;
        for end in ["\n\n", "\r\n\r\n", "\r\r", "\r\r\n", "\n\r\n"] {
            let stream = format!("{said}{end}{usage}{end}data: [DONE]\n\n");
            let kept = format!("{said}{end}data: [DONE]\n\n");
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            for pieces in [&[stream.as_bytes()][..], &bytes] {
                let passed = String::from_utf8(passed(pieces)).expect("text");
                assert_eq!(passed, kept, "{end:?}");
            }
        }
    }
}
