//! The messages format, which is Anthropic Messages: `POST /v1/messages`.

mod bedrock;
mod bedrock_client;
mod block_fields;
mod blocks;
mod call_ids;
mod calls;
mod citations;
mod content;
mod content_encoder;
mod count_tokens;
mod error;
mod field_paths;
mod format;
mod hosted_tools;
mod kept_ids;
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
mod tool_references;
mod tool_rounds;
mod tools;
mod turn_order;
mod turns;
mod usage;

pub(in crate::formats) use format::Messages;

use http::HeaderName;

pub use bedrock::{
    AWS_ERROR_TYPE, BedrockStream, counting_model, decode_aws_error, encode_bedrock_count,
    is_expired_credential,
};
pub use bedrock_client::{
    decode_bedrock_count, encode_aws_error, encode_bedrock_events, encode_bedrock_token_count,
    set_stream, take_headers,
};

use super::{
    BodyCodec, Capabilities, Codec, HeaderFields, HttpApi, MessagesVersion, Operation,
    TokenCounter, VersionFields,
};
use crate::model::RateLimitStatus;

static OWN_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("idempotency-key"),
];

impl Codec for Messages {
    fn token_counter(&self) -> Option<&'static dyn TokenCounter> {
        Some(&count_tokens::MessagesTokenCounter)
    }
}

impl BodyCodec for Messages {}

impl HttpApi for Messages {
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

    fn passthrough_headers(&self) -> &'static [HeaderName] {
        &OWN_HEADERS
    }

    fn version_fields(&self) -> Option<VersionFields> {
        Some(VersionFields {
            version_header: bedrock_client::VERSION,
            betas_header: bedrock_client::BETAS,
            version: "anthropic_version",
            betas: "anthropic_beta",
        })
    }

    fn request_id_header(&self) -> Option<HeaderName> {
        Some(const { HeaderName::from_static("request-id") })
    }

    fn encode_rate_limits(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        rate_limit_headers::encode_rate_limits(allowance, jiff::Timestamp::now(), fields);
    }
}
