//! What is being done to the reply of this request: the one thing the body filter talks to.

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::RequestSummary;
use super::array::ArrayTap;
use super::instead::Instead;
use super::meter::{self, MeasuredUsage};
use super::relay::Relay;
use super::tap::Tap;
use super::whole::Whole;
use crate::formats::{
    Codec, ConversationCodec, Framing, InterruptedStream, Operation, ResponseObserver,
    ResponseOptions,
};
use crate::json::ChunkedBytes;
use crate::model::{ApiError, Format, Losses, SignedParts};
use crate::sse::{SseFrames, SseWriter};

/// How much of a reply must be there before any of it may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMode {
    /// All of it: one JSON document with a length.
    Json,
    /// The first piece that holds content.
    Stream,
}

pub struct ResponseTranslator {
    way: Way,
    client: Format,
    /// The client wants its stream as a JSON array.
    array: bool,
    observer: ResponseObserver,
    limit: usize,
    codec: Option<&'static dyn ConversationCodec>,
    kept: Option<Bytes>,
}

enum Way {
    Whole(Whole),
    Events(Tap),
    Array(ArrayTap),
    Relay(Relay),
    /// No stream, though one was wanted.
    Instead(Instead),
}

impl ResponseTranslator {
    /// From a successful header; wrong content types are found here, before anything is read,
    /// but for those that may hold an error.
    pub fn new(
        client: Format,
        upstream: Format,
        wanted: &RequestSummary,
        asked: ResponseOptions,
        content_type: &str,
        limit: usize,
    ) -> Result<ResponseTranslator, ApiError> {
        let mime = content_type.split(';').next().unwrap_or("").trim();
        let is = |expected: &str| mime.eq_ignore_ascii_case(expected);
        let array = wanted.operation == Operation::Stream(Framing::Array);
        let thread = asked.translation_state.conversation.as_ref();
        let keeps =
            thread.is_some_and(|thread| thread.store) && wanted.operation != Operation::CountTokens;
        let way = if !wanted.stream && (is("application/json") || mime.is_empty()) {
            Way::Whole(Whole::new(client, upstream, wanted, asked))
        } else if wanted.stream && client != upstream && is("text/event-stream") {
            Way::Relay(Relay::new(upstream, client, &asked))
        } else if wanted.stream && array && client == upstream && is("application/json") {
            Way::Array(ArrayTap::new(client.codec()))
        } else if wanted.stream && !array && is("text/event-stream") {
            Way::Events(Tap::new(
                client.codec(),
                &wanted.model,
                wanted.hides_usage(),
            ))
        } else if wanted.stream && is("application/json") {
            Way::Instead(Instead::new(upstream.codec(), mime))
        } else {
            return Err(unexpected(mime, wanted.stream));
        };
        Ok(ResponseTranslator {
            codec: client.codec().conversation_codec().filter(|_| keeps),
            kept: None,
            way,
            client,
            array,
            observer: ResponseObserver::default(),
            limit,
        })
    }

    /// What the upstream says the length is.
    pub fn expect_length(&mut self, length: usize) {
        if let Way::Whole(whole) = &mut self.way {
            whole.expect(length.min(self.limit));
        }
    }

    pub fn mode(&self) -> ResponseMode {
        match self.way {
            Way::Whole(_) | Way::Instead(_) => ResponseMode::Json,
            Way::Events(_) | Way::Array(_) | Way::Relay(_) => ResponseMode::Stream,
        }
    }

