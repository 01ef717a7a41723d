//! The grammar of a stream, and that every response is encoded by it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::stream_laws::{finish, signature, start, stream};
use crate::model::{Block, Delta, Event, Finish, Issuer, ToolKind, Usage};

/// Checks the grammar of a stream that ended well, and puts its content together.
pub(super) fn content(payloads: &[Value]) -> Vec<Value> {
    let [first, middle @ .., delta, last] = payloads else {
        panic!("too short: {payloads:?}");
    };
    assert_eq!(first["type"], "message_start");
    assert_eq!(delta["type"], "message_delta");
    assert!(delta["delta"]["stop_reason"].is_string());
    assert_eq!(*last, json!({"type": "message_stop"}));
    let mut content: Vec<Value> = Vec::new();
    let mut open: Option<(Value, String)> = None;
    for payload in middle {
        assert_eq!(payload["index"], content.len(), "{payloads:?}");
        match (payload["type"].as_str(), &mut open) {
            (Some("content_block_start"), None) => {
                open = Some((payload["content_block"].clone(), String::new()));
            }
            (Some("content_block_delta"), Some((block, input))) => {
                extend(block, input, &payload["delta"]);
            }
            (Some("content_block_stop"), Some(_)) => {
                let (mut block, input) = open.take().expect("an open block");
                if block["type"] == "tool_use" {
                    block["input"] = serde_json::from_str(&input).unwrap_or(Value::Null);
                }
                content.push(block);
            }
            _ => panic!("{payload} does not fit: {payloads:?}"),
        }
    }
    assert!(open.is_none());
    content
}

fn extend(block: &mut Value, input: &mut String, delta: &Value) {
    let (kind, field, text) = match delta["type"].as_str() {
        Some("text_delta") => ("text", "text", &delta["text"]),
        Some("thinking_delta") => ("thinking", "thinking", &delta["thinking"]),
        Some("signature_delta") => ("thinking", "signature", &delta["signature"]),
        Some("input_json_delta") => {
            assert_eq!(block["type"], "tool_use");
            input.push_str(delta["partial_json"].as_str().expect("a string"));
            return;
        }
        _ => panic!("an unknown delta: {delta}"),
    };
    assert_eq!(block["type"], kind);
    assert_eq!(
        block["signature"].as_str().unwrap_or_default(),
        "",
        "the signature comes last"
    );
    let joined = format!(
        "{}{}",
        block[field].as_str().expect("a string"),
        text.as_str().expect("a string")
    );
    block[field] = joined.into();
}

fn any_delta() -> impl Strategy<Value = Delta<'static>> {
    prop_oneof![
        prop_oneof![Just(""), Just(" "), Just("a\"\n")].prop_map(|text| Delta::Text(text.into())),
        prop_oneof![Just(""), Just(" "), Just("{}")].prop_map(|text| Delta::Arguments(text.into())),
        any_issuer().prop_map(|issuer| Delta::Signature(signature(issuer))),
    ]
}

fn any_issuer() -> impl Strategy<Value = Issuer> {
    prop_oneof![
        Just(Issuer::Thinking),
        Just(Issuer::Redacted),
        Just(Issuer::Native)
    ]
}

fn any_block() -> impl Strategy<Value = Block<'static>> {
    let call = |kind| Block::Call {
        id: None,
        name: "f".into(),
        kind,
    };
    prop_oneof![
        Just(Block::Text),
        Just(Block::Refusal),
        Just(Block::Reasoning),
        Just(call(ToolKind::Function)),
        Just(call(ToolKind::Custom)),
    ]
}

fn any_group() -> impl Strategy<Value = Vec<Event<'static>>> {
    let block = (
        0u32..2,
        any_block(),
        prop::collection::vec(any_delta(), 0..5),
    );
    prop_oneof![
        5 => block.prop_map(|(choice, block, deltas)| {
            let mut events = vec![Event::Open { choice, block }];
            events.extend(deltas.into_iter().map(|delta| Event::Delta { choice, delta }));
            events.push(Event::Close { choice });
            events
        }),
        1 => Just(vec![finish(Finish::Length)]),
        1 => Just(vec![Event::Usage(Usage::default())]),
    ]
}

proptest! {
    #[test]
    fn any_events_are_encoded_as_a_legal_stream(groups in prop::collection::vec(any_group(), 0..8)) {
        let mut events = vec![start()];
        events.extend(groups.into_iter().flatten());
        events.push(Event::End);
        for block in content(&stream(&events)) {
            prop_assert_ne!(&block["text"], "");
        }
    }
}
