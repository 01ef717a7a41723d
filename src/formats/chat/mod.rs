//! The chat format: OpenAI Chat Completions, `POST /v1/chat/completions`.

mod annotations;
mod calls;
mod chat_message;
mod completion;
mod delta_bytes;
mod embeddings;
mod error;
mod field_paths;
mod finish_reason;
mod fragment;
mod identity;
mod known_input;
mod logprobs;
mod message;
mod output;
mod output_media;
mod parts;
mod passthrough;
mod rate_limit_headers;
mod reader;
mod reasoning;
mod request;
mod response;
mod role;
mod schema;
mod settings;
mod signatures;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod text_input;
mod tools;
mod turns;
mod unsupported;
mod usage;
mod web_search;

pub(in crate::formats) use embeddings::EmbeddingsEndpoint;
pub(in crate::formats) use error::{decode_error, encode_error, error_type};
pub(in crate::formats) use passthrough::{decode_model_name, request_usage, set_model};
pub(in crate::formats) use rate_limit_headers::encode_rate_limit_headers;
pub(in crate::formats) use request::decode_metadata;
pub(in crate::formats) use usage::CompletionUsage;

use bytes::Bytes;
use http::HeaderName;

use super::{
    Capabilities, Codec, EmbeddingCodec, HeaderFields, InterruptedStream, Observation, Operation,
    RequestFindings, RequestHead, ResponseObserver, ResponseOptions, RoutingFields, StreamDecoder,
    StreamEncoder, ToolNameRule, UpstreamTarget,
};
use crate::json::Edit;
use crate::model::{ApiError, FieldLocation, Losses, RateLimitStatus, Request, Response, Usage};
use crate::sse::SseWriter;

/// The codec of the chat format.
pub(super) struct Chat;

/// Request headers of the chat format; the responses and images formats have the same.
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
        request::decode_request(body, losses)
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
        request::encode_request(request, target, losses)
    }

    fn path_of(&self, location: &FieldLocation) -> String {
        field_paths::path_of(location)
    }

    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        response::decode_response(body, losses)
    }

    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8> {
        response::encode_response(response, options, losses)
    }

    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(stream::ChatStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(stream::ChatStreamEncoder::new(options))
    }

    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError {
        error::decode_error(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        error::encode_error(api_error)
    }

    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        _: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        error::encode_stream_error(api_error, out);
    }

    fn findings(&self, body: &[u8]) -> RequestFindings {
        known_input::findings(body)
    }

    fn limit_output(
        &self,
        body: &[u8],
        limit: u64,
        capabilities: &Capabilities,
    ) -> Result<Vec<Edit>, ApiError> {
        passthrough::limit_output(body, limit, capabilities.chat_old_max_field)
    }

    fn remove_unsupported(
        &self,
        body: &str,
        capabilities: &Capabilities,
        report: &mut dyn FnMut(String),
    ) -> Option<Vec<u8>> {
        unsupported::remove_unsupported(body, capabilities, report)
    }

    fn set_model(&self, body: &[u8], model: &str) -> Result<Option<Bytes>, ApiError> {
        passthrough::set_model(body, model).map(Some)
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
            Operation::Embed(_) => "/embeddings",
            Operation::Passthrough(endpoint) => endpoint.path(),
            Operation::Generate
            | Operation::Stream(_)
            | Operation::CountTokens
            | Operation::Edit => "/chat/completions",
        }
        .to_owned()
    }

    fn passthrough_headers(&self) -> &'static [HeaderName] {
        &OWN_HEADERS
    }

    fn clients_return_signatures(&self) -> bool {
        false
    }

    fn encode_rate_limits(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        rate_limit_headers::encode_rate_limit_headers(allowance, fields);
    }

    fn embedding_codec(&self) -> Option<&'static dyn EmbeddingCodec> {
        Some(&EmbeddingsEndpoint)
    }

    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        signatures::strip_foreign_signatures(body, losses)
    }
}
