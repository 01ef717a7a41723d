//! Messages by AWS Bedrock: its event stream, its errors, and its count of tokens.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error;
use crate::event_stream::{EventStreamError, EventStreamMessage, EventStreamMessages};
use crate::formats::{decode_response_body, decode_unique_fields, set_field};
use crate::json::{RawJson, decode_value, from_json, remove_member, replace};
use crate::model::{ApiError, ApiErrorKind, Text, truncated};
use crate::sse::SseWriter;

from_json! {
    /// The payload of an event; more fields pad it.
    struct BedrockChunk<'a> {
        "bytes" required => bytes: Text<'a>,
    }
}

from_json! {
    struct BedrockEvent<'a> {
        "type" required => kind: Text<'a>,
        // What Bedrock adds to the last event.
        "amazon-bedrock-invocationMetrics" => metrics: Option<RawJson<'a>>,
    }
}

/// The header with the name of an error.
pub const AWS_ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// Turns the event stream of Bedrock into the server-sent events of the format.
#[derive(Debug, Default)]
pub struct BedrockStream {
    messages: EventStreamMessages,
    /// An error was the last event.
    failed: bool,
}

impl BedrockStream {
    /// The number of bytes of a message that is not complete yet.
    pub fn buffered(&self) -> usize {
        self.messages.buffered()
    }

    /// Writes the events that a chunk completes. An error of Bedrock becomes an event of the format; `Err` is a stream
    /// that cannot be read any further. `end`: no other chunk follows.
    pub fn decode_chunk(
        &mut self,
        chunk: &[u8],
        end: bool,
        limit: usize,
        out: &mut SseWriter,
    ) -> Result<(), ApiError> {
        let (failed, mut unreadable) = (&mut self.failed, None);
        let pushed = self.messages.push(chunk, limit, |message| {
            if *failed || unreadable.is_some() {
                return;
            }
            let written = match decode_message(&message) {
                Ok(BedrockMessage::Event(json)) => write_event(&json, out),
                Ok(BedrockMessage::Failure(api_error)) => {
                    *failed = true;
                    error::encode_in_stream(&api_error, out);
                    Ok(())
                }
                Ok(BedrockMessage::Other) => Ok(()),
                Err(api_error) => Err(api_error),
            };
            unreadable = written.err();
        });
        let finished = match end && !self.failed {
            true => pushed.and_then(|()| self.messages.finish()),
            false => pushed,
        };
        match (unreadable, finished) {
            (Some(api_error), _) => Err(api_error),
            (None, Err(error)) => Err(broken(error)),
            (None, Ok(())) => Ok(()),
        }
    }
}

fn broken(error: EventStreamError) -> ApiError {
    ApiError::bad_gateway(format!("the upstream's event stream is broken: {error}"))
}

enum BedrockMessage {
    /// The JSON of an event of the format.
    Event(Vec<u8>),
    Failure(ApiError),
    /// Nothing of the response.
    Other,
}

fn decode_message(message: &EventStreamMessage<'_>) -> Result<BedrockMessage, ApiError> {
    let malformed =
        |what: &str| ApiError::bad_gateway(format!("the upstream's event stream has {what}"));
    match message.header(":message-type") {
        Some("event") if message.header(":event-type") == Some("chunk") => {
            let chunk: BedrockChunk<'_> = decode_response_body(message.payload)?;
            let json = STANDARD.decode(chunk.bytes.as_bytes());
            let json = json.map_err(|_| malformed("an event that is no base64"))?;
            Ok(BedrockMessage::Event(json))
        }
        // `initial-response`, and what may be added to streams.
        Some("event") => Ok(BedrockMessage::Other),
        Some("exception") => {
            let kind = message.header(":exception-type").unwrap_or_default();
            let failure = decode_failure(kind, message.payload);
            Ok(BedrockMessage::Failure(failure))
        }
        Some("error") => {
            let code = message.header(":error-code").unwrap_or_default();
            let mut failure = decode_failure(code, b"");
            if let Some(text) = message.header(":error-message") {
                failure.message = text.to_owned();
            }
            Ok(BedrockMessage::Failure(failure))
        }
        _ => Err(malformed("a message of an unknown type")),
    }
}

/// Writes one event, without what Bedrock adds.
fn write_event(json: &[u8], out: &mut SseWriter) -> Result<(), ApiError> {
    let event: BedrockEvent<'_> = decode_response_body(json)?;
    let without;
    let own = match event.metrics {
        Some(metrics) => {
            without = replace(json, &[remove_member(json, metrics.range_in(json))]);
            &without
        }
        None => json,
    };
    let text = str::from_utf8(own).unwrap_or_default();
    // White space between the values of a document may end lines; that in its texts is escaped.
    let text: Cow<'_, str> = match text.contains(['\n', '\r']) {
        true => text.replace(['\n', '\r'], " ").into(),
        false => text.into(),
    };
    let raw: &RawValue = serde_json::from_str(&text).map_err(|error| {
        ApiError::bad_gateway(format!("the upstream's event is no JSON: {error}"))
    })?;
    out.event(&event_name(&event.kind), &raw);
    Ok(())
}

