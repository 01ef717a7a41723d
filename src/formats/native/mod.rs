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
mod generation_config;
mod grounding;
mod image_config;
mod json_schema;
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
mod signatures;
mod stream;
#[cfg(test)]
mod tests;
mod text_input;
mod thinking_config;
mod tools;
mod usage;
mod validation;

use std::ops::Range;

use http::HeaderName;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::media_kind::may_be_text;
use super::{
    Capabilities, Codec, EmbedMethod, EmbeddingCodec, Framing, InterruptedStream, Observation,
    Operation, RequestFindings, RequestHead, ResponseObserver, ResponseOptions, RoutingFields,
    StreamDecoder, StreamEncoder, TokenCounter, ToolNameRule, UpstreamTarget,
};
use crate::json::Edit;
use crate::model::{ApiError, FieldLocation, InputMedia, Losses, Request, Response, Usage};
use crate::sse::SseWriter;

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

/// The codec of the native format.
pub(super) struct Native;

impl Codec for Native {
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        request::decode_request(head, body, losses)
    }

    fn tool_name_rule(&self) -> ToolNameRule {
        ToolNameRule {
            max_length: 128,
            extra_characters: &['.', ':'],
            starts_with_letter: true,
        }
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
        Box::new(stream::NativeStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(stream::NativeStreamEncoder::new(options))
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

    fn allows_any_framing(&self) -> bool {
        false
    }

    /// What `fileData` leads to is not seen, whatever its type claims.
    fn input_media(&self, head: &RequestHead<'_>, body: &[u8]) -> Result<InputMedia, ApiError> {
        let request = self.decode_request(head, body, &mut Losses::default())?;
        Ok(request.input_media(|_| false, may_be_text))
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

    fn check_passthrough(
        &self,
        head: &RequestHead<'_>,
        body: &[u8],
        validate: bool,
    ) -> Result<Vec<Range<usize>>, ApiError> {
        match validate {
            true => validation::validate(body, head.text_only),
            false => validation::find_vendor_prefixes(body),
        }
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

    /// Some clients send calls back, but not the thoughts with their signatures.
    fn clients_return_signatures(&self) -> bool {
        false
    }

    fn token_counter(&self) -> Option<&'static dyn TokenCounter> {
        Some(&count_tokens::NativeTokenCounter)
    }

    fn embedding_codec(&self) -> Option<&'static dyn EmbeddingCodec> {
        Some(&embeddings::NativeEmbeddings)
    }

    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        signatures::strip_foreign_signatures(body, losses)
    }
}
