//! Translates the response of a request, or passes it through.

mod audio;

use bytes::Bytes;

use self::audio::{audio_endpoint, of_audio};
use super::array_passthrough::ArrayPassthrough;
use super::final_response::final_response;
use super::json_body::JsonBody;
use super::passthrough::SsePassthrough;
use super::recording;
use super::request_summary::RequestSummary;
use super::stream::StreamTranslator;
use super::unexpected_body::UnexpectedBody;
use super::upstream_error::unexpected_content_type;
use super::usage::{self, MeasuredUsage};
use crate::event_stream::EVENT_STREAM;
use crate::formats::{
    BedrockStream, CloudEmbeddings, ConversationCodec, Framing, InterruptedStream, Operation,
    ResponseObserver, ResponseOptions, encode_bedrock_events,
};
use crate::json::ChunkedBytes;
use crate::model::{ApiError, Format, Losses, SignedParts};
use crate::sse::SseWriter;

const SSE: &str = "text/event-stream";

/// How much of a response must have come before any of it may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMode {
    /// All of it: one JSON document, with a `content-length`.
    Json,
    /// The first event with content.
    Stream,
}

/// Translates the chunks of a response body as they come.
pub struct ResponseTranslator {
    handler: ResponseHandler,
    /// Set where the upstream's stream is an event stream of AWS: what the handler gets is made from it.
    event_stream: Option<Box<BedrockStream>>,
    /// The client reads an event stream of AWS in place of server-sent events.
    writes_event_stream: bool,
    client: Format,
    /// The client's stream is a JSON array.
    is_array: bool,
    observer: ResponseObserver,
    limit: usize,
    /// Set until the response that will be stored is complete.
    conversation_codec: Option<&'static dyn ConversationCodec>,
    stored_response: Option<Bytes>,
}

/// What is done with the chunks of a response.
enum ResponseHandler {
    Json(JsonBody),
    Passthrough(SsePassthrough),
    ArrayPassthrough(ArrayPassthrough),
    Stream(StreamTranslator),
    /// JSON in place of a stream, or anything else that is no response.
    Unexpected(UnexpectedBody),
    /// Bytes that are not read; so many of them are a token.
    Recording(u64),
}

impl ResponseTranslator {
    /// Chooses the translation by a successful response header. `Err`: its content type cannot be
    /// that of a response.
    pub fn new(
        client: Format,
        upstream: Format,
        summary: &RequestSummary,
        options: ResponseOptions,
        content_type: &str,
        limit: usize,
    ) -> Result<ResponseTranslator, ApiError> {
        let mime = content_type.split(';').next().unwrap_or("").trim();
        let is = |expected: &str| mime.eq_ignore_ascii_case(expected);
        let is_array = summary.operation == Operation::Stream(Framing::Array);
        let conversation = options.translation_state.conversation.as_ref();
        let stores_response = conversation.is_some_and(|conversation| conversation.store)
            && summary.operation != Operation::CountTokens;
        let handler = if let Some(endpoint) = audio_endpoint(summary) {
            of_audio(endpoint, client, summary, options, mime)?
        } else if !summary.stream && (is("application/json") || mime.is_empty()) {
            ResponseHandler::Json(JsonBody::new(client, upstream, summary, options))
        } else if summary.stream && client != upstream && is("text/event-stream") {
            ResponseHandler::Stream(StreamTranslator::new(upstream, client, &options))
        } else if summary.stream && is_array && client == upstream && is("application/json") {
            ResponseHandler::ArrayPassthrough(ArrayPassthrough::new(client.codec()))
        } else if summary.stream && !is_array && is("text/event-stream") {
            let endpoint = match summary.operation {
                Operation::Passthrough(endpoint) => Some(endpoint),
                _ => None,
            };
            let (codec, hide_usage) = (client.codec(), summary.hides_usage());
            let stream = SsePassthrough::new(codec, &summary.model, hide_usage);
            ResponseHandler::Passthrough(stream.of_endpoint(endpoint))
        } else if summary.stream && is("application/json") {
            ResponseHandler::Unexpected(UnexpectedBody::new(upstream, summary, mime))
        } else {
            return Err(unexpected_content_type(mime, summary.stream));
        };
        let codec = client.codec().conversation_codec();
        let choices = summary.output_limit.choices;
        Ok(ResponseTranslator {
            observer: ResponseObserver::of_choices(choices)
                .noting_response_id(summary.kept_conversation.is_some()),
            conversation_codec: codec.filter(|_| stores_response),
            is_array,
            ..ResponseTranslator::of_handler(handler, client, limit)
        })
    }

