//! Messages by AWS Bedrock: streams, errors, and counts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::event_stream::encode_event_stream_message;
use crate::formats::{
    BedrockStream, counting_model, decode_aws_error, encode_bedrock_count, is_expired_credential,
};
use crate::model::{ApiError, ApiErrorKind};
use crate::sse::SseWriter;

const LIMIT: usize = 1 << 20;

fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode_event_stream_message(headers, payload.as_bytes(), &mut out);
    out
}

fn chunk_payload(payload: &str) -> Vec<u8> {
    let headers = [(":event-type", "chunk"), (":message-type", "event")];
    message(&headers, payload)
}

fn event(json: &str) -> Vec<u8> {
    chunk_payload(&format!(
        r#"{{"bytes":"{}","p":"abc"}}"#,
        STANDARD.encode(json)
    ))
}

fn exception(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [(":exception-type", kind), (":message-type", "exception")];
    message(&headers, payload)
}

/// The events of a stream, and how it ended.
fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (String, Result<(), ApiError>) {
    let (mut stream, mut out) = (BedrockStream::default(), SseWriter::default());
    let mut outcome = Ok(());
    for chunk in chunks {
        outcome = stream.decode_chunk(chunk, false, LIMIT, &mut out);
        if outcome.is_err() {
            break;
        }
    }
    let outcome = outcome.and_then(|()| stream.decode_chunk(b"", true, LIMIT, &mut out));
    let text = String::from_utf8(out.take().to_vec()).expect("text");
    (text, outcome)
}

