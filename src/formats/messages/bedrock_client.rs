//! Clients that speak to AWS Bedrock: what their bodies have in place of headers, and events and errors as AWS writes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde::Serialize;

use super::Messages;
use super::count_tokens::MessagesTokenCounter;
use crate::event_stream::encode_event_stream_message;
use crate::formats::{
    ErrorCodec, TokenCounter as _, decode_unique_fields, decode_unique_item, set_field,
};
use crate::json::{FromJson, RawJson, decode_json, from_json, remove_member, replace};
use crate::model::{ApiError, ApiErrorKind, Text};
use crate::sse::SseFrames;

const JSON: (&str, &str) = (":content-type", "application/json");

pub(super) const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
pub(super) const BETAS: HeaderName = HeaderName::from_static("anthropic-beta");

/// Takes the version and the betas out of a body, which other clients send in headers. The first version has another
/// name there, and needs no header.
pub fn take_headers(body: &Bytes) -> Result<(Bytes, Vec<(HeaderName, HeaderValue)>), ApiError> {
    let [version, betas] =
        decode_unique_fields(body, [&["anthropic_version"], &["anthropic_beta"]])?;
    let mut headers = Vec::new();
    if let Some(text) = version
        .value()
        .map(|raw| decode::<Text<'_>>(raw, "anthropic_version"))
    {
        let text = text?;
        let is_date = text.starts_with(|first: char| first.is_ascii_digit());
        headers.extend(is_date.then(|| (VERSION, text.into_owned())));
    }
    if let Some(list) = betas
        .value()
        .map(|raw| decode::<Vec<Text<'_>>>(raw, "anthropic_beta"))
    {
        let list = list?.join(",");
        headers.extend((!list.is_empty()).then_some((BETAS, list)));
    }
    let headers = headers.into_iter().map(|(name, value)| {
        let wrong = |_| ApiError::invalid(format!("{name}: the value cannot be that of a header"));
        Ok((name.clone(), HeaderValue::try_from(value).map_err(wrong)?))
    });
    let headers = headers.collect::<Result<_, ApiError>>()?;
    let mut rest = body.clone();
    for name in ["anthropic_version", "anthropic_beta"] {
        let [field] = decode_unique_fields(&rest, [&[name]])?;
        if let Some(raw) = field.written() {
            rest = replace(&rest, &[remove_member(&rest, raw.range_in(&rest))]);
        }
    }
    Ok((rest, headers))
}

fn decode<'a, T: FromJson<'a> + Default>(
    raw: RawJson<'a>,
    name: &'static str,
) -> Result<T, ApiError> {
    let wrong = |_| ApiError::invalid(format!("`{name}` is not of the expected type")).at(name);
    decode_json(raw.get()).map_err(wrong)
}

/// Returns a body that streams, or does not, as its path says.
pub fn set_stream(body: &Bytes, stream: bool) -> Result<Bytes, ApiError> {
    let [field] = decode_unique_fields(body, [&["stream"]])?;
    match (stream, field.written()) {
        (false, None) => Ok(body.clone()),
        (stream, _) => Ok(replace(
            body,
            &[set_field(body, &field, &stream.to_string())],
        )),
    }
}

/// Fields that say how to generate, which counters of the format refuse.
const GENERATION_FIELDS: [&str; 8] = [
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stream",
    "metadata",
    "service_tier",
];

/// Takes the request out of a client's question for its tokens: `{"input": {"invokeModel": {"body": BASE64}}}`.
pub fn decode_bedrock_count(body: &Bytes) -> Result<Bytes, ApiError> {
    let missing = |path: &'static str| {
        let message = format!(
            "`{path}` is missing: send the body of InvokeModel there, as base64; other shapes, such as that of Converse, are not taken"
        );
        ApiError::invalid(message).at(path)
    };
    let [input] = decode_unique_fields(body, [&["input"]])?;
    let input = input.value().ok_or_else(|| missing("input"))?;
    let [invoke] = decode_unique_item(input.get(), "input", [&["invokeModel"]])?;
    let invoke = invoke.value().ok_or_else(|| missing("input.invokeModel"))?;
    let [encoded] = decode_unique_item(invoke.get(), "input.invokeModel", [&["body"]])?;
    let path = "input.invokeModel.body";
    let encoded = encoded.value().ok_or_else(|| missing(path))?;
    let encoded: Text<'_> = decode(encoded, path)?;
    let decoded = STANDARD.decode(encoded.as_bytes());
    let wrong = |_| ApiError::invalid(format!("`{path}` is not valid base64")).at(path);
    let mut request = Bytes::from(decoded.map_err(wrong)?);
    for name in GENERATION_FIELDS {
        let [field] = decode_unique_fields(&request, [&[name]])?;
        if let Some(raw) = field.written() {
            request = replace(&request, &[remove_member(&request, raw.range_in(&request))]);
        }
    }
    Ok(request)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BedrockTokenCount {
    input_tokens: u64,
}

/// Encodes a count of the format as Bedrock does.
pub fn encode_bedrock_token_count(count: &[u8]) -> Result<Vec<u8>, ApiError> {
    let count = BedrockTokenCount {
        input_tokens: MessagesTokenCounter.decode_count(count)?,
    };
    Ok(serde_json::to_vec(&count).expect("a number always serialises"))
}

from_json! {
    struct ClientEvent<'a> {
        "type" required => kind: Text<'a>,
    }
}

#[derive(Serialize)]
struct ClientChunk {
    bytes: String,
}

#[derive(Serialize)]
struct AwsErrorBody<'a> {
    message: &'a str,
}