    /// Chooses the translation for an upstream that frames its streams as AWS does. Its counts of tokens have another
    /// body as well.
    pub fn of_bedrock(
        client: Format,
        upstream: Format,
        summary: &RequestSummary,
        options: ResponseOptions,
        content_type: &str,
        limit: usize,
    ) -> Result<ResponseTranslator, ApiError> {
        let mime = content_type.split(';').next().unwrap_or("").trim();
        let is_event_stream = mime.eq_ignore_ascii_case(EVENT_STREAM);
        let content_type = if is_event_stream { SSE } else { content_type };
        let new = ResponseTranslator::new(client, upstream, summary, options, content_type, limit);
        let mut translator = new?;
        translator.event_stream = is_event_stream.then(Box::default);
        if let ResponseHandler::Json(body) = &mut translator.handler {
            body.encode_count_anew();
        }
        Ok(translator)
    }

    /// Keeps the upstream's own name of the model, for a trace.
    pub fn keep_model(&mut self) {
        self.observer.keeps_model = true;
    }

    /// Reads a response of a content type that cannot be that of a response, for the usage that it reports.
    pub fn of_unexpected(
        client: Format,
        upstream: Format,
        summary: &RequestSummary,
        content_type: &str,
        limit: usize,
    ) -> ResponseTranslator {
        let mime = content_type.split(';').next().unwrap_or("").trim();
        let body = UnexpectedBody::new(upstream, summary, mime);
        ResponseTranslator::of_handler(ResponseHandler::Unexpected(body), client, limit)
    }

    fn of_handler(handler: ResponseHandler, client: Format, limit: usize) -> ResponseTranslator {
        ResponseTranslator {
            handler,
            event_stream: None,
            writes_event_stream: false,
            client,
            is_array: false,
            observer: ResponseObserver::default(),
            limit,
            conversation_codec: None,
            stored_response: None,
        }
    }

    /// Has a stream written as an event stream of AWS, and a count under its name there, for clients of Bedrock.
    pub fn write_for_bedrock(&mut self) {
        self.writes_event_stream = self.mode() == ResponseMode::Stream;
        if let ResponseHandler::Json(body) = &mut self.handler {
            body.write_bedrock_count();
        }
    }

    /// Has embeddings of the upstream read in the words of a cloud.
    pub fn read_cloud_embeddings(&mut self, cloud: CloudEmbeddings) {
        if let ResponseHandler::Json(body) = &mut self.handler {
            body.set_cloud_embeddings(cloud);
        }
    }

    /// Reserves memory for a body of the `content-length` that the upstream announced.
    pub fn expect_length(&mut self, length: usize) {
        if let ResponseHandler::Json(body) = &mut self.handler {
            body.expect_length(length.min(self.limit));
        }
    }

    /// Returns how many bytes wait for the rest of their document or event.
    pub fn buffered(&self) -> usize {
        let handled = match &self.handler {
            ResponseHandler::Json(body) => body.buffered(),
            ResponseHandler::Passthrough(stream) => stream.buffered(),
            ResponseHandler::Stream(stream) => stream.buffered(),
            ResponseHandler::ArrayPassthrough(array) => array.buffered(),
            ResponseHandler::Unexpected(_) | ResponseHandler::Recording(_) => 0,
        };
        let event_stream = self.event_stream.as_ref();
        handled + event_stream.map_or(0, |stream| stream.buffered())
    }

    /// Returns how much of the response must have come before any of it may be sent.
    pub fn mode(&self) -> ResponseMode {
        match self.handler {
            ResponseHandler::Json(_) | ResponseHandler::Unexpected(_) => ResponseMode::Json,
            ResponseHandler::Passthrough(_)
            | ResponseHandler::ArrayPassthrough(_)
            | ResponseHandler::Stream(_)
            | ResponseHandler::Recording(_) => ResponseMode::Stream,
        }
    }

