//! The traits that every wire format implements.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use http::HeaderName;

use super::body::{is_error_body, set_model};
use super::capabilities::Capabilities;
use super::conversation_codec::ConversationCodec;
use super::embedding_codec::EmbeddingCodec;
use super::field_placement::VersionFields;
use super::header_fields::HeaderFields;
use super::json_bytes::to_json_string;
use super::kept_ids::KeptIds;
use super::media_kind::{may_be_image, may_be_text};
use super::reported_usage::ReportedUsage;
use super::request_findings::RequestFindings;
use super::request_options::{
    Framing, Operation, RequestHead, ResponseOptions, RoutingFields, UpstreamTarget,
};
use super::response_observer::{InterruptedStream, Observation, ResponseObserver};
use super::token_counter::TokenCounter;
use super::tool_name_rule::ToolNameRule;
use crate::json::Edit;
use crate::model::{
    ApiError, Event, FieldLocation, InputMedia, Losses, RateLimitStatus, Request, Response, Usage,
};
use crate::sse::SseWriter;

/// Decodes and encodes requests.
pub trait RequestCodec: Sync {
    /// Decodes the body of a client's request.
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError>;
    /// Returns the rule for tool names that upstreams of this format accept.
    fn tool_name_rule(&self) -> ToolNameRule {
        ToolNameRule::with_max_length(64)
    }
    /// Encodes a request for an upstream of this format. Tool names follow the rule already.
    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError>;
}

/// Names the fields of a request.
pub trait FieldPaths {
    /// Returns the path under which a client of this format knows a field.
    fn path_of(&self, location: &FieldLocation) -> String;
}

/// Decodes and encodes JSON responses.
pub trait ResponseCodec {
    /// Decodes a JSON response of an upstream.
    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError>;
    /// Returns what the usage of a JSON response counts of its output.
    fn usage_report(&self, usage: Usage) -> ReportedUsage {
        ReportedUsage::of_whole(usage)
    }
    /// Encodes a JSON response for a client.
    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8>;
    /// Checks that a response holds what clients of this format ask for. `Err`: the client gets
    /// this error instead.
    fn check_response(&self, _response: &Response<'_>) -> Result<(), ApiError> {
        Ok(())
    }
}

/// Decodes and encodes streams.
pub trait StreamCodec {
    /// Makes a decoder for one stream of an upstream.
    fn stream_decoder(&self) -> Box<dyn StreamDecoder>;
    /// Makes an encoder for one stream to a client.
    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder>;
    /// Tells whether clients of this format read all that SSE allows, such as comments, names of events and
    /// payloads of several lines. Others read only `data: `, the payload and a blank line.
    fn allows_any_framing(&self) -> bool {
        true
    }
    /// Encodes a keep-alive for a stream, or nothing where clients would not understand one.
    /// `started`: the event that opens the response has been sent.
    fn encode_keep_alive(&self, _started: bool, out: &mut SseWriter) {
        if self.allows_any_framing() {
            out.comment("ping");
        }
    }
}

/// Decodes and encodes errors.
pub trait ErrorCodec {
    /// Decodes an upstream's error, also from a body that is not JSON.
    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError;
    /// Tells whether a body is an error of a model API, rather than one of a web server in its place.
    fn is_error_body(&self, body: &[u8]) -> bool {
        is_error_body(body)
    }
    /// Tells whether an error of an upstream has the shape that clients of this format know.
    fn is_own_error(&self, _body: &[u8]) -> bool {
        true
    }
    /// Encodes an error, with its status: formats use different ones for some errors.
    fn encode_error(&self, api_error: &ApiError, request_id: &str) -> (u16, Vec<u8>);
    /// Encodes the error that ends a stream which passed through unchanged so far.
    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        stream: &InterruptedStream<'_>,
        out: &mut SseWriter,
    );
}

