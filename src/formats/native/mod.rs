//! The native format: `POST /v1beta/models/{model}:generateContent` and its siblings.

mod call_ids;
mod calls;
mod candidate;
mod contents;
mod count_tokens;
mod decoder;
mod error;
mod field_names;
mod field_paths;
mod finish_reason;
mod framing;
mod generation_config;
mod grounding;
mod image_config;
mod json_schema;
mod media;
mod partial;
mod parts;
mod passthrough;
mod request;
mod response;
mod response_parts;
mod rules;
mod schema;
mod schema_encoder;
mod setting_rules;
mod settings;
mod signatures;
mod sources;
mod stream;
#[cfg(test)]
mod tests;
mod tools;
mod tools_out;
mod usage;

use std::ops::Range;

use http::HeaderName;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{
    Codec, Counter, Glance, NameRule, Operation, OutputLimit, Passed, Peek, RequestHead,
    ResponseOptions, StreamDecoder, StreamEncoder, UpstreamTarget, Watch,
};
use crate::json::Edit;
use crate::model::{ApiError, FieldLocation, Losses, Request, Response};
use crate::sse::SseWriter;

/// Names of models may hold slashes and colons; these would end the path, or mean something else.
const NOT_IN_A_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
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

pub(super) struct Native;

impl Codec for Native {
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        request::decode(head, body, losses)
    }

    fn name_rule(&self) -> NameRule {
        NameRule {
            longest: 128,
            more_letters: &['.', ':'],
            begins_with_letter: true,
        }
    }

    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        field_paths::encode(request, target, losses)
    }

    fn path_of(&self, place: &FieldLocation) -> String {
        field_paths::path_of(place)
    }

    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        candidate::decode(body, losses)
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

    fn takes_comments(&self) -> bool {
        false
    }

    fn peek<'a>(&self, _body: &'a [u8]) -> Result<Peek<'a>, ApiError> {
        Ok(passthrough::PEEK)
    }

    fn inspect(
        &self,
        head: &RequestHead<'_>,
        body: &[u8],
        by_the_rules: bool,
    ) -> Result<Vec<Range<usize>>, ApiError> {
        match by_the_rules {
            true => rules::hold(body, head.text_only),
            false => rules::skim(body),
        }
    }

    fn most(&self, body: &[u8]) -> OutputLimit {
        passthrough::most(body)
    }

    fn glance_reply(&self, body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
        passthrough::glance_reply(body, watch)
    }

    fn glance_event(&self, data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
        passthrough::glance_event(data, watch)
    }

    fn upstream_path(&self, operation: Operation, model: &str) -> String {
        let verb = match operation {
            Operation::Generate | Operation::Edit => "generateContent",
            Operation::Stream(_) => "streamGenerateContent",
            Operation::CountTokens => "countTokens",
        };
        let model = utf8_percent_encode(model, NOT_IN_A_PATH);
        format!("/v1beta/models/{model}:{verb}")
    }

    fn upstream_query(&self, stream: bool) -> Option<&'static str> {
        stream.then_some("alt=sse")
    }

    fn own_headers(&self) -> &'static [HeaderName] {
        &[]
    }

    /// Some send back what was called but not what was thought.
    fn clients_return_proofs(&self) -> bool {
        false
    }

    fn counter(&self) -> Option<&'static dyn Counter> {
        Some(&count_tokens::Count)
    }

    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        signatures::take_out(body, losses)
    }
}