    /// Returns the content type for the client, where it differs from the upstream's.
    pub fn content_type(&self) -> Option<&'static str> {
        match &self.handler {
            _ if self.writes_event_stream => Some(EVENT_STREAM),
            ResponseHandler::Json(body) if body.is_translated() => Some("application/json"),
            ResponseHandler::Stream(_) if self.is_array => Some("application/json"),
            ResponseHandler::Stream(_) => Some(SSE),
            ResponseHandler::Passthrough(_) if self.event_stream.is_some() => Some(SSE),
            ResponseHandler::Json(_)
            | ResponseHandler::Passthrough(_)
            | ResponseHandler::ArrayPassthrough(_)
            | ResponseHandler::Unexpected(_)
            | ResponseHandler::Recording(_) => None,
        }
    }

    /// Translates a chunk in place. `Err`: the response is broken; the bytes left in `chunk` are
    /// good and come before the error.
    pub fn translate_chunk(
        &mut self,
        chunk: &mut Option<Bytes>,
        end: bool,
    ) -> Result<(), ApiError> {
        let mut bytes = chunk.take().unwrap_or_default();
        let decoded = match &mut self.event_stream {
            Some(stream) => {
                let mut out = SseWriter::default();
                let decoded = stream.decode_chunk(&bytes, end, self.limit, &mut out);
                // A message that is cut off at the end says nothing of the response.
                if decoded.is_err() && !bytes.is_empty() {
                    self.observer.note_unreadable("");
                }
                bytes = out.take();
                decoded
            }
            None => Ok(()),
        };
        // A stream that is broken has no end of its own.
        let end = end && decoded.is_ok();
        let translated = match &mut self.handler {
            ResponseHandler::Json(body) => {
                body.push(bytes, end, self.limit, &mut self.observer, chunk)
            }
            ResponseHandler::Passthrough(stream) => {
                stream.push(bytes, end, self.limit, &mut self.observer, chunk)
            }
            ResponseHandler::ArrayPassthrough(array) => {
                array.push(&bytes, end, self.limit, &mut self.observer, chunk)
            }
            ResponseHandler::Stream(stream) => {
                stream.translate_chunk(&bytes, end, self.limit, &mut self.observer, chunk)
            }
            ResponseHandler::Unexpected(body) => body.push(bytes, end, &mut self.observer),
            ResponseHandler::Recording(bytes_per_token) => {
                recording::push(*bytes_per_token, bytes, end, &mut self.observer, chunk)
            }
        };
        if let (Some(codec), Some(sent), true) =
            (self.conversation_codec, &mut *chunk, self.observer.ended)
        {
            self.stored_response = match &mut self.handler {
                ResponseHandler::Json(body) => Some(body.joined(sent)),
                ResponseHandler::Passthrough(_) | ResponseHandler::Stream(_) => {
                    final_response(codec, sent)
                }
                ResponseHandler::ArrayPassthrough(_)
                | ResponseHandler::Unexpected(_)
                | ResponseHandler::Recording(_) => None,
            };
            // There is only one.
            self.conversation_codec = self
                .conversation_codec
                .filter(|_| self.stored_response.is_none());
        }
        translated.and(decoded)
    }

    /// Frames what was translated as the client reads it. Until then its text may change; afterwards checksums guard it.
    pub fn frame_chunk(&self, chunk: &mut Option<Bytes>) {
        if self.writes_event_stream {
            let events = chunk.take().map(|events| encode_bedrock_events(&events));
            *chunk = events.filter(|events| !events.is_empty());
        }
    }

    /// Notes that the rest of the response is not read, so that its usage is not known.
    pub const fn set_unread(&mut self) {
        self.observer.is_unread = true;
    }

    /// Takes the chunks after the last one that was translated: a long document is not joined.
    pub fn take_remaining(&mut self) -> ChunkedBytes {
        match &mut self.handler {
            ResponseHandler::Json(body) => body.take_remaining(),
            ResponseHandler::Passthrough(_)
            | ResponseHandler::ArrayPassthrough(_)
            | ResponseHandler::Stream(_)
            | ResponseHandler::Unexpected(_)
            | ResponseHandler::Recording(_) => ChunkedBytes::default(),
        }
    }

    /// Tells whether the response will be stored.
    pub const fn stores_response(&self) -> bool {
        self.conversation_codec.is_some()
    }

    /// Takes the response to store, once it is complete.
    pub fn take_stored_response(&mut self) -> Option<Bytes> {
        self.stored_response.take()
    }

    /// Takes the signed parts that the client may not send back, once the response is complete.
    pub fn take_signatures(&mut self) -> Option<SignedParts> {
        match &mut self.handler {
            _ if !self.observer.ended => None,
            ResponseHandler::Json(body) => body.take_signatures(),
            ResponseHandler::Stream(stream) => stream.take_signatures(),
            ResponseHandler::Passthrough(_)
            | ResponseHandler::ArrayPassthrough(_)
            | ResponseHandler::Unexpected(_)
            | ResponseHandler::Recording(_) => None,
        }
    }

    /// Takes what the client's format could not express of the response, once it is complete.
    pub fn take_losses(&mut self) -> Losses {
        match &mut self.handler {
            ResponseHandler::Json(body) if self.observer.ended => body.take_losses(),
            ResponseHandler::Stream(stream) if self.observer.ended => stream.take_losses(),
            _ => Losses::default(),
        }
    }

    /// Tells whether an error can be told inside of the response: a recording has no place for one.
    pub const fn can_tell_error(&self) -> bool {
        !matches!(self.handler, ResponseHandler::Recording(_))
    }

    /// Encodes the error that ends a stream which cannot go on.
    pub fn encode_stream_error(&mut self, api_error: &ApiError) -> Bytes {
        let events = self.encode_error_event(api_error);
        match self.writes_event_stream {
            true => encode_bedrock_events(&events),
            false => events,
        }
    }

    fn encode_error_event(&mut self, api_error: &ApiError) -> Bytes {
        let codec = self.client.codec();
        let mut out = SseWriter::default();
        match &mut self.handler {
            ResponseHandler::Stream(stream) => return stream.encode_stream_error(api_error),
            ResponseHandler::ArrayPassthrough(array) => array.encode_error(api_error, &mut out),
            ResponseHandler::Passthrough(stream) => {
                let interrupted = InterruptedStream {
                    observer: &self.observer,
                    model: stream.model(),
                };
                codec.encode_stream_error(api_error, &interrupted, &mut out);
            }
            ResponseHandler::Json(_)
            | ResponseHandler::Unexpected(_)
            | ResponseHandler::Recording(_) => {}
        }
        out.take()
    }

    /// Encodes a keep-alive, where the client's format has one. Only complete events have been
    /// sent, so it stands between two of them.
    pub fn encode_keep_alive(&self) -> Option<Bytes> {
        let is_stream = match self.handler {
            // AWS has no keep-alives.
            _ if self.writes_event_stream => false,
            ResponseHandler::Passthrough(_) => true,
            ResponseHandler::Stream(_) => !self.is_array,
            ResponseHandler::Json(_)
            | ResponseHandler::ArrayPassthrough(_)
            | ResponseHandler::Unexpected(_)
            | ResponseHandler::Recording(_) => false,
        };
        let mut out = SseWriter::default();
        if is_stream && !self.observer.ended {
            let codec = self.client.codec();
            codec.encode_keep_alive(self.observer.started, &mut out);
        }
        Some(out.take()).filter(|bytes| !bytes.is_empty())
    }

    /// Returns the usage of the response so far. `input` estimates the tokens of the request, where
    /// the upstream did not count them.
    pub fn usage(&self, input: impl FnOnce() -> u64) -> MeasuredUsage {
        usage::measure(&self.observer, input)
    }

    /// Returns what is known of the response so far.
    pub fn observer(&self) -> &ResponseObserver {
        &self.observer
    }
}

#[cfg(test)]
mod tests;
