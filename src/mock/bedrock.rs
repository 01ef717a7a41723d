//! The mock as AWS Bedrock: models in the path, an event stream in place of server-sent events, and errors of AWS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use super::cloud_embeddings;
use super::endpoint::MockEndpoint;
use super::plan::DeliveryPlan;
use super::request::MockRequest;
use super::response::{self, JSON, MockBody, MockResponse};
use crate::event_stream::{EVENT_STREAM, encode_event_stream_message};
use crate::formats::Operation;
use crate::json::{replace, set_member};
use crate::model::{ApiError, ApiErrorKind, Format};
use crate::sse::SseFrames;

const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// The versions that models on Bedrock know.
const VERSIONS: [&str; 2] = ["bedrock-2023-05-31", "2026-10-21"];

/// What a path below a model asks for.
#[derive(Clone, Copy)]
pub(super) enum BedrockOperation {
    Invoke,
    InvokeWithResponseStream,
    CountTokens,
}

/// Makes the response to a request whose path names this model.
pub(super) fn generate(
    operation: BedrockOperation,
    model: &str,
    received: &MockRequest,
) -> (MockResponse, DeliveryPlan) {
    if cloud_embeddings::is_embedding_model(model) {
        let (response, delivery) = cloud_embeddings::invoke(model, received);
        return (as_bedrock(response, operation), delivery);
    }
    let inner = match inner_request(operation, model, received) {
        Ok(inner) => inner,
        Err(message) => {
            return (
                error(&ApiError::invalid(message), None),
                DeliveryPlan::default(),
            );
        }
    };
    let endpoint = MockEndpoint {
        format: Format::Messages,
        operation: match operation {
            BedrockOperation::CountTokens => Operation::CountTokens,
            BedrockOperation::Invoke | BedrockOperation::InvokeWithResponseStream => {
                Operation::Generate
            }
        },
        path_model: None,
    };
    let (response, delivery) = response::generate(&endpoint, &inner);
    (as_bedrock(response, operation), delivery)
}

/// The request in the words of the messages API. `Err`: Bedrock would refuse it.
fn inner_request(
    operation: BedrockOperation,
    model: &str,
    received: &MockRequest,
) -> Result<MockRequest, String> {
    let counts = matches!(operation, BedrockOperation::CountTokens);
    let body = match counts {
        true => counted_body(&received.body)?,
        false => received.body.clone(),
    };
    let fields: Map<String, Value> = serde_json::from_slice(&body)
        .map_err(|error| format!("Malformed input request: {error}"))?;
    for name in ["model", "stream"] {
        if fields.contains_key(name) {
            return Err(format!("{name}: Extra inputs are not permitted"));
        }
    }
    let version = fields.get("anthropic_version").and_then(Value::as_str);
    if !version.is_some_and(|version| VERSIONS.contains(&version)) {
        return Err("anthropic_version: Field required".to_owned());
    }
    if !fields.contains_key("max_tokens") {
        return Err("max_tokens: Field required".to_owned());
    }
    let geographies = ["us.", "eu.", "global."];
    if counts && geographies.iter().any(|name| model.starts_with(name)) {
        return Err("The provided model doesn't support counting tokens.".to_owned());
    }
    let body = match counts {
        true => without_generation(fields, model),
        false => with_model(&body, model, operation),
    };
    Ok(MockRequest {
        head: received.head.clone(),
        sent: Some(received.body.clone()),
        body,
    })
}

fn counted_body(body: &[u8]) -> Result<Bytes, String> {
    let document: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let body = &document["input"]["invokeModel"]["body"];
    let body = body
        .as_str()
        .ok_or("input.invokeModel.body: Field required")?;
    let body = STANDARD.decode(body).map_err(|error| error.to_string())?;
    Ok(body.into())
}

/// The counter of the messages API knows no fields that say how to generate.
fn without_generation(mut fields: Map<String, Value>, model: &str) -> Bytes {
    for name in ["anthropic_version", "anthropic_beta", "max_tokens"] {
        fields.remove(name);
    }
    fields.insert("model".to_owned(), model.into());
    serde_json::to_vec(&fields)
        .expect("a document can be written again")
        .into()
}

fn with_model(body: &[u8], model: &str, operation: BedrockOperation) -> Bytes {
    let object = body.iter().position(|byte| *byte == b'{').unwrap_or(0);
    let model = Value::from(model).to_string();
    let model = set_member(body, object, "model", None, &model);
    let body = replace(body, &[model]);
    match operation {
        BedrockOperation::InvokeWithResponseStream => {
            replace(&body, &[set_member(&body, object, "stream", None, "true")])
        }
        _ => body,
    }
}

/// The response of the messages API in the words of Bedrock.
fn as_bedrock(mut response: MockResponse, operation: BedrockOperation) -> MockResponse {
    let MockBody::Whole(body) = &response.body else {
        response.content_type = EVENT_STREAM;
        if let MockBody::Chunks(chunks) = &mut response.body {
            *chunks = chunks.iter().map(|chunk| encode_chunk(chunk)).collect();
        }
        return response;
    };
    if response.status.as_u16() >= 400 {
        let api_error = Format::Messages
            .codec()
            .decode_error(response.status.as_u16(), body);
        return error(&api_error, Some(response.status));
    }
    if matches!(operation, BedrockOperation::CountTokens)
        && let Ok(count) = serde_json::from_slice::<Value>(body)
    {
        let count = json!({"inputTokens": count["input_tokens"]});
        response.body = MockBody::Whole(count.to_string().into());
    }
    response
}