/// The name of an event, which must stay on its line.
fn event_name(kind: &str) -> Cow<'_, str> {
    match kind.contains(['\n', '\r']) {
        true => kind.replace(['\n', '\r'], " ").into(),
        false => kind.into(),
    }
}

fn decode_failure(kind: &str, payload: &[u8]) -> ApiError {
    let body = decode_value(payload);
    let kind_of_error = failure_kind(kind);
    ApiError::new(
        kind_of_error.unwrap_or(ApiErrorKind::Internal),
        failure_message(kind, &body),
    )
}

/// The message of an error; without one, its name.
fn failure_message(kind: &str, body: &Value) -> String {
    let messages = ["message", "Message", "originalMessage"].map(|key| body[key].as_str());
    let mut messages = messages.into_iter().flatten();
    let message = messages.find(|message| !message.is_empty());
    match (message, kind) {
        (Some(message), _) => message.to_owned(),
        (None, "") => "upstream error".to_owned(),
        (None, kind) => truncated(kind).into_owned(),
    }
}

/// What an error of AWS means, by its name: `ThrottlingException`, in streams `throttlingException`.
fn failure_kind(name: &str) -> Option<ApiErrorKind> {
    let name = name.strip_suffix("Exception").unwrap_or(name);
    Some(match name.to_ascii_lowercase().as_str() {
        "validation" => ApiErrorKind::Invalid,
        "accessdenied" => ApiErrorKind::Forbidden,
        "unrecognizedclient"
        | "expiredtoken"
        | "invalidsignature"
        | "incompletesignature"
        | "missingauthenticationtoken"
        | "invalidclienttokenid" => ApiErrorKind::Unauthenticated,
        "resourcenotfound" => ApiErrorKind::NotFound,
        "throttling" | "toomanyrequests" | "modelnotready" => ApiErrorKind::RateLimited,
        "servicequotaexceeded" => ApiErrorKind::OverQuota,
        "modeltimeout" => ApiErrorKind::Timeout,
        "serviceunavailable" => ApiErrorKind::Overloaded,
        "internalserver" | "internalfailure" | "model" | "modelerror" | "modelstreamerror" => {
            ApiErrorKind::Internal
        }
        _ => return None,
    })
}

/// Decodes an error of the services of AWS, whatever the format of the upstream: `{"message": …}`, and the name of the
/// error in a header. `None`: the body is another error.
pub fn decode_aws_error(status: u16, name: Option<&str>, body: &[u8]) -> Option<ApiError> {
    let body = decode_value(body);
    if body.get("error").is_some() {
        return None;
    }
    // The header may go on with an address: `ThrottlingException:http://…`.
    let name = name.or_else(|| body["__type"].as_str()).unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    let name = name.rsplit('#').next().unwrap_or_default();
    let has_message = ["message", "Message"]
        .iter()
        .any(|key| body[key].is_string());
    if name.is_empty() && !has_message {
        return None;
    }
    let kind = failure_kind(name).unwrap_or_else(|| match status {
        // A model that failed: another upstream may do better.
        424 => ApiErrorKind::Internal,
        status => ApiErrorKind::from_status(status),
    });
    Some(ApiError::new(kind, failure_message(name, &body)))
}

/// Tells whether the name of an error of AWS says that credentials, or a signature made with them, are not valid any more.
/// A model that the credentials may not use is another error.
pub fn is_expired_credential(name: &str) -> bool {
    let name = name.split(':').next().unwrap_or_default();
    let name = name.strip_suffix("Exception").unwrap_or(name);
    let expired = [
        "ExpiredToken",
        "UnrecognizedClient",
        "InvalidClientTokenId",
        "InvalidSignature",
    ];
    expired.contains(&name)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BedrockCountInput<'a> {
    input: BedrockCountSource<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BedrockCountSource<'a> {
    invoke_model: BedrockCountBody<'a>,
}

#[derive(Serialize)]
struct BedrockCountBody<'a> {
    body: &'a str,
}

/// Wraps a request for a count as Bedrock wants it: a whole request, with a limit of the output.
pub fn encode_bedrock_count(body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let [limit] = decode_unique_fields(body, [&["max_tokens"]])?;
    let body: Cow<'_, [u8]> = match limit.written() {
        Some(_) => body.into(),
        None => replace(body, &[set_field(body, &limit, "1")])
            .to_vec()
            .into(),
    };
    let body = STANDARD.encode(body);
    let input = BedrockCountInput {
        input: BedrockCountSource {
            invoke_model: BedrockCountBody { body: &body },
        },
    };
    Ok(serde_json::to_vec(&input).expect("a struct of strings always serialises"))
}

/// The model that counts the tokens of an inference profile: the profile's own id has a geography before it.
pub fn counting_model(model: &str) -> &str {
    let geographies = [
        "us.", "us-gov.", "eu.", "apac.", "ap.", "jp.", "au.", "ca.", "global.",
    ];
    let mut found = geographies
        .iter()
        .filter_map(|geography| model.strip_prefix(geography));
    found.find(|rest| rest.contains('.')).unwrap_or(model)
}
