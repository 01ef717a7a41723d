//! Handles a body that is no response of the kind that was asked for, such as JSON in place of a stream: nearly always an
//! error with the wrong status. What it reports may have to be paid for all the same.

use bytes::Bytes;

use super::body_buffer::BodyBuffer;
use super::request_summary::RequestSummary;
use super::upstream_error::{decode_bare_error, is_failure, unexpected_content_type};
use crate::formats::{Codec, Operation, PassthroughEndpoint, ResponseObserver};
use crate::json::{RawJson, decode_json};
use crate::model::{ApiError, Format, Usage};
use crate::sse::{SseFrame, SseFrames};

/// A body that is no response of the kind that was asked for.
pub(super) struct UnexpectedBody {
    codec: &'static dyn Codec,
    endpoint: Option<PassthroughEndpoint>,
    /// Its content type.
    mime: String,
    /// A stream was asked for.
    stream: bool,
    buffer: BodyBuffer,
}

/// The longest body that is read.
const MAX_BYTES: usize = 1 << 20;

/// What a body tells of its cost.
#[derive(Debug, Default, PartialEq, Eq)]
struct ReportedCost {
    usage: Option<Usage>,
    /// Something was generated, and how much of it cannot be read.
    is_unread: bool,
}

impl UnexpectedBody {
    pub(super) fn new(upstream: Format, summary: &RequestSummary, mime: &str) -> UnexpectedBody {
        UnexpectedBody {
            codec: upstream.codec(),
            endpoint: match summary.operation {
                Operation::Passthrough(endpoint) => Some(endpoint),
                _ => None,
            },
            mime: mime.to_owned(),
            stream: summary.stream,
            buffer: BodyBuffer::default(),
        }
    }

    /// Buffers a chunk. `Err`: the error of the whole body.
    pub(super) fn push(
        &mut self,
        bytes: Bytes,
        end: bool,
        observer: &mut ResponseObserver,
    ) -> Result<(), ApiError> {
        self.buffer.push(bytes);
        if !end && self.buffer.len() <= MAX_BYTES {
            return Ok(());
        }
        let body = self.buffer.take();
        let error = decode_bare_error(self.codec, &body);
        let cost = self.reported_cost(&body);
        observer.usage = cost.usage;
        observer.is_unread = !end || (cost.is_unread && error.is_none());
        Err(error.unwrap_or_else(|| unexpected_content_type(&self.mime, self.stream)))
    }

    /// Reads what the body is by its first byte: its content type is wrong, or that of something else.
    fn reported_cost(&self, body: &[u8]) -> ReportedCost {
        let usage = match body.trim_ascii_start().first() {
            Some(b'{') => self.usage_of(body),
            // A stream of the native format is one, unless server-sent events are asked for.
            Some(b'[') => {
                let text = str::from_utf8(body).unwrap_or_default();
                let items: Vec<RawJson<'_>> = decode_json(text).unwrap_or_default();
                let mut items = items.iter().rev();
                items.find_map(|item| self.usage_of(item.get().as_bytes()))
            }
            None | Some(b'<') => None,
            Some(_) => return self.cost_of_events(body),
        };
        ReportedCost {
            usage,
            is_unread: usage.is_none() && !is_failure(self.codec, body),
        }
    }

    fn usage_of(&self, body: &[u8]) -> Option<Usage> {
        match self.endpoint {
            Some(endpoint) => endpoint.reported_usage(body),
            None => self.codec.reported_usage(body),
        }
    }

