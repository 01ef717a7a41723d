//! Tests of responses to a client that did not ask for reasoning: it gets the signatures alone.

use serde_json::{Value, json};

use super::{call, choice, options, part, parts_of, response, signature, text};
use crate::formats::native::Native;
use crate::formats::{
    Framing, ResponseCodec as _, ResponseOptions, SignatureCodec as _, StreamCodec as _,
};
use crate::json::replace;
use crate::model::{
    Call, Citation, Finish, Issuer, Losses, Part, PartKind, Response, Role, Signature,
};
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
fn a_signature_goes_onto_the_part_that_follows() {
    let (one, two) = (wrapped("one"), wrapped("two"));
    let function = json!({"name": "f", "args": {}, "id": "call_1"});
    assert_eq!(
        sent(&answer(vec![
            reasoning("Hm.", "one"),
            text("a"),
            call("f", "{}")
        ])),
        json!([{"text": "a", "thoughtSignature": one}, {"functionCall": function}])
    );
    assert_eq!(
        sent(&answer(vec![reasoning("Hm.", "one"), call("f", "{}")])),
        json!([{"functionCall": function, "thoughtSignature": one}])
    );
    let refusal = part(PartKind::Refusal("No.".into()));
    assert_eq!(
        sent(&answer(vec![reasoning("", "one"), refusal])),
        json!([{"text": "No.", "thoughtSignature": one}])
    );
    // One part holds one signature.
    assert_eq!(
        sent(&answer(vec![
            reasoning("Hm.", "one"),
            reasoning("", "two"),
            text("a")
        ])),
        json!([{"text": "", "thoughtSignature": one}, {"text": "a", "thoughtSignature": two}])
    );
    assert_eq!(
        sent(&answer(vec![text("a"), reasoning("Hm.", "one")])),
        json!([{"text": "a"}, {"text": "", "thoughtSignature": one}])
    );
    assert_eq!(sent(&answer(vec![reasoning("Hm.", "")])), json!([]));
}

#[test]
fn a_signed_call_keeps_its_own_signature() {
    let mut signed = call("f", "{}");
    if let PartKind::Call(Call { signature, .. }) = &mut signed.kind {
        *signature = Some(Signature {
            issuer: Issuer::Native,
            data: "own".into(),
        });
    }
    assert_eq!(
        sent(&answer(vec![reasoning("Hm.", "one"), signed])),
        json!([
            {"text": "", "thoughtSignature": wrapped("one")},
            {"functionCall": {"name": "f", "args": {}, "id": "call_1"}, "thoughtSignature": "own"}
        ])
    );
}

#[test]
fn citations_count_the_parts_that_are_sent() {
    let mut choice = choice(
        vec![text("a"), reasoning("Hm.", "one"), text("b")],
        Finish::Stop,
    );
    choice.citations.push(Citation {
        url: "https://b.example/".into(),
        title: None,
        start: 1,
        end: 2,
    });
    let response = response(vec![choice]);
    let parts = sent(&response);
    assert_eq!(
        parts,
        json!([{"text": "a"}, {"text": "b", "thoughtSignature": wrapped("one")}])
    );
    let support = |chunk: &Value| {
        chunk["candidates"][0]["groundingMetadata"]["groundingSupports"][0]["segment"].clone()
    };
    let body = Native.encode_response(&response, &hiding(), &mut Losses::default());
    let whole: Value = serde_json::from_slice(&body).unwrap();
    let (mut encoder, mut out) = (Native.stream_encoder(&hiding()), SseWriter::default());
    response.unfold(&mut |event| encoder.encode_event(event, &mut out));
    let stream = String::from_utf8(out.take().to_vec()).unwrap();
    let last = stream.trim_end().rsplit_once("data: ").unwrap().1;
    assert_eq!(support(&whole)["text"], "b");
    assert_eq!(
        support(&serde_json::from_str(last).unwrap()),
        support(&whole)
    );
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