#[test]
fn events_are_those_of_the_messages_api_wherever_the_stream_is_cut() {
    let stream = [
        message(&[(":event-type", "initial-response"), (":message-type", "event")], "{}"),
        event(r#"{"type":"message_start","message":{"id":"msg_1"}}"#),
        event("{\n \"type\": \"content_block_delta\",\r\n \"text\": \"a\\nb\u{2028}\"}"),
        message(&[(":event-type", "metadata"), (":message-type", "event")], "{}"),
        event(r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":7,"a":[1]}}"#),
    ]
    .concat();
    let expected = "event: message_start\n\
        data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"}}\n\n\
        event: content_block_delta\n\
        data: {  \"type\": \"content_block_delta\",   \"text\": \"a\\nb\\u2028\"}\n\n\
        event: message_stop\n\
        data: {\"type\":\"message_stop\"}\n\n";
    assert_eq!(decode([&stream[..]]), (expected.to_owned(), Ok(())));
    for at in 0..stream.len() {
        let (first, second) = stream.split_at(at);
        assert_eq!(decode([first, second]).0, expected, "{at}");
    }
    assert_eq!(decode(stream.chunks(1)), (expected.to_owned(), Ok(())));
}

#[test]
fn exceptions_become_errors_of_the_messages_api() {
    for (kind, payload, name, text) in [
        (
            "throttlingException",
            r#"{"message":"Too many tokens."}"#,
            "rate_limit_error",
            "Too many tokens.",
        ),
        (
            "modelStreamErrorException",
            r#"{"originalStatusCode":500,"originalMessage":"It broke."}"#,
            "api_error",
            "It broke.",
        ),
        (
            "internalServerException",
            "{}",
            "api_error",
            "internalServerException",
        ),
        (
            "validationException",
            r#"{"Message":"Malformed."}"#,
            "invalid_request_error",
            "Malformed.",
        ),
        (
            "modelTimeoutException",
            r#"{"message":"Slow."}"#,
            "timeout_error",
            "Slow.",
        ),
        (
            "serviceUnavailableException",
            r#"{"message":"Later."}"#,
            "overloaded_error",
            "Later.",
        ),
        ("futureException", "", "api_error", "futureException"),
    ] {
        let start = event(r#"{"type":"ping"}"#);
        let after = event(r#"{"type":"message_stop"}"#);
        let stream = [start, exception(kind, payload), after].concat();
        let (text_of_stream, outcome) = decode([&stream[..]]);
        let expected = format!(
            "event: ping\ndata: {{\"type\":\"ping\"}}\n\nevent: error\n\
             data: {{\"type\":\"error\",\"error\":{{\"type\":\"{name}\",\"message\":\"{text}\"}}}}\n\n"
        );
        assert_eq!((text_of_stream, outcome), (expected, Ok(())), "{kind}");
    }
    let headers = [
        (":message-type", "error"),
        (":error-code", "InternalFailure"),
        (":error-message", "Oh."),
    ];
    let (text, outcome) = decode([&message(&headers, "")[..]]);
    assert!(outcome.is_ok());
    assert!(
        text.contains(r#"{"type":"api_error","message":"Oh."}"#),
        "{text}"
    );
}

/// What came before is good; the rest is never a success.
#[test]
fn what_cannot_be_read_is_an_error() {
    let first = event(r#"{"type":"ping"}"#);
    let mut damaged = first.clone();
    damaged[20] ^= 1;
    for (second, expected) in [
        (
            damaged,
            "the upstream's event stream is broken: a message has a wrong checksum",
        ),
        (
            first[..30].to_vec(),
            "the upstream's event stream is broken: it ends inside of a message",
        ),
        (
            chunk_payload(r#"{"bytes":"***"}"#),
            "the upstream's event stream has an event that is no base64",
        ),
        (
            message(&[], "{}"),
            "the upstream's event stream has a message of an unknown type",
        ),
        (
            chunk_payload(""),
            "the upstream's response cannot be decoded",
        ),
        (
            chunk_payload("{}"),
            "the upstream's response cannot be decoded",
        ),
        (
            chunk_payload(r#"{"bytes":""}"#),
            "the upstream's response cannot be decoded",
        ),
        (
            event(r#"{"type":"ping""#),
            "the upstream's response cannot be decoded",
        ),
        (
            event(r#"{"delta":1}"#),
            "the upstream's response cannot be decoded",
        ),
    ] {
        let stream = [first.clone(), second].concat();
        let (text, outcome) = decode([&stream[..]]);
        assert_eq!(
            text, "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            "{expected}"
        );
        let api_error = outcome.expect_err(expected);
        assert!(
            api_error.message.starts_with(expected),
            "{}",
            api_error.message
        );
        assert_eq!(api_error.kind, ApiErrorKind::BadGateway);
    }
}

#[test]
fn errors_of_aws_are_decoded_by_name_and_status() {
    use ApiErrorKind::*;
    for (status, name, body, kind, message) in [
        (
            429,
            Some("ThrottlingException:http://internal/"),
            r#"{"message":"Slow down."}"#,
            RateLimited,
            "Slow down.",
        ),
        (
            400,
            Some("ValidationException"),
            r#"{"message":"Wrong."}"#,
            Invalid,
            "Wrong.",
        ),
        (
            400,
            Some("ServiceQuotaExceededException"),
            r#"{"message":"Enough."}"#,
            OverQuota,
            "Enough.",
        ),
        (
            403,
            Some("AccessDeniedException"),
            r#"{"Message":"No."}"#,
            Forbidden,
            "No.",
        ),
        (403, None, r#"{"Message":"No."}"#, Forbidden, "No."),
        (
            403,
            Some("ExpiredTokenException"),
            r#"{"message":"Old."}"#,
            Unauthenticated,
            "Old.",
        ),
        (
            404,
            Some("ResourceNotFoundException"),
            r#"{"message":"None."}"#,
            NotFound,
            "None.",
        ),
        (
            408,
            Some("ModelTimeoutException"),
            "{}",
            Timeout,
            "ModelTimeoutException",
        ),
        (
            424,
            Some("ModelErrorException"),
            r#"{"message":"Broken.","originalStatusCode":400}"#,
            Internal,
            "Broken.",
        ),
        (424, None, r#"{"message":"Broken."}"#, Internal, "Broken."),
        (
            429,
            Some("ModelNotReadyException"),
            r#"{"message":"Cold."}"#,
            RateLimited,
            "Cold.",
        ),
        (
            500,
            None,
            r#"{"__type":"com.amazon.coral.service#InternalFailure"}"#,
            Internal,
            "InternalFailure",
        ),
        (
            503,
            Some("ServiceUnavailableException"),
            "",
            Overloaded,
            "ServiceUnavailableException",
        ),
    ] {
        let api_error = decode_aws_error(status, name, body.as_bytes()).expect("an error of AWS");
        assert_eq!(
            (api_error.kind, &*api_error.message),
            (kind, message),
            "{name:?}"
        );
    }
    for other in [
        r#"{"error":{"message":"no such model"}}"#,
        r#"{"type":"error","error":{"type":"not_found_error","message":"m"}}"#,
        "<html>",
        "",
        "{}",
    ] {
        assert_eq!(
            decode_aws_error(404, None, other.as_bytes()),
            None,
            "{other}"
        );
    }
}

#[test]
fn expired_credentials_are_told_from_forbidden_models() {
    for (name, expired) in [
        ("ExpiredTokenException", true),
        (
            "ExpiredTokenException:http://internal.amazon.com/coral/",
            true,
        ),
        ("UnrecognizedClientException", true),
        ("InvalidSignatureException", true),
        ("AccessDeniedException", false),
        ("", false),
    ] {
        assert_eq!(is_expired_credential(name), expired, "{name}");
    }
}

#[test]
fn a_count_wraps_a_whole_request() {
    for (body, inside) in [
        (r#"{"messages":[]}"#, r#"{"max_tokens":1,"messages":[]}"#),
        (
            r#"{"max_tokens":9,"messages":[]}"#,
            r#"{"max_tokens":9,"messages":[]}"#,
        ),
    ] {
        let expected = format!(
            r#"{{"input":{{"invokeModel":{{"body":"{}"}}}}}}"#,
            STANDARD.encode(inside)
        );
        let wrapped = encode_bedrock_count(body.as_bytes()).expect("a request");
        assert_eq!(wrapped, expected.as_bytes());
    }
}

#[test]
fn geographies_are_left_out_where_tokens_are_counted() {
    for (model, expected) in [
        (
            "us.anthropic.claude-sonnet-4-5-v1:0",
            "anthropic.claude-sonnet-4-5-v1:0",
        ),
        (
            "global.anthropic.claude-opus-4-6",
            "anthropic.claude-opus-4-6",
        ),
        ("apac.anthropic.c", "anthropic.c"),
        ("anthropic.claude-opus-4-6", "anthropic.claude-opus-4-6"),
        ("eu.claude", "eu.claude"),
        (
            "arn:aws:bedrock:us-east-1::inference-profile/us.anthropic.c",
            "arn:aws:bedrock:us-east-1::inference-profile/us.anthropic.c",
        ),
    ] {
        assert_eq!(counting_model(model), expected);
    }
}