    /// Reads server-sent events. Text without any cannot be read, and may be content as they are.
    fn cost_of_events(&self, body: &[u8]) -> ReportedCost {
        let mut seen = ResponseObserver::default();
        let mut observe = |frame: SseFrame<'_>| {
            let data = frame.data.as_deref().unwrap_or_default();
            // One that cannot be read tells nothing.
            let _ = match self.endpoint {
                _ if data.is_empty() => return,
                Some(endpoint) => endpoint.observe_event(data, &mut seen),
                None => self.codec.observe_event(data, &mut seen),
            };
        };
        let mut frames = SseFrames::default();
        frames.push(body, &mut observe);
        frames.finish(&mut observe);
        let usage = seen.usage.filter(|usage| !usage.is_blank());
        let may_be_content = seen.has_content || seen.api_error.is_none();
        ReportedCost {
            usage,
            is_unread: usage.is_none() && may_be_content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_of(format: Format, stream: bool) -> UnexpectedBody {
        let request = format!(r#"{{"model":"m","stream":{stream}}}"#);
        let path_model = (format == Format::Native).then_some("m");
        let (codec, operation) = (format.codec(), Operation::Generate);
        let summary = RequestSummary::new(codec, operation, path_model, request.as_bytes());
        UnexpectedBody::new(format, &summary.expect("a request"), "application/json")
    }

    fn decoded(chunks: &[&'static str]) -> ApiError {
        let mut body = body_of(Format::Native, true);
        let mut observer = ResponseObserver::default();
        for chunk in chunks {
            let chunk = Bytes::from_static(chunk.as_bytes());
            let pushed = body.push(chunk, false, &mut observer);
            pushed.expect("no error before the end");
        }
        let pushed = body.push(Bytes::new(), true, &mut observer);
        pushed.expect_err("no stream")
    }

    #[test]
    fn an_error_in_place_of_a_stream_is_decoded() {
        let error = r#"{"code":429,"message":"Busy.","status":"RESOURCE_EXHAUSTED"}}"#;
        for start in [r#"{"error":"#, r#"[{"error":"#] {
            let end = if start.starts_with('[') { "]" } else { "" };
            let api_error = decoded(&[start, error, end]);
            assert_eq!((api_error.status, &*api_error.message), (429, "Busy."));
        }
        let api_error = decoded(&[r#"{"candidates":[]}"#]);
        assert_eq!(api_error.status, 502);
        assert!(api_error.message.contains("application/json"));
    }

    #[test]
    fn what_a_body_reports_is_found_whatever_it_is() {
        let usage = r#""usage":{"prompt_tokens":3,"completion_tokens":5}"#;
        let chunk = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
        let native = r#"{"candidates":[]},{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":5}}"#;
        for (format, body, output, is_unread) in [
            (Format::Chat, format!("{{{usage}}}"), Some(5), false),
            (Format::Chat, format!("[{{}},{{{usage}}}]"), Some(5), false),
            (Format::Native, format!("[{native}]"), Some(5), false),
            (
                Format::Chat,
                format!("data: {chunk}\n\ndata: {{\"choices\":[],{usage}}}\n\ndata: [DONE]\n\n"),
                Some(5),
                false,
            ),
            (Format::Chat, format!("data: {chunk}\n\n"), None, true),
            (
                Format::Chat,
                "data: {\"error\":{\"message\":\"No.\"}}\n\n".to_owned(),
                None,
                false,
            ),
            (Format::Chat, "Some text.".to_owned(), None, true),
            (Format::Chat, "{\"a\":NaN}".to_owned(), None, true),
            (Format::Chat, "{}".to_owned(), None, true),
            (Format::Chat, r#"{"choices":7}"#.to_owned(), None, true),
            (Format::Chat, "data: {\"a\":NaN}\n\n".to_owned(), None, true),
            (Format::Chat, " ".to_owned(), None, true),
            (Format::Chat, "<html></html>".to_owned(), None, false),
            (
                Format::Chat,
                r#"{"object":"error","message":"No."}"#.to_owned(),
                None,
                false,
            ),
            (
                Format::Chat,
                r#"{"error":{"message":"No."}}"#.to_owned(),
                None,
                false,
            ),
        ] {
            let mut observer = ResponseObserver::default();
            let pushed = body_of(format, false).push(body.clone().into(), true, &mut observer);
            assert!(pushed.is_err());
            let found = observer.usage.map(|usage| usage.output);
            assert_eq!((found, observer.is_unread), (output, is_unread), "{body}");
        }
    }
}
