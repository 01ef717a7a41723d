//! Counting tokens.

use serde_json::{Value, json};

use crate::formats::{Capabilities, Codec as _, UpstreamTarget};
use crate::model::{Format, Losses};
use crate::translate;

fn encode(from: Format, body: &Value, flags: &[(&str, &str)]) -> (Value, Losses) {
    let mut capabilities = Capabilities::default();
    for (name, value) in flags {
        capabilities.set(name, value).expect("a flag");
    }
    let target = UpstreamTarget {
        model: "m-1",
        stream: false,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "vendor",
        images_only: false,
    };
    let mut losses = Losses::default();
    let body = body.to_string();
    let body = translate::count_tokens_request(
        from,
        Format::Messages,
        body.as_bytes(),
        &target,
        &mut losses,
    );
    let body = body.expect("a request").expect("a counter");
    (serde_json::from_slice(&body).expect("JSON"), losses)
}

#[test]
fn only_the_prompt_is_encoded() {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let body = json!({"model": "m", "instructions": "Be brief.", "input": "Hi",
        "max_output_tokens": 99, "temperature": 0.5, "metadata": {"a": "b"}, "user": "u",
        "tools": [{"type": "function", "name": "f", "parameters": schema}],
        "tool_choice": "auto", "reasoning": {"effort": "high"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}});
    let (encoded, losses) = encode(Format::Responses, &body, &[]);
    assert_eq!(
        encoded,
        json!({"model": "m-1", "system": "Be brief.",
            "tools": [{"name": "f", "input_schema": schema}],
            "tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high",
                "format": {"type": "json_schema", "schema": schema}},
            "messages": [{"role": "user", "content": "Hi"}]})
    );
    let paths = losses.0.iter();
    let paths = paths.map(|loss| Format::Responses.codec().path_of(&loss.location));
    assert!(paths.eq(["text.format.name"]), "{losses:?}");
}

#[test]
fn a_budget_needs_no_max_tokens() {
    let body = json!({"model": "m", "input": "Hi", "reasoning": {"effort": "high"}});
    let flags = [("messages_thinking", "budget")];
    let (encoded, losses) = encode(Format::Responses, &body, &flags);
    let thinking = json!({"type": "enabled", "budget_tokens": 24576});
    assert_eq!(encoded["thinking"], thinking);
    assert_eq!(losses.0, []);
}

#[test]
fn a_count_is_a_number() {
    let counter = super::super::Messages.token_counter().expect("a counter");
    assert_eq!(counter.encode_count(7), br#"{"input_tokens":7}"#);
    let more = br#"{"input_tokens":7,"context_management":{"original_input_tokens":9}}"#;
    assert_eq!(counter.decode_count(more), Ok(7));
    let error = br#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;
    assert_eq!(counter.decode_count(error).unwrap_err().status, 503);
    for bad in [&b"{}"[..], b"[]", b"7", b"", br#"{"input_tokens":"7"}"#] {
        assert_eq!(counter.decode_count(bad).unwrap_err().status, 502);
    }
}