/// The name that AWS has for an error.
const fn error_name(kind: ApiErrorKind, status: u16) -> &'static str {
    match (kind, status) {
        (_, 424) => "ModelErrorException",
        (ApiErrorKind::Forbidden, _) => "AccessDeniedException",
        (ApiErrorKind::Unauthenticated, _) => "UnrecognizedClientException",
        (ApiErrorKind::NotFound, _) => "ResourceNotFoundException",
        (ApiErrorKind::RateLimited | ApiErrorKind::OverQuota, _) => "ThrottlingException",
        (ApiErrorKind::Timeout, _) => "ModelTimeoutException",
        (ApiErrorKind::Overloaded, _) => "ServiceUnavailableException",
        (ApiErrorKind::Internal | ApiErrorKind::BadGateway, _) => "InternalServerException",
        _ => "ValidationException",
    }
}

fn error(api_error: &ApiError, status: Option<StatusCode>) -> MockResponse {
    let status = status.unwrap_or(StatusCode::BAD_REQUEST);
    let name = error_name(api_error.kind, status.as_u16());
    let body = json!({"message": api_error.message}).to_string();
    MockResponse {
        status,
        content_type: JSON,
        header: Some((ERROR_TYPE, HeaderValue::from_static(name))),
        body: MockBody::Whole(body.into()),
    }
}

/// One server-sent event as a message of the event stream.
fn encode_chunk(chunk: &[u8]) -> Bytes {
    let mut out = Vec::new();
    let mut frames = SseFrames::default();
    let mut encode = |data: &str| {
        let event: Value = serde_json::from_str(data).unwrap_or(Value::Null);
        if event["type"] == "error" {
            let api_error = Format::Messages.codec().decode_error(200, data.as_bytes());
            let name = error_name(api_error.kind, 200);
            let name = name[..1].to_lowercase() + &name[1..];
            let headers = [
                (":exception-type", name.as_str()),
                (":content-type", JSON),
                (":message-type", "exception"),
            ];
            let payload = json!({"message": api_error.message}).to_string();
            return encode_event_stream_message(&headers, payload.as_bytes(), &mut out);
        }
        let mut data = data.to_owned();
        if event["type"] == "message_stop" {
            let metrics =
                json!({"inputTokenCount": 1, "outputTokenCount": 1, "invocationLatency": 1});
            data.truncate(data.len().saturating_sub(1));
            data.push_str(&format!(
                ",\"amazon-bedrock-invocationMetrics\":{metrics}}}"
            ));
        }
        let headers = [
            (":event-type", "chunk"),
            (":content-type", JSON),
            (":message-type", "event"),
        ];
        // Padding hides how long an event is.
        let padding = "abcdefghijklmnopqrstuvwxyz"[..data.len() % 26].to_owned();
        let payload = json!({"bytes": STANDARD.encode(&data), "p": padding}).to_string();
        encode_event_stream_message(&headers, payload.as_bytes(), &mut out);
    };
    frames.push(chunk, |frame| {
        if let Some(data) = &frame.data {
            encode(data);
        }
    });
    out.into()
}

#[cfg(test)]
mod tests {
    use http::request::Parts;

    use super::*;

    fn received(body: &str) -> MockRequest {
        let (head, ()): (Parts, ()) = http::Request::new(()).into_parts();
        MockRequest {
            head,
            body: Bytes::copy_from_slice(body.as_bytes()),
            sent: None,
        }
    }

    #[test]
    fn what_bedrock_refuses_is_refused() {
        for (body, expected) in [
            (
                r#"{"model":"m","anthropic_version":"bedrock-2023-05-31","max_tokens":1}"#,
                "model: Extra inputs are not permitted",
            ),
            (
                r#"{"stream":false,"anthropic_version":"bedrock-2023-05-31","max_tokens":1}"#,
                "stream: Extra inputs are not permitted",
            ),
            (r#"{"max_tokens":1}"#, "anthropic_version: Field required"),
            (
                r#"{"anthropic_version":"2023-06-01","max_tokens":1}"#,
                "anthropic_version: Field required",
            ),
            (
                r#"{"anthropic_version":"2026-10-21"}"#,
                "max_tokens: Field required",
            ),
        ] {
            let refused = inner_request(BedrockOperation::Invoke, "m", &received(body));
            assert_eq!(refused.err().as_deref(), Some(expected), "{body}");
        }
    }

    #[test]
    fn model_and_stream_of_the_path_are_those_of_the_request() {
        let body = received(r#"{"anthropic_version":"2026-10-21","max_tokens":1}"#);
        let inner = inner_request(BedrockOperation::InvokeWithResponseStream, "a/b", &body);
        let inner: Value = serde_json::from_slice(&inner.expect("good").body).expect("JSON");
        let expected = json!({"anthropic_version": "2026-10-21", "max_tokens": 1, "model": "a/b", "stream": true});
        assert_eq!(inner, expected);
    }
}
