//! Tests of responses to a client that did not ask for reasoning: it gets the signatures alone.

use serde_json::{Value, json};

use super::{call, choice, options, part, parts_of, response, signature, text};
use crate::formats::native::Native;
use crate::formats::{
    Framing, ResponseCodec as _, ResponseOptions, SignatureCodec as _, StreamCodec as _,
};
use crate::json::replace;
use crate::model::{Finish, Issuer, Losses, Part, PartKind, Response, Role};
use crate::sse::SseWriter;

fn hiding() -> ResponseOptions {
    let mut options = options(Framing::Sse);
    options.translation_state.hides_reasoning = true;
    options
}

fn reasoning(words: &'static str, data: &'static str) -> Part<'static> {
    let signature = (!data.is_empty()).then(|| signature(Issuer::Redacted, data));
    part(PartKind::Reasoning {
        text: words.into(),
        signature,
    })
}

fn wrapped(data: &'static str) -> String {
    signature(Issuer::Redacted, data).wrap()
}

/// The parts of the JSON response; a stream must have the same, and one more at the end.
fn sent(response: &Response<'_>) -> Value {
    let body = Native.encode_response(response, &hiding(), &mut Losses::default());
    let parts = parts_of(&serde_json::from_slice(&body).unwrap(), 0);
    let (mut encoder, mut out) = (Native.stream_encoder(&hiding()), SseWriter::default());
    response.unfold(&mut |event| encoder.encode_event(event, &mut out));
    let out = out.take();
    let stream = std::str::from_utf8(&out).unwrap();
    let chunks = stream.split_terminator("\n\n").map(|event| {
        let chunk: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
        parts_of(&chunk, 0)[0].clone()
    });
    let mut streamed: Vec<Value> = chunks.collect();
    if streamed.last() == Some(&json!({"text": ""})) {
        streamed.pop();
    }
    assert_eq!(Value::from(streamed), parts);
    parts
}

fn answer(parts: Vec<Part<'static>>) -> Response<'static> {
    response(vec![choice(parts, Finish::Stop)])
}

#[test]
fn the_signatures_come_back_in_their_order() {
    let parts = sent(&answer(vec![
        reasoning("Hm.", "one"),
        reasoning("", "two"),
        text("a"),
        reasoning("", "three"),
        call("f", "{}"),
        reasoning("", "four"),
    ]));
    let body = json!({"contents": [{"role": "model", "parts": parts}]}).to_string();
    let (request, losses) = super::decode(&body).unwrap();
    assert_eq!((request.turns[0].role, losses.len()), (Role::Model, 0));
    let found = request.turns[0].parts.iter().map(|part| match &part.kind {
        PartKind::Reasoning { signature, .. } => signature.as_ref().unwrap().data.to_string(),
        PartKind::Call(call) => format!("call {}", call.signature.as_ref().unwrap().data),
        PartKind::Text(text) => format!("text {text}"),
        other => format!("{other:?}"),
    });
    let expected = ["one", "two", "text a", "call three", "four"];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn wrapped_signatures_are_stripped_for_an_upstream_of_this_format() {
    let sealed = wrapped("one");
    let call = r#"{"functionCall":{"name":"f"}"#;
    let parts = [
        format!(r#"{{"text":"Hm.","thought":true,"thoughtSignature":"{sealed}"}}"#),
        format!(r#"{{"text":"a", "thought_signature" : "{sealed}"}}"#),
        format!(r#"{{"thoughtSignature":"{sealed}","text":"b"}}"#),
        format!(r#"{call},"thoughtSignature":"{sealed}"}}"#),
        format!(r#"{call},"thoughtSignature":"own"}}"#),
        format!(r#"{{"text":"","thoughtSignature":"{sealed}"}}"#),
    ];
    let body = format!(
        r#"{{"contents":[{{"parts":[{}]}}],"a":1}}"#,
        parts.join(", ")
    );
    let mut losses = Losses::default();
    let edits = Native.strip_foreign_signatures(&body, &mut losses);
    let stripped = format!(
        r#"{{"contents":[{{"parts":[{{"text":"a"}},{{"text":"b"}},{call}}},{call},"thoughtSignature":"own"}}]}}],"a":1}}"#
    );
    assert_eq!(replace(body.as_bytes(), &edits), stripped);
    assert_eq!(losses.0.len(), 5);
}
