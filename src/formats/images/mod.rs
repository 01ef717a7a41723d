//! The images format, which is OpenAI Images: `POST /v1/images/generations` and `/v1/images/edits`.

mod error;
mod field_paths;
mod form;
mod image_header;
mod input_image;
mod known_input;
mod parameters;
mod passthrough;
mod request;
mod request_body;
mod response;
mod stream;
#[cfg(test)]
mod tests;
mod usage;

pub use image_header::image_media_type;
pub use response::image_urls;

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use http::HeaderName;

use super::chat::set_model;
use super::multipart;
use super::{
    Codec, HeaderFields, InterruptedStream, Observation, Operation, RequestFindings, RequestHead,
    ResponseObserver, ResponseOptions, RoutingFields, StreamDecoder, StreamEncoder, ToolNameRule,
    UpstreamTarget, to_json_string,
};
use crate::model::{
    ApiError, FieldLocation, InputMedia, Losses, RateLimitStatus, Request, Response, Usage,
};
use crate::sse::SseWriter;

/// The codec of the images format.
pub(super) struct Images;

impl Codec for Images {
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        request::decode(head, body, losses)
    }

    /// The format has no tools, so the rule is never used.
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
        _losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        response::decode(body)
    }

    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        _losses: &mut Losses,
    ) -> Vec<u8> {
        response::encode(response, options)
    }

    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(stream::ImageStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(stream::ImageStreamEncoder::new(options))
    }

    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError {
        error::decode(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        error::encode(api_error)
    }

    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        _: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        error::encode_in_stream(api_error, out);
    }

    fn findings(&self, body: &[u8]) -> RequestFindings {
        known_input::findings(body)
    }

    fn input_media(&self, head: &RequestHead<'_>, body: &[u8]) -> Result<InputMedia, ApiError> {
        Ok(passthrough::input_media(head, body))
    }

    fn set_model(&self, body: &[u8], model: &str) -> Result<Option<Bytes>, ApiError> {
        set_model(body, model).map(Some)
    }

    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError> {
        passthrough::decode_routing_fields(body)
    }

    /// Checks the parameters and the input images, so that the upstream does not charge for a bad request.
    fn check_passthrough(
        &self,
        head: &RequestHead<'_>,
        body: &[u8],
        _by_the_rules: bool,
    ) -> Result<Vec<Range<usize>>, ApiError> {
        parameters::decode_parameters(head, body, &mut Losses::default())?;
        Ok(Vec::new())
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

    /// Forms are written anew: parsers read a client's own in too many ways.
    fn rewrite_body(&self, body: &[u8]) -> Result<Option<Vec<u8>>, ApiError> {
        let is_form = multipart::is_multipart(body);
        let rewritten =
            is_form.then(|| multipart::rewrite(body, multipart::own_boundary(), &form::RULES));
        rewritten.transpose()
    }

    fn content_type(&self, body: &[u8]) -> Cow<'static, str> {
        match multipart::content_type(body) {
            Some(form) => form.into(),
            None => "application/json".into(),
        }
    }

    fn encode_model_name(&self, body: &[u8], name: &str) -> Vec<u8> {
        match multipart::is_multipart(body) {
            true => name.as_bytes().to_vec(),
            false => to_json_string(name),
        }
    }

    fn check_response(&self, response: &Response<'_>) -> Result<(), ApiError> {
        response::accept(response)
    }

    fn upstream_path(&self, operation: Operation, _model: &str) -> String {
        match operation {
            Operation::Edit => "/images/edits".to_owned(),
            _ => "/images/generations".to_owned(),
        }
    }

    fn upstream_operation(&self, request: &Request<'_>, _stream: bool) -> Operation {
        request::upstream_operation(request)
    }

    fn passthrough_headers(&self) -> &'static [HeaderName] {
        &super::chat::OWN_HEADERS
    }

    fn encode_rate_limits(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        super::chat::encode_rate_limit_headers(allowance, fields);
    }
}
