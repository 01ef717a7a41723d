//! The messages format, which is Anthropic Messages: `POST /v1/messages`.

mod bedrock;
mod bedrock_client;
mod block_fields;
mod blocks;
mod call_ids;
mod calls;
mod citations;
mod content;
mod count_tokens;
mod error;
mod field_paths;
mod hosted_tools;
mod known_input;
mod media;
mod output_config;
mod passthrough;
mod rate_limit_headers;
mod request;
mod response;
mod schema;
mod settings;
mod signatures;
mod stop_reason;
mod stream;
#[cfg(test)]
mod tests;
mod text_input;
mod thinking;
mod thinking_blocks;
mod tool_choice;
mod tools;
mod turn_order;
mod turns;
mod usage;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

pub use bedrock::{
    AWS_ERROR_TYPE, BedrockStream, counting_model, decode_aws_error, encode_bedrock_count,
    is_expired_credential,
};
pub use bedrock_client::{encode_aws_error, encode_bedrock_events, set_stream};

use super::chat;
use super::field_placement::place_fields;
use super::images_only::images_only;
use super::{
    Capabilities, Codec, FieldPlacement, HeaderFields, InterruptedStream, MessagesVersion,
    Observation, Operation, RequestFindings, RequestHead, ResponseObserver, ResponseOptions,
    RoutingFields, StreamDecoder, StreamEncoder, TokenCounter, ToolNameRule, UpstreamTarget,
};
use crate::json::Edit;
use crate::model::{ApiError, FieldLocation, Losses, RateLimitStatus, Request, Response, Usage};
use crate::sse::SseWriter;

static OWN_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("idempotency-key"),
];

/// The codec of the messages format.
pub(super) struct Messages;

impl Codec for Messages {
    fn decode_request<'a>(
        &self,
        _head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        request::decode(body, losses)
    }

    fn tool_name_rule(&self) -> ToolNameRule {
        ToolNameRule::with_max_length(128)
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
        Box::new(stream::MessagesStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(stream::MessagesStreamEncoder::new(options))
    }

    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError {
        error::decode(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, request_id: &str) -> (u16, Vec<u8>) {
        error::encode(api_error, request_id)
    }

    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        _: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        error::encode_in_stream(api_error, out);
    }

    /// A `ping` event; before `message_start` a comment, because clients expect that event first.
    fn encode_keep_alive(&self, opened: bool, out: &mut SseWriter) {
        #[derive(serde::Serialize)]
        struct Ping {
            r#type: &'static str,
        }
        match opened {
            true => out.event("ping", &Ping { r#type: "ping" }),
            false => out.comment("ping"),
        }
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

    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError> {
        passthrough::decode_routing_fields(body)
    }

    /// The format has no word for images in a response.
    fn check_image_request(&self, _body: &[u8]) -> Result<(), ApiError> {
        Err(images_only(
            "model",
            "send the request to /v1/images/generations, or in another format",
        ))
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

    fn set_model(&self, body: &[u8], model: &str) -> Result<Option<Bytes>, ApiError> {
        chat::set_model(body, model).map(Some)
    }

    fn take_headers(
        &self,
        body: &Bytes,
    ) -> Result<(Bytes, Vec<(HeaderName, HeaderValue)>), ApiError> {
        bedrock_client::take_headers(body)
    }

    fn upstream_path(&self, operation: Operation, _model: &str) -> String {
        match operation {
            Operation::CountTokens => "/v1/messages/count_tokens",
            // The format has none of the last two, so that they are never asked for.
            Operation::Generate
            | Operation::Stream(_)
            | Operation::Edit
            | Operation::Embed(_)
            | Operation::Passthrough(_) => "/v1/messages",
        }
        .to_owned()
    }

    /// The SDKs mark requests of their beta interface so.
    fn passthrough_query(&self) -> &'static [&'static str] {
        &["beta=true"]
    }

    fn required_header(
        &self,
        capabilities: Option<&Capabilities>,
    ) -> Option<(HeaderName, &'static str)> {
        let version = match capabilities.map(|capabilities| capabilities.messages_version) {
            None | Some(MessagesVersion::First) => "2023-06-01",
            Some(MessagesVersion::Second) => "2026-10-21",
        };
        Some((HeaderName::from_static("anthropic-version"), version))
    }

    fn is_own_error(&self, body: &[u8]) -> bool {
        error::is_own(body)
    }

    fn place_fields(&self, body: &[u8], placement: &FieldPlacement) -> Result<Vec<Edit>, ApiError> {
        let names = ["anthropic_version", "anthropic_beta"];
        place_fields(body, placement, names)
    }

    fn version_headers(&self) -> Option<[HeaderName; 2]> {
        let [version, betas, _] = &OWN_HEADERS;
        Some([version.clone(), betas.clone()])
    }

    fn passthrough_headers(&self) -> &'static [HeaderName] {
        &OWN_HEADERS
    }

    fn request_id_header(&self) -> Option<HeaderName> {
        Some(const { HeaderName::from_static("request-id") })
    }

    fn encode_rate_limits(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        rate_limit_headers::encode_rate_limits(allowance, jiff::Timestamp::now(), fields);
    }

    fn token_counter(&self) -> Option<&'static dyn TokenCounter> {
        Some(&count_tokens::MessagesTokenCounter)
    }

    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        signatures::strip_foreign(body, losses)
    }
}