/// Reads and edits bodies that pass through to an upstream of the client's own format.
pub trait Passthrough {
    /// Decodes only the fields of a request that routing and the reservation of its cost need. They
    /// decide access and money, so a field that parsers may read in two ways is refused.
    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError>;
    /// Finds the ids in a request by which an upstream of the format puts in what it keeps.
    fn kept_ids(&self, _body: &[u8]) -> KeptIds {
        KeptIds::default()
    }
    /// Returns the edits, in order, that limit the output of a request which sets no limit of its own;
    /// none in formats without such a limit. `may_be_written`: the body may have a field for it all the same.
    fn limit_output(
        &self,
        _body: &[u8],
        _limit: u64,
        _may_be_written: bool,
        _capabilities: &Capabilities,
    ) -> Result<Vec<Edit>, ApiError> {
        Ok(Vec::new())
    }
    /// Returns a request's body without the fields that the upstream refuses, and reports the path of each.
    /// `None`: it has none of them.
    fn remove_unsupported(
        &self,
        _body: &str,
        _capabilities: &Capabilities,
        _report: &mut dyn FnMut(String),
    ) -> Option<Vec<u8>> {
        None
    }
    /// Checks a request that passes through unchanged, and returns the ranges of the body that
    /// name the upstream's vendor. `strict`: refuses what the format itself promises to refuse.
    fn check_passthrough(
        &self,
        _head: &RequestHead<'_>,
        _body: &[u8],
        _strict: bool,
    ) -> Result<Vec<Range<usize>>, ApiError> {
        Ok(Vec::new())
    }
    /// Checks that a request to a model that generates images only does not ask for text alone.
    fn check_image_request(&self, _body: &[u8]) -> Result<(), ApiError> {
        Ok(())
    }
    /// Observes a JSON response that passes through: its usage, and whether it is complete.
    fn observe_response(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError>;
    /// Returns the usage that a JSON response reports, also where nothing else of it can be used.
    fn reported_usage(&self, body: &[u8]) -> Option<Usage>;
    /// Observes one event of a stream that passes through.
    fn observe_event(
        &self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError>;
}

/// Finds what of a request decides access and money.
pub trait InputInspection: RequestCodec {
    /// Returns what of the input has another number of tokens than its length in the body tells. `Err`:
    /// the body has something that is not known, or that only an upstream of this format has.
    fn input_media(&self, head: &RequestHead<'_>, body: &[u8]) -> Result<InputMedia, ApiError> {
        let request = self.decode_request(head, body, &mut Losses::default())?;
        Ok(request.input_media(may_be_image, may_be_text))
    }
    /// Returns what of a request decides access and money at an upstream of this format, in one pass over its body.
    fn findings(&self, body: &[u8]) -> RequestFindings;
}

/// Treats the signatures of reasoning, in formats that have these.
pub trait SignatureCodec {
    /// Returns the edits, in order, that remove the signatures of other upstreams from a body: an
    /// upstream of this format would refuse them.
    fn strip_foreign_signatures(&self, _body: &str, _losses: &mut Losses) -> Vec<Edit> {
        Vec::new()
    }
    /// Tells whether all clients of this format send back the signatures that they received.
    fn clients_return_signatures(&self) -> bool {
        true
    }
}

/// Reads and edits the body of a request as a whole: a JSON object whose `model` names the model, unless the format has
/// another.
pub trait BodyCodec {
    /// Rewrites a client's body before anything else reads it, in formats whose encoding leaves room
    /// for doubt. `None`: it stays as it is.
    fn rewrite_body(&self, _body: &[u8]) -> Result<Option<Vec<u8>>, ApiError> {
        Ok(None)
    }
    /// Returns the `content-type` of a request's body.
    fn content_type(&self, _body: &[u8]) -> Cow<'static, str> {
        "application/json".into()
    }
    /// Returns a request's body with this model, in formats whose bodies name it. `None`: the path does.
    fn set_model(&self, body: &[u8], model: &str) -> Result<Option<Bytes>, ApiError> {
        set_model(body, model).map(Some)
    }
    /// Encodes a model's name as it stands in a request's body.
    fn encode_model_name(&self, _body: &[u8], name: &str) -> Vec<u8> {
        to_json_string(name)
    }
}

/// Maps the format to HTTP: paths, queries and headers.
pub trait HttpApi {
    /// Returns the path of an operation below the upstream's base URL.
    fn upstream_path(&self, operation: Operation, model: &str) -> String;
    /// Returns the operation for a request that was translated into this format.
    fn upstream_operation(&self, _request: &Request<'_>, stream: bool) -> Operation {
        match stream {
            true => Operation::Stream(Framing::Sse),
            false => Operation::Generate,
        }
    }
    /// Returns the query that an operation needs at an upstream of this format.
    fn upstream_query(&self, _operation: Operation) -> Option<&'static str> {
        None
    }
    /// Returns the pairs of a client's query that pass through to an upstream of this format.
    fn passthrough_query(&self) -> &'static [&'static str] {
        &[]
    }
    /// Returns the header that upstreams of this format require, for clients that do not send it.
    /// Without capabilities: for a body that the client wrote in this format.
    fn required_header(
        &self,
        _capabilities: Option<&Capabilities>,
    ) -> Option<(HeaderName, &'static str)> {
        None
    }
    /// Returns the request headers of the format that pass through to an upstream of it.
    fn passthrough_headers(&self) -> &'static [HeaderName];
    /// Returns the names of the version and of the betas, in the formats that have these.
    fn version_fields(&self) -> Option<VersionFields> {
        None
    }
    /// Returns the header in which the format's SDKs look for the id of a request.
    fn request_id_header(&self) -> Option<HeaderName> {
        None
    }
    /// Encodes a client's rate limits, in the formats that have headers for them.
    fn encode_rate_limits(&self, _allowance: &RateLimitStatus, _fields: &mut HeaderFields) {}
}

