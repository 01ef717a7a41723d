//! One folder per wire format; no field name of a format is spelled anywhere else.

mod address;
mod base64_text;
mod blocks;
mod capabilities;
mod chat;
mod counter;
mod few;
mod fields;
mod free_text;
mod identity;
mod images;
mod keeper;
mod media_kind;
mod messages;
mod names;
mod native;
mod public_address;
mod responses;
mod sealed;
mod told;
mod watch;
mod written;

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use http::HeaderName;
use serde_json::Value;

use crate::json::{self, Edit, FromJson, RawJson};
use crate::model::{
    ApiError, ConversationState, Event, FieldLocation, Format, ImageSize, Losses, RateLimitStatus,
    Request, Response, SignatureLookup, TranslationState, Usage,
};
use crate::sse::SseWriter;

pub use capabilities::{Capabilities, MessagesVersion, SearchUse, ThinkingStyle};
pub use counter::{Counter, Question};
pub use fields::HeaderFields;
pub use free_text::unwrap_free_text;
pub(crate) use identity::call_id;
pub use images::{image_media_type, image_urls};
pub use keeper::{ConversationCodec, Items};
pub use names::NameRule;
pub use public_address::{is_public, is_public_https};
pub use watch::{Heard, Passed, Watch};

/// Everything one format knows.
pub trait Codec: Sync {
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError>;

    /// Which names of tools an upstream of this format takes.
    fn name_rule(&self) -> NameRule;
    /// For an upstream of this format, which may speak with another client. Names keep to the rule.
    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError>;
    /// Where a client of this format wrote it.
    fn path_of(&self, place: &FieldLocation) -> String;

    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError>;
    fn encode_response(
        &self,
        response: &Response<'_>,
        asked: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8>;
    fn stream_decoder(&self) -> Box<dyn StreamDecoder>;
    fn stream_encoder(&self, asked: &ResponseOptions) -> Box<dyn StreamEncoder>;

    /// Also for bodies that are not JSON at all.
    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError;
    /// The status goes with the body: formats disagree on some.
    fn encode_error(&self, api_error: &ApiError, request_id: &str) -> (u16, Vec<u8>);
    /// The format's own error, for an upstream's stream that has passed so far and cannot go on.
    fn encode_stream_error(&self, api_error: &ApiError, passed: &Passed<'_>, out: &mut SseWriter);

    /// Whether readers of a stream skip what is no event.
    fn takes_comments(&self) -> bool {
        true
    }
    /// A sign of life, for a stream that has nothing to say; nothing where none is understood.
    /// `opened`: the event that opens the reply is out.
    fn keep_alive(&self, _opened: bool, out: &mut SseWriter) {
        if self.takes_comments() {
            out.comment("ping");
        }
    }

    /// What routing must know of a request, without building a tree of it.
    fn peek<'a>(&self, body: &'a [u8]) -> Result<Peek<'a>, ApiError>;
    /// How much may come back at most, as the request itself says it.
    fn most(&self, body: &[u8]) -> OutputLimit {
        let peek = self.peek(body).ok();
        peek.and_then(|peek| peek.most).unwrap_or_default()
    }
    /// Looks through a request that will pass unchanged, for what the format promises to refuse
    /// (`by_the_rules`) and for places where a word stands for the upstream's vendor.
    fn inspect(
        &self,
        _head: &RequestHead<'_>,
        _body: &[u8],
        _by_the_rules: bool,
    ) -> Result<Vec<Range<usize>>, ApiError> {
        Ok(Vec::new())
    }
    /// What metering and honesty must know of a whole reply that passes unchanged.
    fn glance_reply(&self, body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError>;
    /// The same for one event of a stream.
    fn glance_event(&self, data: &str, watch: &mut Watch) -> Result<Glance, ApiError>;

    /// The header that goes with a request's body.
    fn content_type(&self, _body: &[u8]) -> Cow<'static, str> {
        "application/json".into()
    }
    /// A model's name as it stands in a body.
    fn spelled(&self, _body: &[u8], name: &str) -> Vec<u8> {
        quoted(name)
    }
    /// Whether a reply holds what clients of this format ask for; else it is told as an error.
    fn accept_response(&self, _response: &Response<'_>) -> Result<(), ApiError> {
        Ok(())
    }

    /// Below the upstream's base URL.
    fn upstream_path(&self, operation: Operation, model: &str) -> String;
    /// What an upstream of this format is asked to do with a request that was translated for it.
    fn operation_of(&self, _request: &Request<'_>, stream: bool) -> Operation {
        match stream {
            true => Operation::Stream(Framing::Sse),
            false => Operation::Generate,
        }
    }
    /// What must be in the query of a request that was translated into this format.
    fn upstream_query(&self, _stream: bool) -> Option<&'static str> {
        None
    }
    /// A header that upstreams of this format insist on, for clients of other formats.
    fn standing_header(&self, _capabilities: &Capabilities) -> Option<(HeaderName, &'static str)> {
        None
    }
    /// Request headers that belong to the format itself and go through to an upstream of it.
    fn own_headers(&self) -> &'static [HeaderName];