    /// What the client gets, where it is not what the upstream sent.
    pub fn content_type(&self) -> Option<&'static str> {
        match &self.way {
            Way::Whole(whole) if whole.is_translated() => Some("application/json"),
            Way::Relay(_) if self.array => Some("application/json"),
            Way::Relay(_) => Some("text/event-stream"),
            Way::Whole(_) | Way::Events(_) | Way::Array(_) | Way::Instead(_) => None,
        }
    }

    /// Bytes of the upstream become bytes for the client, in place. `Err`: the reply is broken;
    /// bytes left in `chunk` were good and come before the break.
    pub fn translate_chunk(
        &mut self,
        chunk: &mut Option<Bytes>,
        end: bool,
    ) -> Result<(), ApiError> {
        let bytes = chunk.take().unwrap_or_default();
        let pushed = match &mut self.way {
            Way::Whole(whole) => whole.push(bytes, end, self.limit, &mut self.observer, chunk),
            Way::Events(tap) => tap.push(bytes, end, self.limit, &mut self.observer, chunk),
            Way::Array(tap) => tap.push(&bytes, end, self.limit, &mut self.observer, chunk),
            Way::Relay(relay) => relay.push(&bytes, end, self.limit, &mut self.observer, chunk),
            Way::Instead(instead) => instead.push(bytes, end),
        };
        if let (Some(codec), Some(sent), true) = (self.codec, chunk, self.observer.ended) {
            self.kept = match &mut self.way {
                Way::Whole(whole) => Some(whole.join(sent)),
                Way::Events(_) | Way::Relay(_) => last_reply(codec, sent),
                Way::Array(_) | Way::Instead(_) => None,
            };
            // There is only one.
            self.codec = self.codec.filter(|_| self.kept.is_none());
        }
        pushed
    }

    /// What comes after the last piece that was pushed: a long document is not put together again.
    pub fn take_remaining(&mut self) -> ChunkedBytes {
        match &mut self.way {
            Way::Whole(whole) => whole.take_rest(),
            Way::Events(_) | Way::Array(_) | Way::Relay(_) | Way::Instead(_) => {
                ChunkedBytes::default()
            }
        }
    }

    /// Whether there will be one to keep.
    pub const fn stores_response(&self) -> bool {
        self.codec.is_some()
    }

    /// The reply that is to be kept, once all of it is there; it is handed out once.
    pub fn take_stored_response(&mut self) -> Option<Bytes> {
        self.kept.take()
    }

    /// SignedParts that the client may not send back, likewise.
    pub fn take_signatures(&mut self) -> Option<SignedParts> {
        match &mut self.way {
            _ if !self.observer.ended => None,
            Way::Whole(whole) => whole.take_signatures(),
            Way::Relay(relay) => relay.take_signatures(),
            Way::Events(_) | Way::Array(_) | Way::Instead(_) => None,
        }
    }

    /// What the client's format could not say of the reply, in the words of either format.
    pub fn take_losses(&mut self) -> Losses {
        match &mut self.way {
            Way::Whole(whole) if self.observer.ended => whole.take_losses(),
            Way::Relay(relay) if self.observer.ended => relay.take_losses(),
            _ => Losses::default(),
        }
    }

    /// What a stream that cannot go on ends with: the client format's own error.
    pub fn encode_stream_error(&mut self, api_error: &ApiError) -> Bytes {
        let codec = self.client.codec();
        let mut out = SseWriter::default();
        match &mut self.way {
            Way::Relay(relay) => return relay.cut(api_error),
            Way::Array(_) => {
                let (_, body) = codec.encode_error(api_error, "");
                out.raw(b",\n");
                out.raw(&body);
                out.raw(b"]");
            }
            Way::Events(tap) => {
                let passed = InterruptedStream {
                    observer: &self.observer,
                    model: tap.model(),
                };
                codec.encode_stream_error(api_error, &passed, &mut out);
            }
            Way::Whole(_) | Way::Instead(_) => {}
        }
        out.take()
    }

    /// A sign of life for a client that has heard nothing for a while. Only whole events have gone
    /// out, so it stands between two of them.
    pub fn encode_keep_alive(&self) -> Option<Bytes> {
        let is_stream = match self.way {
            Way::Events(_) => true,
            Way::Relay(_) => !self.array,
            Way::Whole(_) | Way::Array(_) | Way::Instead(_) => false,
        };
        let mut out = SseWriter::default();
        if is_stream && !self.observer.ended {
            let codec = self.client.codec();
            codec.encode_keep_alive(self.observer.started, &mut out);
        }
        Some(out.take()).filter(|sign| !sign.is_empty())
    }

    /// What the reply took, as far as it came; the input only where the upstream did not count it.
    pub fn usage(&self, input: impl FnOnce() -> u64) -> MeasuredUsage {
        meter::of(&self.observer, input)
    }

    /// What has been learned so far: usage, whether content came, whether the end was proper.
    pub fn observer(&self) -> &ResponseObserver {
        &self.observer
    }
}