/// One wire format: the parts that every format has, and those that only some have.
pub trait Codec:
    RequestCodec
    + FieldPaths
    + ResponseCodec
    + StreamCodec
    + ErrorCodec
    + Passthrough
    + InputInspection
    + SignatureCodec
    + BodyCodec
    + HttpApi
{
    /// Returns the codec of the token counting endpoint, in the formats that have one.
    fn token_counter(&self) -> Option<&'static dyn TokenCounter> {
        None
    }
    /// Returns the codec of the endpoint for embeddings, in the formats whose upstreams have one.
    fn embedding_codec(&self) -> Option<&'static dyn EmbeddingCodec> {
        None
    }
    /// Returns the codec of stored responses, in the formats that have these.
    fn conversation_codec(&self) -> Option<&'static dyn ConversationCodec> {
        None
    }
}

/// Decodes one stream of an upstream into [`Event`]s.
pub trait StreamDecoder: Send + Sync {
    /// Decodes the payload of one SSE event.
    fn decode_event(&mut self, data: &str, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError>;
    /// Takes what the last event has reported of the usage: a stream that breaks off has no other. The usage among the events
    /// is for the client.
    fn take_usage_report(&mut self) -> Option<ReportedUsage>;
    /// Takes the losses of the response, once.
    fn take_losses(&mut self) -> Losses {
        Losses::default()
    }
    /// About how many bytes it holds until they can be sent.
    fn held(&self) -> usize {
        0
    }
    /// Ends the stream after its last byte. `Err`: the stream was not complete.
    fn finish(&mut self, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError>;
}

/// Encodes [`Event`]s as one stream to a client.
pub trait StreamEncoder: Send + Sync {
    /// Encodes one event.
    fn encode_event(&mut self, event: Event<'_>, out: &mut SseWriter);
    /// About how many bytes it holds of what it has sent, or until it can be sent.
    fn held(&self) -> usize {
        0
    }
    /// Encodes the format's own error event; nothing may follow it.
    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter);
}