    /// What its clients read of their limits; none where the format has no such headers.
    fn allowance_headers(&self, _allowance: &RateLimitStatus, _fields: &mut HeaderFields) {}
    /// How tokens are counted, in the formats that have a way to ask for it.
    fn counter(&self) -> Option<&'static dyn Counter> {
        None
    }
    /// How a conversation goes on from a reply that was kept, in the formats that have a way to.
    fn keeper(&self) -> Option<&'static dyn ConversationCodec> {
        None
    }
    /// What an upstream of the same format would refuse in a body: proofs that others gave, sealed in the fields of
    /// its own. In order.
    fn strip_foreign_signatures(&self, _body: &str, _losses: &mut Losses) -> Vec<Edit> {
        Vec::new()
    }
    /// Whether all of its clients send back the proofs they were given.
    fn clients_return_proofs(&self) -> bool {
        true
    }
    /// The header in which its SDKs look for the id of a request, beside our own.
    fn request_id_header(&self) -> Option<HeaderName> {
        None
    }
}

pub trait StreamDecoder: Send + Sync {
    /// One event's payload; what it means goes out by the grammar of [`Event`].
    fn event(&mut self, data: &str, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError>;
    /// The counts told so far, in formats that tell them long before they are final: a stream that
    /// breaks off has no other.
    fn usage_so_far(&self) -> Option<Usage> {
        None
    }
    /// What of the reply no other format says, where a client would miss it; handed out once.
    fn take_losses(&mut self) -> Losses {
        Losses::default()
    }
    /// The bytes are over. `Err`: the stream ended before its end.
    fn close(&mut self, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError>;
}

pub trait StreamEncoder: Send + Sync {
    fn event(&mut self, event: Event<'_>, out: &mut SseWriter);
    /// The format's own in-stream error; nothing may follow it.
    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter);
}

/// What is asked of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// One JSON reply, or a stream where the body says so.
    Generate,
    /// A stream because the path says so.
    Stream(Framing),
    CountTokens,
    /// Images made from images.
    Edit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Sse,
    /// A JSON array that arrives element by element.
    Array,
}

/// What is known of a request besides its body.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestHead<'a> {
    pub path_model: Option<&'a str>,
    pub stream: bool,
    /// The model is known to answer with words only.
    pub text_only: bool,
    /// Images are to be made from images.
    pub edits: bool,
    /// The sizes that the model's images may have; empty: any.
    pub sizes: &'a [ImageSize],
    /// The reply will be kept if the client wants that.
    pub keeps: bool,
    /// For clients that do not send back what they do not know.
    pub recall: Option<&'a dyn SignatureLookup>,
}

/// What a request becomes part of: one model of one upstream.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamTarget<'a> {
    /// The upstream's own name for the model.
    pub model: &'a str,
    pub stream: bool,
    /// Sent where the format requires a limit and the client gave none.
    pub max_output_tokens: Option<u64>,
    pub capabilities: &'a Capabilities,
    /// What stands for the vendor in the names of an upstream's own tools.
    pub brand: &'a str,
    /// The model answers with nothing else.
    pub pictures_only: bool,
}

