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
mod item_bytes;
mod known_input;
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
mod text_input;
mod tool_choice;
mod tools;
mod turns;
mod usage;

use http::HeaderName;

use self::stream::{ResponsesStreamDecoder, ResponsesStreamEncoder};
use super::{
    Capabilities, Codec, ConversationCodec, EmbeddingCodec, HeaderFields, InterruptedStream,
    Observation, Operation, RequestFindings, RequestHead, ResponseObserver, ResponseOptions,
    RoutingFields, StreamDecoder, StreamEncoder, TokenCounter, ToolNameRule, UpstreamTarget, chat,
};
use crate::json::Edit;
use crate::model::{ApiError, FieldLocation, Losses, RateLimitStatus, Request, Response, Usage};
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

    fn tool_name_rule(&self) -> ToolNameRule {
        ToolNameRule::with_max_length(64)
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

    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        passed: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        passthrough::encode_error(api_error, passed, out);
    }

    fn findings(&self, body: &[u8]) -> RequestFindings {
        known_input::findings(body)
    }

    fn limit_output(
        &self,
        body: &[u8],
        limit: u64,
        _capabilities: &Capabilities,
    ) -> Result<Vec<Edit>, ApiError> {
        passthrough::limit_output(body, limit)
    }

    fn min_output_tokens(&self) -> u64 {
        settings::MIN_OUTPUT_TOKENS
    }

    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError> {
        passthrough::decode_routing_fields(body)
    }

    fn check_image_request(&self, body: &[u8]) -> Result<(), ApiError> {
        passthrough::check_image_request(body)
    }

    fn observe_response(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        passthrough::observe_response(body, observer)
    }

    fn reported_usage(&self, body: &[u8]) -> Option<Usage> {
        usage::reported_usage(body)
    }

    fn observe_event(
        &self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        passthrough::observe_event(data, observer)
    }

    fn upstream_path(&self, operation: Operation, _model: &str) -> String {
        match operation {
            Operation::CountTokens => "/responses/input_tokens",
            Operation::Embed(_) => "/embeddings",
            Operation::Passthrough(endpoint) => endpoint.path(),
            Operation::Generate | Operation::Stream(_) | Operation::Edit => "/responses",
        }
        .to_owned()
    }

    fn passthrough_headers(&self) -> &'static [HeaderName] {
        &chat::OWN_HEADERS
    }

    fn encode_rate_limits(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        chat::encode_rate_limit_headers(allowance, fields);
    }

    fn token_counter(&self) -> Option<&'static dyn TokenCounter> {
        Some(&count_tokens::ResponsesTokenCounter)
    }

    fn embedding_codec(&self) -> Option<&'static dyn EmbeddingCodec> {
        Some(&chat::EmbeddingsEndpoint)
    }

    fn conversation_codec(&self) -> Option<&'static dyn ConversationCodec> {
        Some(&conversation::ResponsesConversation)
    }

    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        signatures::strip_foreign(body, losses)
    }
}
