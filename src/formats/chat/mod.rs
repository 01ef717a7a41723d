//! The chat format: OpenAI Chat Completions, `POST /v1/chat/completions`.

mod annotations;
mod calls;
mod chat_message;
mod choice_encoder;
mod completion;
mod delta;
mod delta_bytes;
mod embeddings;
mod error;
mod field_paths;
mod finish_reason;
mod format;
mod fragment;
mod identity;
mod kept_audio;
mod known_input;
mod logprobs;
mod message;
mod message_encoder;
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
mod settings;
mod signatures;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod text_input;
mod tool_rounds;
mod tools;
mod turns;
mod unsupported;
mod usage;
mod web_search;

pub(in crate::formats) use embeddings::EmbeddingsEndpoint;
pub(in crate::formats) use error::{decode_error, encode_error, error_type};
pub(in crate::formats) use format::Chat;
pub(in crate::formats) use passthrough::request_usage;
pub(in crate::formats) use rate_limit_headers::encode_rate_limit_headers;
pub(in crate::formats) use request::decode_metadata;
pub(in crate::formats) use usage::CompletionUsage;

use http::HeaderName;

use super::{BodyCodec, Codec, EmbeddingCodec, HeaderFields, HttpApi, Operation};
use crate::model::RateLimitStatus;

/// Request headers of the chat format; the responses and images formats have the same.
pub(in crate::formats) static OWN_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("x-client-request-id"),
];

impl Codec for Chat {
    fn embedding_codec(&self) -> Option<&'static dyn EmbeddingCodec> {
        Some(&EmbeddingsEndpoint)
    }
}

impl BodyCodec for Chat {}

impl HttpApi for Chat {
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

    fn encode_rate_limits(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        rate_limit_headers::encode_rate_limit_headers(allowance, fields);
    }
}
