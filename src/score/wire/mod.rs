//! The four formats as the scorecard knows them: written by hand from the references of the vendors, without the
//! codecs of the gateway, so that neither can hide a mistake of the other.

mod chat;
mod errors;
mod events;
mod format;
mod known_fields;
mod marks;
mod messages;
mod native;
mod responses;
mod values;

use http::HeaderMap;
use serde_json::Value;

pub use errors::{SeenError, UpstreamError};
pub use events::{Gathered, SseEvents, StreamScript};
pub use format::WireFormat;
pub use responses::stream::misnumbered;

use super::facts::{RequestFacts, ResponseFacts};
use super::said::{SaidAnswer, SaidRequest};

/// A request as it is sent.
#[derive(Debug, Clone)]
pub struct WireRequest {
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Value,
}

impl WireFormat {
    /// The request of a client for a model, with a key.
    pub fn request(self, said: &SaidRequest, model: &str, key: &str, stream: bool) -> WireRequest {
        let bearer = ("authorization", format!("Bearer {key}"));
        match self {
            WireFormat::Chat => WireRequest {
                path: "/v1/chat/completions".to_owned(),
                headers: vec![bearer],
                body: chat::request::write(said, model, stream),
            },
            WireFormat::Messages => WireRequest {
                path: "/v1/messages".to_owned(),
                headers: vec![
                    ("x-api-key", key.to_owned()),
                    ("anthropic-version", "2023-06-01".to_owned()),
                ],
                body: messages::request::write(said, model, stream),
            },
            WireFormat::Native => {
                let verb = match stream {
                    true => "streamGenerateContent?alt=sse",
                    false => "generateContent",
                };
                WireRequest {
                    path: format!("/v1beta/models/{model}:{verb}"),
                    headers: vec![("x-goog-api-key", key.to_owned())],
                    body: native::request::write(said),
                }
            }
            WireFormat::Responses => WireRequest {
                path: "/v1/responses".to_owned(),
                headers: vec![bearer],
                body: responses::request::write(said, model, stream),
            },
        }
    }

    /// Puts words before the first text of the user.
    pub fn mark(self, body: &mut Value, words: &str) {
        marks::insert(self, body, words);
    }

    /// What a request of the format says.
    pub fn read_request(self, body: &Value) -> RequestFacts {
        match self {
            WireFormat::Chat => chat::request::read(body),
            WireFormat::Messages => messages::request::read(body),
            WireFormat::Native => native::request::read(body),
            WireFormat::Responses => responses::request::read(body),
        }
    }

    /// Why a strict upstream of the format refuses a request.
    pub fn complaint(self, headers: &HeaderMap, body: &Value) -> Option<String> {
        let unknown = known_fields::unknown(self, headers, body);
        let broken = || match self {
            WireFormat::Chat => chat::strict::complaint(body),
            WireFormat::Messages => messages::strict::complaint(headers, body),
            WireFormat::Native => native::strict::complaint(body),
            WireFormat::Responses => responses::strict::complaint(body),
        };
        unknown.or_else(broken)
    }

    /// The JSON response of an upstream.
    pub fn response(self, answer: &SaidAnswer, number: u64) -> Value {
        match self {
            WireFormat::Chat => chat::response::write(answer, number),
            WireFormat::Messages => messages::response::write(answer, number),
            WireFormat::Native => native::response::write(answer, number),
            WireFormat::Responses => responses::response::write(answer, number),
        }
    }

    /// What a JSON response says.
    pub fn read_response(self, body: &Value) -> ResponseFacts {
        match self {
            WireFormat::Chat => chat::response::read(body),
            WireFormat::Messages => messages::response::read(body),
            WireFormat::Native => native::response::read(body),
            WireFormat::Responses => responses::response::read(body),
        }
    }

    /// The stream that says what a JSON response says.
    pub fn stream(self, response: &Value) -> StreamScript {
        match self {
            WireFormat::Chat => chat::stream::write(response),
            WireFormat::Messages => messages::stream::write(response),
            WireFormat::Native => native::stream::write(response),
            WireFormat::Responses => responses::stream::write(response),
        }
    }

    /// The response that a stream says.
    pub fn gather(self, events: &SseEvents) -> Gathered {
        match self {
            WireFormat::Chat => chat::stream::gather(events),
            WireFormat::Messages => messages::stream::gather(events),
            WireFormat::Native => native::stream::gather(events),
            WireFormat::Responses => responses::stream::gather(events),
        }
    }

    /// Reads the body of an error; says what is wrong with its shape.
    pub fn read_error(self, body: &Value) -> Result<SeenError, String> {
        errors::read(self, body)
    }

    /// The turn of the assistant that a client keeps of a response, to send it back.
    pub fn kept_turn(self, response: &Value) -> Value {
        match self {
            WireFormat::Chat => response["choices"][0]["message"].clone(),
            WireFormat::Messages => response["content"].clone(),
            WireFormat::Native => response["candidates"][0]["content"].clone(),
            WireFormat::Responses => response["output"].clone(),
        }
    }
}
