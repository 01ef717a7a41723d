//! Replies of an upstream, read into the model.

use serde_json::{Value, json};

use crate::formats::Codec as _;
use crate::model::{
    Action, ApiError, ApiErrorKind, Citation, Finish, Issuer, Losses, PartKind, Usage,
};

fn read(body: &Value, check: impl FnOnce(crate::model::Response<'_>, Vec<Action>)) {
    let body = body.to_string();
    let mut losses = Losses::default();
    let read = super::super::Messages.decode_response(body.as_bytes(), &mut losses);
    let actions = losses.0.iter().map(|lost| lost.action).collect();
    check(read.expect("a good reply"), actions);
}

fn api_error(body: &str) -> ApiError {
    super::super::Messages
        .decode_response(body.as_bytes(), &mut Losses::default())
        .expect_err("a bad reply")
}

#[test]
fn every_reason_to_stop_is_known() {
    for (reason, finish) in [
        (json!("end_turn"), Finish::Stop),
        (json!("max_tokens"), Finish::Length),
        (
            json!("stop_sequence"),
            Finish::StopSequence(Some("END".into())),
        ),
        (json!("tool_use"), Finish::Tools),
        (json!("refusal"), Finish::Filtered(None)),
        (json!("pause_turn"), Finish::Paused),
        (json!("compaction"), Finish::Paused),
        (json!("model_context_window_exceeded"), Finish::ContextFull),
        (json!("news"), Finish::Other),
        (Value::Null, Finish::Other),
    ] {
        let body = json!({"id": "msg_1", "model": "m", "content": [], "stop_reason": reason,
            "stop_sequence": "END"});
        read(&body, |reply, lost| {
            assert_eq!(reply.choices[0].finish, finish, "{reason}");
            let is_new = reason == "news";
            assert_eq!(lost.contains(&Action::Approximated), is_new, "{reason}");
            assert_eq!(reply.usage, None);
        });
    }
}

#[test]
fn blocks_of_hosted_tools_are_left_out_and_reported() {
    let body = json!({"content": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "é."},
        {"type": "text", "text": "Yes.", "citations": [
            {"type": "char_location", "cited_text": "c", "document_index": 0},
            {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}]},
    ], "usage": {"input_tokens": 5, "cache_read_input_tokens": 80,
        "cache_creation_input_tokens": null, "output_tokens": 3}});
    read(&body, |reply, lost| {
        let choice = &reply.choices[0];
        assert_eq!(lost, [Action::Dropped; 3]);
        let signatures: Vec<Issuer> = choice
            .parts
            .iter()
            .filter_map(|part| match &part.kind {
                PartKind::Reasoning { signature, .. } => {
                    signature.as_ref().map(|signature| signature.issuer)
                }
                _ => None,
            })
            .collect();
        assert_eq!(signatures, [Issuer::Thinking, Issuer::Redacted]);
        let citation = Citation {
            url: "https://a.example".into(),
            title: Some("A".into()),
            start: 2,
            end: 6,
        };
        assert_eq!(choice.citations, [citation]);
        let usage = Usage {
            input: 85,
            cached: 80,
            output: 3,
            ..Usage::default()
        };
        assert_eq!(reply.usage, Some(usage));
    });
}

#[test]
fn arguments_keep_every_digit_of_a_number() {
    let long = r#"{"n":[12345678901234567890123],"b":1}"#;
    let short = r#"{"n":18446744073709551615,"x":2.5}"#;
    let block = |input| format!(r#"{{"type":"tool_use","id":"a","name":"f","input":{input}}}"#);
    let hosted = r#"{"type":"server_tool_use","input":{}}"#;
    let body = format!(
        r#"{{"content":[{},{hosted},{}],"stop_reason":"tool_use"}}"#,
        block(short),
        block(long)
    );
    let mut losses = Losses::default();
    let read = super::super::Messages.decode_response(body.as_bytes(), &mut losses);
    let reply = read.expect("a good reply");
    let arguments = reply.choices[0].parts.iter().map(|part| match &part.kind {
        PartKind::Call(call) => call.arguments.to_text(),
        other => panic!("a call, not {other:?}"),
    });
    assert_eq!(arguments.collect::<Vec<_>>(), [short, long]);
}

#[test]
fn what_cannot_be_read_is_the_upstreams_fault() {
    for body in [
        "<html>",
        "[]",
        r#"{"content":"text"}"#,
        r#"{"content":[1]}"#,
    ] {
        assert_eq!(api_error(body).kind, ApiErrorKind::BadGateway, "{body}");
    }
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Busy."}}"#;
    assert_eq!(api_error(error).kind, ApiErrorKind::Overloaded);
}
