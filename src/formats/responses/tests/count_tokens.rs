//! Requests and responses of the endpoint that counts tokens.

use serde_json::{Value, json};

use super::*;
use crate::formats::Capabilities;
use crate::model::Format;

#[test]
fn only_the_fields_that_count_as_input_are_sent() {
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
        images_only: false,
    };
    let mut losses = Losses::default();
    let body = body.to_string();
    let (from, to) = (Format::Messages, Format::Responses);
    let sent =
        crate::translate::count_tokens_request(from, to, body.as_bytes(), &target, &mut losses);
    let sent = sent.expect("a question").expect("a counter");
    let sent: Value = serde_json::from_slice(&sent).expect("JSON");
    assert_eq!(
        sent,
        json!({"model": "m-1", "instructions": "Be brief.",
            "input": [{"type": "message", "role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "name": "f", "parameters": schema, "strict": false}],
            "tool_choice": "required", "parallel_tool_calls": false,
            "reasoning": {"effort": "low", "summary": "auto"}})
    );
    assert_eq!(losses.0, []);
}

#[test]
fn a_count_must_be_a_number() {
    assert_eq!(
        ResponsesTokenCounter.encode_count(7),
        br#"{"object":"response.input_tokens","input_tokens":7}"#
    );
    assert_eq!(
        ResponsesTokenCounter.decode_count(&ResponsesTokenCounter.encode_count(7)),
        Ok(7)
    );
    let error = br#"{"error":{"message":"m","type":"server_error","code":"overloaded"}}"#;
    assert_eq!(
        ResponsesTokenCounter
            .decode_count(error)
            .unwrap_err()
            .status,
        503
    );
    for bad in [&b"{}"[..], b"7", b"", br#"{"input_tokens":-7}"#] {
        assert_eq!(
            ResponsesTokenCounter.decode_count(bad).unwrap_err().status,
            502
        );
    }
}