/// Only whole events go out, so the last one is in one piece.
fn last_reply(codec: &dyn ConversationCodec, sent: &[u8]) -> Option<Bytes> {
    let mut found = None;
    SseFrames::default().push(sent, |frame| {
        let reply = frame.data.and_then(|data| codec.final_response(&data));
        found = found.take().or(reply);
    });
    found
}

pub(super) fn unexpected(mime: &str, stream: bool) -> ApiError {
    let expected = if stream { "a stream" } else { "JSON" };
    let mime = if mime.is_empty() {
        "no content type"
    } else {
        mime
    };
    ApiError::bad_gateway(format!(
        "the upstream answered with {mime} instead of {expected}"
    ))
}

/// Some backends send an error as the bare JSON, or a list of it, where events or a reply were
/// wanted. The status spoke of success, so only its own words say what it is.
pub(super) fn bare_error(codec: &dyn Codec, raw: &[u8]) -> Option<ApiError> {
    #[derive(Deserialize)]
    struct Bare {
        #[serde(rename = "error")]
        _error: IgnoredAny,
    }
    match raw.trim_ascii_start().first()? {
        b'{' => serde_json::from_slice::<Bare>(raw).map(|_| ()).ok()?,
        b'[' => serde_json::from_slice::<[Bare; 1]>(raw).map(|_| ()).ok()?,
        _ => return None,
    }
    Some(codec.decode_error(StatusCode::OK.as_u16(), raw))
}

/// The reply ended without the format's own mark of an end.
pub(super) fn cut_short() -> ApiError {
    ApiError::bad_gateway("the upstream's stream broke off before its end")
}

