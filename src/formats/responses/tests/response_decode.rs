//! JSON responses of an upstream of this format.

use serde_json::{Value, json};

use super::*;
use crate::model::{Action, ApiErrorKind, ToolKind};

fn message(content: Value) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
}

fn text(text: &str, annotations: Value) -> Value {
    json!({"type": "output_text", "text": text, "annotations": annotations})
}

fn decoded(fields: Value) -> Result<(Response<'static>, Vec<Action>), ApiError> {
    let body = serde_json::to_vec(&fields).expect("JSON").leak();
    let mut losses = Losses::default();
    let response = Responses.decode_response(body, &mut losses)?;
    Ok((response, losses.0.iter().map(|loss| loss.action).collect()))
}

#[test]
fn every_status_becomes_a_finish() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let refusal = message(json!([{"type": "refusal", "refusal": "No."}]));
    let text_message = message(json!([text("Yes.", json!([]))]));
    let cases = [
        ("completed", Value::Null, &text_message, Finish::Stop),
        ("completed", Value::Null, &call, Finish::Tools),
        ("completed", Value::Null, &refusal, Finish::Refused),
        (
            "incomplete",
            json!("max_output_tokens"),
            &call,
            Finish::Length,
        ),
        (
            "incomplete",
            json!("max_messages"),
            &text_message,
            Finish::Length,
        ),
        (
            "incomplete",
            json!("content_filter"),
            &text_message,
            Finish::Filtered(None),
        ),
        ("incomplete", json!("steered"), &call, Finish::Other),
        ("incomplete", Value::Null, &call, Finish::Other),
        ("incomplete", json!("steered"), &text_message, Finish::Other),
        ("incomplete", Value::Null, &text_message, Finish::Other),
        ("unheard_of", Value::Null, &text_message, Finish::Other),
    ];
    for (status, reason, item, finish) in cases {
        let fields =
            json!({"status": status, "incomplete_details": {"reason": reason}, "output": [item]});
        let (response, _) = decoded(fields).expect("a response");
        assert_eq!(response.choices[0].finish, finish, "{status} {reason}");
    }
    let (response, _) = decoded(json!({"output": [text_message]})).expect("a response");
    assert_eq!(response.choices[0].finish, Finish::Stop);
    assert_eq!(response.usage, None);
}

#[test]
fn failed_responses_are_errors() {
    let failed = |code: &str| {
        let error = json!({"code": code, "message": "Sorry."});
        decoded(json!({"status": "failed", "error": error, "output": []})).expect_err("an error")
    };
    let api_error = failed("rate_limit_exceeded");
    assert_eq!(
        (api_error.kind, api_error.message.as_str()),
        (ApiErrorKind::RateLimited, "Sorry.")
    );
    assert_eq!(failed("server_error").kind, ApiErrorKind::Internal);
    for status in ["cancelled", "queued", "in_progress"] {
        let api_error = decoded(json!({"status": status, "output": []})).expect_err("an error");
        assert_eq!(api_error.kind, ApiErrorKind::BadGateway);
    }
    let api_error =
        decoded(json!({"error": {"message": "No.", "code": "context_length_exceeded"}}));
    assert_eq!(
        api_error.expect_err("an error").kind,
        ApiErrorKind::ContextTooLong
    );
    assert_eq!(
        Responses
            .decode_response(b"<html>", &mut Losses::default())
            .expect_err("an error")
            .status,
        502
    );
}

#[test]
fn citations_count_from_the_start_of_all_text() {
    let citation = |start: u64, end: u64| {
        json!({"type": "url_citation", "url": "https://a", "title": "",
        "start_index": start, "end_index": end})
    };
    let other = json!({"type": "file_citation", "file_id": "f", "index": 0});
    let (response, actions) = decoded(json!({"output": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        message(json!([text("Café.", json!([citation(0, 4)]))])),
        message(json!([text("Rome.", json!([other, citation(1, 5)]))])),
        // Beyond all that can be counted.
        message(json!([text("Oslo.", json!([citation(7, u64::MAX)]))])),
    ]}))
    .expect("a response");
    let citations = response.choices[0].citations.iter();
    let ranges: Vec<_> = citations
        .map(|citation| (citation.start, citation.end))
        .collect();
    assert_eq!(ranges, [(0, 4), (6, 10), (17, u64::MAX)]);
    assert_eq!(response.choices[0].citations[0].title, None);
    assert_eq!(actions, [Action::Dropped, Action::Dropped]);
}

#[test]
fn items_of_all_kinds_become_parts() {
    let (response, actions) = decoded(json!({"id": "resp_1", "created_at": 7.0, "output": [
        {"type": "reasoning", "id": "rs_0", "summary": []},
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": [
            {"type": "summary_text", "text": "A"}, {"type": "summary_text", "text": "B"}]},
        {"type": "reasoning", "id": "rs_2", "summary": [], "content": [
            {"type": "reasoning_text", "text": "C"}]},
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"},
        {"type": "image_generation_call", "id": "ig", "result": "AAAA", "output_format": "webp"},
    ]}))
    .expect("a response");
    assert_eq!(response.created, 7);
    let parts = &response.choices[0].parts;
    assert_eq!(parts.len(), 4);
    match &parts[0].kind {
        PartKind::Reasoning { text, signature } => {
            assert_eq!(text, "A\n\nB");
            assert_eq!(signature.as_ref().expect("a signature").data, "rs_1\nx");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(&parts[1].kind, PartKind::Reasoning { text, signature: None } if text == "C"));
    assert!(matches!(&parts[2].kind, PartKind::Call(call) if call.kind == ToolKind::Custom));
    assert!(matches!(&parts[3].kind, PartKind::Media(media) if media.mime == "image/webp"));
    assert_eq!(actions, []);
}

#[test]
fn logprobs_are_decoded() {
    let logprob = json!({"token": "A", "logprob": -0.5, "bytes": [65],
        "top_logprobs": [{"token": "B", "logprob": -1.0, "bytes": [66]}]});
    let part =
        json!({"type": "output_text", "text": "A", "annotations": [], "logprobs": [logprob]});
    let (response, _) = decoded(json!({"output": [message(json!([part]))]})).expect("a response");
    let logprob = &response.choices[0].logprobs[0];
    assert_eq!((logprob.token.as_ref(), logprob.logprob), ("A", -0.5));
    assert_eq!(logprob.top, [("B".into(), -1.0)]);
}
