//! What a counter of this format is asked, and what it answers.

use serde_json::{Value, json};

use super::*;
use crate::formats::Capabilities;
use crate::model::Format;

#[test]
fn a_counter_is_told_what_is_read_and_not_how_to_answer() {
    let schema = json!({"type": "object", "properties": {}});
    let body = json!({"model": "m", "system": "Be brief.", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"name": "f", "input_schema": schema}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"},
        "metadata": {"user_id": "u"}, "stop_sequences": ["x"], "service_tier": "auto"});
    let target = UpstreamTarget {
        model: "m-1",
        stream: false,
        max_output_tokens: Some(100),
        capabilities: &Capabilities::default(),
        brand: "google",
        pictures_only: false,
    };
    let mut losses = Losses::default();
    let body = body.to_string();
    let (from, to) = (Format::Messages, Format::Responses);
    let asked = crate::translate::question(from, to, body.as_bytes(), &target, &mut losses);
    let asked = asked.expect("a question").expect("a counter");
    let asked: Value = serde_json::from_slice(&asked).expect("JSON");
    assert_eq!(
        asked,
        json!({"model": "m-1", "instructions": "Be brief.",
            "input": [{"type": "message", "role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "name": "f", "parameters": schema, "strict": false}],
            "tool_choice": "required", "parallel_tool_calls": false,
            "reasoning": {"effort": "low", "summary": "auto"}})
    );
    assert_eq!(losses.0, []);
}

#[test]
fn a_count_is_a_number_and_nothing_else_is() {
    assert_eq!(
        Count.encode_count(7),
        br#"{"object":"response.input_tokens","input_tokens":7}"#
    );
    assert_eq!(Count.decode_count(&Count.encode_count(7)), Ok(7));
    let error = br#"{"error":{"message":"m","type":"server_error","code":"overloaded"}}"#;
    assert_eq!(Count.decode_count(error).unwrap_err().status, 503);
    for bad in [&b"{}"[..], b"7", b"", br#"{"input_tokens":-7}"#] {
        assert_eq!(Count.decode_count(bad).unwrap_err().status, 502);
    }
}