/// What a reply must know of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseOptions {
    /// The id the client asked for.
    pub model: String,
    pub stream: bool,
    pub framing: Framing,
    pub include_usage: bool,
    pub request_id: String,
    /// Unix seconds.
    pub at: i64,
    pub memory: TranslationState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek<'a> {
    pub model: Option<Named<'a>>,
    pub stream: bool,
    /// What must change in the body so that the stream tells its usage; `None`: it does so already.
    pub ask_usage: Option<Edit>,
    /// `None`: the body was not looked into.
    pub most: Option<OutputLimit>,
    /// In formats that have a keeper.
    pub thread: Option<ConversationState>,
    /// What is said to the gateway alone, in formats that have a way to.
    pub aside: Option<Aside>,
}

/// A word to the gateway, which no upstream gets to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// The reply is to be fetched later.
    pub later: bool,
    /// Takes it out of the body.
    pub removal: Edit,
}

/// The longest answer that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    /// Tokens of each choice; `None`: it does not say.
    pub output: Option<u64>,
    pub choices: u64,
}

impl Default for OutputLimit {
    fn default() -> OutputLimit {
        OutputLimit::of(None, None)
    }
}

impl OutputLimit {
    /// From two fields that hold numbers; what holds none says nothing here, and is refused
    /// elsewhere.
    fn of(output: Option<RawJson<'_>>, choices: Option<RawJson<'_>>) -> OutputLimit {
        let number = |raw: RawJson<'_>| {
            let number: f64 = raw.get().trim_matches('"').parse().ok()?;
            (number >= 1.0).then_some(number as u64)
        };
        OutputLimit {
            output: output.and_then(number),
            choices: choices.and_then(number).unwrap_or(1),
        }
    }
}

/// A name in the body and the place where it stands, quotes included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'a> {
    pub name: Cow<'a, str>,
    pub range: Range<usize>,
}

/// What one piece of a reply holds that pass-through may have to touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glance {
    /// Where the model's name stands, quotes included.
    pub model: Option<Range<usize>>,
    /// Nothing but usage: not for clients that did not ask for it.
    pub usage_only: bool,
    /// No word of the format: not for clients that know only its own.
    pub is_foreign: bool,
}

impl Format {
    pub fn codec(self) -> &'static dyn Codec {
        match self {
            Format::Chat => &chat::Chat,
            Format::Messages => &messages::Messages,
            Format::Native => &native::Native,
            Format::Responses => &responses::Responses,
            Format::Images => &images::Images,
        }
    }
}

/// What is told of an upstream's error that tells nothing itself.
const NO_WORDS: &str = "upstream error";

/// What an error says, or what servers say that have no format for errors.
fn words_of<'b>(message: Option<&'b str>, body: &'b Value) -> &'b str {
    let elsewhere = ["message", "detail"].map(|key| body[key].as_str());
    let mut words = [message].into_iter().chain(elsewhere).flatten();
    words.find(|words| !words.is_empty()).unwrap_or(NO_WORDS)
}

/// A name as a JSON string.
pub fn quoted(name: &str) -> Vec<u8> {
    serde_json::to_vec(name).expect("a string is always valid JSON")
}

/// A request body, which must be an object: derived readers would take an array for one.
fn read_request<'a, T: FromJson<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    let wrong = |why: &dyn Display| ApiError::invalid(format!("the body is not valid JSON: {why}"));
    let text = str::from_utf8(body).map_err(|error| wrong(&error))?;
    json::decode_json(text).map_err(|error| wrong(&error))
}

/// A reply without the field that answers stand in: whatever it is, it is no answer.
fn no_answer() -> ApiError {
    ApiError::bad_gateway("the upstream's reply holds no answer")
}

/// An upstream's reply, which must be an object as well.
fn read_reply<'a, T: FromJson<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    let text = str::from_utf8(body).map_err(|error| unreadable(&error))?;
    read_event(text)
}

/// One event of a stream, or a part of it.
fn read_event<'a, T: FromJson<'a>>(data: &'a str) -> Result<T, ApiError> {
    json::decode_json(data).map_err(|error| unreadable(&error))
}

#[cold]
fn unreadable(why: &dyn Display) -> ApiError {
    ApiError::bad_gateway(format!("the upstream's reply is not readable: {why}"))
}

#[cfg(test)]
mod tests;
