//! The native format, Gemini `generateContent`: `POST /v1beta/models/{model}:generateContent`,
//! `:streamGenerateContent`, `:countTokens`, `:embedContent` and `:batchEmbedContents`.

mod call_ids;
mod calls;
mod candidate;
mod cited_text;
mod contents;
mod count_tokens;
mod embeddings;
mod enum_values;
mod error;
mod field_names;
mod field_paths;
mod finish_reason;
mod format;
mod generation_config;
mod grounding;
mod image_config;
mod json_schema;
mod known_citations;
mod known_input;
mod logprobs;
mod media;
mod media_resolution;
mod parts;
mod passthrough;
mod reasoning;
mod reference_budget;
mod request;
mod response;
mod response_calls;
mod response_parts;
mod schema;
mod schema_builder;
mod schema_decoder;
mod signatures;
mod stream;
#[cfg(test)]
mod tests;
mod text_input;
mod thinking_config;
mod tool_rounds;
mod tools;
mod usage;
mod validation;

pub(in crate::formats) use format::Native;

use bytes::Bytes;
use http::HeaderName;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{
    BodyCodec, Codec, EmbedMethod, EmbeddingCodec, Framing, HttpApi, Operation, TokenCounter,
};
use crate::model::ApiError;

/// The characters that are escaped in a path. The name of a model is one segment, and the colon behind it begins the
/// operation: clients choose names where an id has a `*`, and must not choose the operation by them.
const PATH_ESCAPES: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

impl Codec for Native {
    fn token_counter(&self) -> Option<&'static dyn TokenCounter> {
        Some(&count_tokens::NativeTokenCounter)
    }

    fn embedding_codec(&self) -> Option<&'static dyn EmbeddingCodec> {
        Some(&embeddings::NativeEmbeddings)
    }
}

impl BodyCodec for Native {
    fn set_model(&self, _body: &[u8], _model: &str) -> Result<Option<Bytes>, ApiError> {
        Ok(None)
    }
}

impl HttpApi for Native {
    fn upstream_path(&self, operation: Operation, model: &str) -> String {
        let method = match operation {
            // The format has none of the endpoints that pass through, so that they are never asked for.
            Operation::Generate | Operation::Edit | Operation::Passthrough(_) => "generateContent",
            Operation::Stream(_) => "streamGenerateContent",
            Operation::CountTokens => "countTokens",
            Operation::Embed(EmbedMethod::Single) => "embedContent",
            Operation::Embed(EmbedMethod::Batch) => "batchEmbedContents",
        };
        let model = utf8_percent_encode(model, PATH_ESCAPES);
        format!("/v1beta/models/{model}:{method}")
    }

    fn upstream_query(&self, operation: Operation) -> Option<&'static str> {
        (operation == Operation::Stream(Framing::Sse)).then_some("alt=sse")
    }

    fn passthrough_headers(&self) -> &'static [HeaderName] {
        &[]
    }
}