/// Encodes server-sent events of the format as messages of an event stream. An error becomes an exception, and what only
/// keeps the connection alive is left out: AWS has no such events.
pub fn encode_bedrock_events(events: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(events.len() * 2);
    let (mut frames, mut encode) = (SseFrames::default(), |data: &str| {
        encode_event(data, &mut out)
    });
    frames.push(events, |frame| {
        if let Some(data) = frame.data.as_deref() {
            encode(data);
        }
    });
    frames.finish(|frame| {
        if let Some(data) = frame.data.as_deref() {
            encode(data);
        }
    });
    out.into()
}

fn encode_event(data: &str, out: &mut Vec<u8>) {
    let kind = decode_json::<ClientEvent<'_>>(data).map(|event| event.kind);
    match kind.as_deref() {
        Ok("ping") => {}
        Ok("error") => {
            let api_error = Messages.decode_error(200, data.as_bytes());
            let name = aws_error_name(api_error.kind);
            let name = name[..1].to_ascii_lowercase() + &name[1..];
            let headers = [
                (":exception-type", &*name),
                JSON,
                (":message-type", "exception"),
            ];
            encode_event_stream_message(&headers, &error_body(&api_error.message), out);
        }
        _ => {
            let chunk = ClientChunk {
                bytes: STANDARD.encode(data),
            };
            let payload = serde_json::to_vec(&chunk).unwrap_or_default();
            let headers = [(":event-type", "chunk"), JSON, (":message-type", "event")];
            encode_event_stream_message(&headers, &payload, out);
        }
    }
}

fn error_body(message: &str) -> Vec<u8> {
    serde_json::to_vec(&AwsErrorBody { message }).expect("a struct of strings always serialises")
}

/// The name that AWS has for an error.
const fn aws_error_name(kind: ApiErrorKind) -> &'static str {
    match kind {
        ApiErrorKind::Unauthenticated => "UnrecognizedClientException",
        ApiErrorKind::Forbidden => "AccessDeniedException",
        ApiErrorKind::NotFound => "ResourceNotFoundException",
        ApiErrorKind::RateLimited | ApiErrorKind::OverQuota => "ThrottlingException",
        ApiErrorKind::Timeout => "ModelTimeoutException",
        ApiErrorKind::Overloaded => "ServiceUnavailableException",
        ApiErrorKind::Internal | ApiErrorKind::BadGateway => "InternalServerException",
        _ => "ValidationException",
    }
}

