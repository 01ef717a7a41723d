//! The responses format: `POST /v1/responses`.

mod content;
mod content_out;
mod count;
mod decoder;
mod draft;
mod error;
mod events;
mod frame;
mod incoming;
mod items_in;
mod kept;
mod outgoing;
mod pairs_out;
mod pass;
mod picture;
mod places;
mod progress;
mod reply;
mod request;
mod response;
mod sealed;
mod settings_out;
mod stream;
mod strict;
mod tools;
mod tools_out;
mod turns;
mod turns_out;

use http::HeaderName;

use super::{
    Codec, ConversationCodec, Counter, Glance, HeaderFields, NameRule, Operation, Passed, Peek,
    RequestHead, ResponseOptions, StreamDecoder, StreamEncoder, UpstreamTarget, Watch, chat,
};
use crate::json::Edit;
use crate::model::{ApiError, FieldLocation, Losses, RateLimitStatus, Request, Response};
use crate::sse::SseWriter;

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

    fn name_rule(&self) -> NameRule {
        NameRule::up_to(64)
    }

    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        outgoing::encode(request, target, losses)
    }

    fn path_of(&self, place: &FieldLocation) -> String {
        places::path_of(place)
    }

    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        incoming::decode(body, losses)
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
        chat::decode_error(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        chat::encode_error(api_error)
    }

    fn encode_stream_error(&self, api_error: &ApiError, passed: &Passed<'_>, out: &mut SseWriter) {
        pass::cut(api_error, passed, out);
    }

    fn peek<'a>(&self, body: &'a [u8]) -> Result<Peek<'a>, ApiError> {
        pass::peek(body)
    }

    fn glance_reply(&self, body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
        pass::glance_reply(body, watch)
    }

    fn glance_event(&self, data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
        pass::glance_event(data, watch)
    }

    fn upstream_path(&self, operation: Operation, _model: &str) -> String {
        match operation {
            Operation::CountTokens => "/responses/input_tokens",
            Operation::Generate | Operation::Stream(_) | Operation::Edit => "/responses",
        }
        .to_owned()
    }

    fn own_headers(&self) -> &'static [HeaderName] {
        &chat::OWN_HEADERS
    }

    fn allowance_headers(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        chat::allowance_headers(allowance, fields);
    }

    fn counter(&self) -> Option<&'static dyn Counter> {
        Some(&count::Count)
    }

    fn keeper(&self) -> Option<&'static dyn ConversationCodec> {
        Some(&kept::Kept)
    }

    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        sealed::take_out(body, losses)
    }
}
