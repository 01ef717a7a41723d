//! The responses format: OpenAI Responses, `POST /v1/responses`.

mod annotations;
mod call_ids;
mod content;
mod conversation;
mod count_tokens;
mod error;
mod field_paths;
mod hosted_tools;
mod image_generation;
mod input_items;
mod input_list;
mod lenient_object;
mod media;
mod namespaces;
mod output_items;
mod passthrough;
mod reasoning;
mod request;
mod response;
mod response_builder;
mod response_object;
mod schema;
mod settings;
mod signatures;
mod status;
mod stream;
mod tool_choice;
mod tools;
mod turns;
mod usage;

use http::HeaderName;

use self::stream::{ResponsesStreamDecoder, ResponsesStreamEncoder};
use super::{
    Codec, ConversationCodec, Counter, Glance, HeaderFields, NameRule, Operation, Passed, Peek,
    RequestHead, ResponseOptions, StreamDecoder, StreamEncoder, UpstreamTarget, Watch, chat,
};
use crate::json::Edit;
use crate::model::{ApiError, FieldLocation, Losses, RateLimitStatus, Request, Response};
use crate::sse::SseWriter;

/// The codec of the responses format.
pub(super) struct Responses;

impl Codec for Responses {
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        request::decode(body, head.keeps, losses)
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
        request::encode(request, target, losses)
    }

    fn path_of(&self, location: &FieldLocation) -> String {
        field_paths::path_of(location)
    }

    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        response::decode(body, losses)
    }

    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8> {
        response::encode(response, options, losses)
    }

    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(ResponsesStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(ResponsesStreamEncoder::new(options))
    }

    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError {
        chat::decode_error(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        chat::encode_error(api_error)
    }

    fn encode_stream_error(&self, api_error: &ApiError, passed: &Passed<'_>, out: &mut SseWriter) {
        passthrough::encode_error(api_error, passed, out);
    }

    fn peek<'a>(&self, body: &'a [u8]) -> Result<Peek<'a>, ApiError> {
        passthrough::peek(body)
    }

    fn glance_reply(&self, body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
        passthrough::glance_reply(body, watch)
    }

    fn glance_event(&self, data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
        passthrough::glance_event(data, watch)
    }

    fn upstream_path(&self, operation: Operation, _model: &str) -> String {
        match operation {
            Operation::CountTokens => "/responses/input_tokens",
            Operation::Generate | Operation::Stream(_) | Operation::Edit => "/responses",
        }
        .to_owned()
    }

    fn own_headers(&self) -> &'static [HeaderName] {
        &chat::OWN_HEADERS
    }

    fn allowance_headers(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        chat::encode_rate_limit_headers(allowance, fields);
    }

    fn counter(&self) -> Option<&'static dyn Counter> {
        Some(&count_tokens::ResponsesTokenCounter)
    }

    fn keeper(&self) -> Option<&'static dyn ConversationCodec> {
        Some(&conversation::ResponsesConversation)
    }

    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        signatures::strip_foreign(body, losses)
    }
}