/// Encodes an error as AWS does: its name for a header, and its body.
pub fn encode_aws_error(api_error: &ApiError) -> (&'static str, Vec<u8>) {
    (
        aws_error_name(api_error.kind),
        error_body(&api_error.message),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_stream::EventStreamMessages;

    #[test]
    fn version_and_betas_become_headers() {
        for (body, rest, expected) in [
            (
                r#"{"anthropic_version":"bedrock-2023-05-31","a":1}"#,
                r#"{"a":1}"#,
                vec![],
            ),
            (
                r#"{"a":1,"anthropic_version":"2026-10-21","anthropic_beta":["x","y"]}"#,
                r#"{"a":1}"#,
                vec![
                    ("anthropic-version", "2026-10-21"),
                    ("anthropic-beta", "x,y"),
                ],
            ),
            (r#"{"anthropic_beta":[],"a":1}"#, r#"{"a":1}"#, vec![]),
            (r#"{"a":1}"#, r#"{"a":1}"#, vec![]),
        ] {
            let (left, headers) = take_headers(&Bytes::from_static(body.as_bytes())).expect(body);
            assert_eq!(left, rest);
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.to_str().expect("text")))
                .collect();
            assert_eq!(headers, expected, "{body}");
        }
        for wrong in [
            r#"{"anthropic_beta":"x"}"#,
            r#"{"anthropic_version":1}"#,
            r#"{"anthropic_beta":["a\nb"]}"#,
            r#"{"anthropic_version":"a","anthropic_version":"b"}"#,
        ] {
            assert!(
                take_headers(&Bytes::from_static(wrong.as_bytes())).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_question_for_tokens_holds_a_request() {
        let ask = |inner: &str| {
            let encoded = STANDARD.encode(inner);
            format!(r#"{{"input":{{"invokeModel":{{"body":"{encoded}"}}}}}}"#)
        };
        let inner = r#"{"anthropic_version":"x","max_tokens":9,"messages":[],"temperature":1}"#;
        let found = decode_bedrock_count(&Bytes::from(ask(inner))).expect("a request");
        assert_eq!(found, r#"{"anthropic_version":"x","messages":[]}"#);
        for (wrong, at) in [
            ("{}".to_owned(), "input"),
            (
                r#"{"input":{"converse":{}}}"#.to_owned(),
                "input.invokeModel",
            ),
            (
                r#"{"input":{"invokeModel":{}}}"#.to_owned(),
                "input.invokeModel.body",
            ),
            (
                r#"{"input":{"invokeModel":{"body":"?"}}}"#.to_owned(),
                "base64",
            ),
            (ask("no JSON"), ""),
            (ask(r#"{"max_tokens":1,"max_tokens":2}"#), "max_tokens"),
        ] {
            let error = decode_bedrock_count(&Bytes::from(wrong.clone())).expect_err(&wrong);
            assert!(error.message.contains(at), "{wrong}: {}", error.message);
        }
        let count = encode_bedrock_token_count(br#"{"input_tokens":7}"#).expect("a count");
        assert_eq!(count, br#"{"inputTokens":7}"#);
    }

    #[test]
    fn the_path_says_whether_to_stream() {
        for (body, stream, expected) in [
            (r#"{"a":1}"#, false, r#"{"a":1}"#),
            (r#"{"stream":true}"#, false, r#"{"stream":false}"#),
            (r#"{"stream":false}"#, true, r#"{"stream":true}"#),
        ] {
            let set = set_stream(&Bytes::from_static(body.as_bytes()), stream).expect(body);
            assert_eq!(set, expected);
        }
    }

    #[test]
    fn events_are_messages_and_errors_exceptions() {
        let events = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n\
                      event: ping\ndata: {\"type\":\"ping\"}\n\n: comment\n\n\
                      event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Busy.\"}}\n\n";
        let encoded = encode_bedrock_events(events.as_bytes());
        let mut messages = Vec::new();
        EventStreamMessages::default()
            .push(&encoded, usize::MAX, |message| {
                let name = message
                    .header(":event-type")
                    .or(message.header(":exception-type"));
                let payload = String::from_utf8_lossy(message.payload).into_owned();
                messages.push((name.unwrap_or_default().to_owned(), payload));
            })
            .expect("messages");
        let first = format!(
            "{{\"bytes\":\"{}\"}}",
            STANDARD.encode("{\"type\":\"message_start\"}")
        );
        let expected = [
            ("chunk", &*first),
            ("serviceUnavailableException", "{\"message\":\"Busy.\"}"),
        ];
        let messages: Vec<_> = messages
            .iter()
            .map(|(name, payload)| (&**name, &**payload))
            .collect();
        assert_eq!(messages, expected);
    }
}