pub(super) fn too_long(limit: usize) -> ApiError {
    ApiError::bad_gateway(format!(
        "the upstream's reply holds more than {limit} bytes in one piece"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> ResponseOptions {
        ResponseOptions {
            model: "m".to_owned(),
            stream: true,
            framing: Framing::Sse,
            include_usage: true,
            request_id: "req_1".to_owned(),
            created_at: 1,
            translation_state: crate::model::TranslationState::default(),
        }
    }

    fn passing(format: Format) -> ResponseTranslator {
        let wanted = RequestSummary::new(
            Format::Native.codec(),
            Operation::Stream(Framing::Sse),
            Some("m"),
            b"{}",
        );
        let wanted = wanted.expect("a request");
        ResponseTranslator::new(format, format, &wanted, asked(), "text/event-stream", 1024)
            .expect("a stream of the client's own")
    }

    /// What goes out for a piece, and the sign of life that would follow it.
    fn after(reply: &mut ResponseTranslator, piece: &'static str) -> (Bytes, Option<Bytes>) {
        let mut chunk = Some(Bytes::from_static(piece.as_bytes()));
        reply
            .translate_chunk(&mut chunk, false)
            .expect("a good piece");
        (chunk.unwrap_or_default(), reply.encode_keep_alive())
    }

    #[test]
    fn signs_of_life_stand_where_the_format_has_room_for_them() {
        let comment = Some(Bytes::from_static(b": ping\n\n"));
        let event = Some(Bytes::from_static(
            b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
        ));
        let mut messages = passing(Format::Messages);
        let start = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
        let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        assert_eq!(after(&mut messages, ": hi\n\n").1, comment);
        assert_eq!(after(&mut messages, start), (start.into(), event.clone()));
        // What has come of an event waits for its end: nothing can stand inside of it.
        assert_eq!(after(&mut messages, "event: pi"), (Bytes::new(), event));
        after(&mut messages, "ng\ndata: {\"type\":\"ping\"}\n\n");
        assert_eq!(after(&mut messages, stop).1, None);
        let mut chat = passing(Format::Chat);
        let word = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
        assert_eq!(after(&mut chat, word).1, comment);
        assert_eq!(after(&mut chat, "data: [DONE]\n\n").1, None);
    }

    #[test]
    fn a_native_stream_holds_events_only() {
        let mut native = passing(Format::Native);
        let event = "data: {\"candidates\":[{\"content\":{}}]}\n\n";
        assert_eq!(after(&mut native, event), (event.into(), None));
        assert_eq!(after(&mut native, ": hi\n\n"), (Bytes::new(), None));
        let both = "data: {\"candidates\":[{\"content\":{}}]}\n\n: hi\n\ndata: {}\n\n";
        let (out, _) = after(&mut native, both);
        assert_eq!(out, both.replace(": hi\n\n", ""));
        // A line end that was cut in two is no comment.
        assert_eq!(after(&mut native, "data: {}\r\n\r").0, "data: {}\r\n\r");
        assert_eq!(
            after(&mut native, "\ndata: {}\r\n\r\n").0,
            "\ndata: {}\r\n\r\n"
        );
    }

    #[test]
    fn what_a_reply_loses_is_told_once_it_is_there() {
        let body = r#"{"candidates":[{"content":{"parts":[{"text":"Hm."}]},"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#;
        for (stream, mime, sent) in [
            (false, "application/json", body.to_owned()),
            (true, "text/event-stream", format!("data: {body}\n\n")),
        ] {
            let asking = format!(r#"{{"model":"m","stream":{stream}}}"#);
            let codec = Format::Chat.codec();
            let wanted = RequestSummary::new(codec, Operation::Generate, None, asking.as_bytes());
            let wanted = wanted.expect("a request");
            let reply =
                ResponseTranslator::new(Format::Chat, Format::Native, &wanted, asked(), mime, 1024);
            let mut reply = reply.expect("a reply");
            let pushed = reply.translate_chunk(&mut Some(sent.into()), false);
            pushed.expect("a good piece");
            assert_eq!(reply.take_losses(), Losses::default());
            reply.translate_chunk(&mut None, true).expect("a good end");
            assert_eq!(reply.take_losses().0.len(), 1, "{mime}");
            assert_eq!(reply.take_losses(), Losses::default());
        }
    }

    #[test]
    fn an_error_in_the_place_of_events_is_told_as_it_is() {
        for (format, body, status) in [
            (
                Format::Chat,
                r#"{"error":{"message":"No room.","type":"server_error"}}"#,
                502,
            ),
            (
                Format::Chat,
                r#"{"error":{"message":"No room.","type":"rate_limit_error"}}"#,
                429,
            ),
            (
                Format::Responses,
                r#"{"error":{"message":"No room.","code":"context_length_exceeded"}}"#,
                400,
            ),
            (
                Format::Messages,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"No room."}}"#,
                503,
            ),
            (
                Format::Native,
                r#" [{"error":{"code":429,"message":"No room."}}]"#,
                429,
            ),
        ] {
            let api_error = bare_error(format.codec(), body.as_bytes()).expect("an error");
            assert_eq!(
                (api_error.status, &*api_error.message),
                (status, "No room.")
            );
        }
        let codec = Format::Chat.codec();
        for other in [&b": comment\n"[..], b"{}", b"[{}]", b"id: 7\n\n", b""] {
            assert_eq!(bare_error(codec, other), None);
        }
    }
}
