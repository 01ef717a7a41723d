//! The chat format: `POST /v1/chat/completions`.

mod decoder;
mod error;
mod incoming;
mod media_out;
mod nesting;
mod outgoing;
mod pairing;
mod pass;
mod paths;
mod rates;
mod reasoning;
mod reply_in;
mod request;
mod response;
mod said;
mod sealed;
mod shape_out;
mod stream;
#[cfg(test)]
mod tests;
mod tools;
mod tools_out;
mod turns;
mod turns_out;
mod usage;
mod wire;

pub(in crate::formats) use error::{decode as decode_error, encode as encode_error, error_type};
pub(in crate::formats) use pass::named;
pub(in crate::formats) use rates::headers as allowance_headers;
pub(in crate::formats) use request::read_metadata;

use http::HeaderName;

use super::{
    Codec, Glance, HeaderFields, NameRule, Operation, Passed, Peek, RequestHead, ResponseOptions,
    StreamDecoder, StreamEncoder, UpstreamTarget, Watch,
};
use crate::json::Edit;
use crate::model::{ApiError, FieldLocation, Losses, RateLimitStatus, Request, Response};
use crate::sse::SseWriter;

pub(super) struct Chat;

/// Request headers of this format and of those that came from the same house.
pub(in crate::formats) static OWN_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("x-client-request-id"),
];

impl Codec for Chat {
    fn decode_request<'a>(
        &self,
        _head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        request::decode(body, losses)
    }

    fn name_rule(&self) -> NameRule {
        NameRule::up_to(64)
    }

    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        outgoing::encode(request, target, losses)
    }

    fn path_of(&self, place: &FieldLocation) -> String {
        paths::path_of(place)
    }

    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        incoming::decode(body, losses)
    }

    fn encode_response(
        &self,
        response: &Response<'_>,
        asked: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8> {
        response::encode(response, asked, losses)
    }

    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(decoder::Decoder::default())
    }

    fn stream_encoder(&self, asked: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(stream::Encoder::new(asked))
    }

    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError {
        error::decode(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        error::encode(api_error)
    }

    fn encode_stream_error(&self, api_error: &ApiError, _: &Passed<'_>, out: &mut SseWriter) {
        error::encode_in_stream(api_error, out);
    }

    fn peek<'a>(&self, body: &'a [u8]) -> Result<Peek<'a>, ApiError> {
        pass::peek(body)
    }

    fn glance_reply(&self, body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
        pass::glance_reply(body, watch)
    }

    fn glance_event(&self, data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
        pass::glance_event(data, watch)
    }

    fn upstream_path(&self, _operation: Operation, _model: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn own_headers(&self) -> &'static [HeaderName] {
        &OWN_HEADERS
    }

    fn clients_return_proofs(&self) -> bool {
        false
    }

    fn allowance_headers(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        rates::headers(allowance, fields);
    }

    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        sealed::take_out(body, losses)
    }
}
