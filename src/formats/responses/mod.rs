//! The responses format: OpenAI Responses, `POST /v1/responses`.

mod annotations;
mod call_ids;
mod content;
mod conversation;
mod count_tokens;
mod error;
mod error_codec;
mod field_paths;
mod format;
mod hosted_tools;
mod image_generation;
mod input_items;
mod input_items_page;
mod input_items_query;
mod input_list;
mod item_bytes;
mod kept_ids;
mod known_input;
mod lenient_object;
mod media;
mod namespaces;
mod output_ids;
mod output_items;
mod passthrough;
mod reasoning;
mod request;
mod response;
mod response_builder;
mod response_object;
mod settings;
mod signatures;
mod status;
mod stream;
#[cfg(test)]
mod tests;
mod text_input;
mod tool_choice;
mod tool_rounds;
mod tools;
mod turns;
mod usage;

pub(in crate::formats) use format::Responses;

use http::HeaderName;

use super::{
    BodyCodec, Codec, ConversationCodec, EmbeddingCodec, HeaderFields, HttpApi, Operation,
    TokenCounter, chat,
};
use crate::model::RateLimitStatus;

impl Codec for Responses {
    fn token_counter(&self) -> Option<&'static dyn TokenCounter> {
        Some(&count_tokens::ResponsesTokenCounter)
    }

    fn embedding_codec(&self) -> Option<&'static dyn EmbeddingCodec> {
        Some(&chat::EmbeddingsEndpoint)
    }

    fn conversation_codec(&self) -> Option<&'static dyn ConversationCodec> {
        Some(&conversation::ResponsesConversation)
    }
}

impl BodyCodec for Responses {}

impl HttpApi for Responses {
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
}
