//! Tests of decoding streams of an upstream.

use serde_json::{Value, json};

use super::upstream::{decode_body, decode_stream, parts, response};
use super::{Losses, call, signature, text};
use crate::formats::StreamCodec as _;
use crate::formats::native::Native;
use crate::model::{Block, Delta, Event, Finish, Fold, Issuer, PartKind};

#[test]
fn a_stream_decodes_to_the_same_response_as_its_json() {
    let signed = json!({"text": "", "thoughtSignature": "c2ln"});
    for list in [
        json!([{"text": "Hm.", "thought": true}, {"text": "42", "thoughtSignature": "c2ln"}]),
        json!([{"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"}, {"text": "42"}]),
        json!([{"text": "H", "thought": true}, {"text": "m", "thought": true}, {"text": "42"}, signed]),
        json!([{"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}, {"functionCall": {"name": "f", "args": {"b": 1, "a": 2}}}]),
        json!([{"text": "A"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "c2ln"}]),
        json!([{"text": "A", "thoughtSignature": "c2ln"}, {"text": "B", "thoughtSignature": "c2ln"}]),
        json!([{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1\n"}}]),
    ] {
        let whole = response(list.clone(), "STOP");
        let mut chunks: Vec<Value> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                let content = json!({"role": "model", "parts": [part]});
                json!({"candidates": [{"content": content}], "responseId": "r", "modelVersion": "m"})
            })
            .collect();
        chunks.push(json!({"candidates": [{"finishReason": "STOP"}]}));
        let (decoded, _) = decode_body(&whole).unwrap();
        assert_eq!(decode_stream(&chunks).unwrap(), decoded, "{list}");
        assert_eq!(decode_stream(&[whole]).unwrap(), decoded, "{list}");
    }
}

#[test]
fn a_late_signature_does_not_split_the_text() {
    let chunk = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
    let signed_reasoning = || PartKind::Reasoning {
        text: "".into(),
        signature: Some(signature(Issuer::Native, "c2ln")),
    };
    let begin = chunk(json!({"text": "Hello"}));
    let signed = chunk(json!({"text": " you", "thoughtSignature": "c2ln"}));
    let bare = chunk(json!({"thoughtSignature": "c2ln"}));
    let end = response(json!([{"text": "!"}]), "STOP");
    for (chunks, text) in [
        ([&begin, &signed, &end], "Hello you!"),
        ([&begin, &bare, &end], "Hello!"),
    ] {
        let response = decode_stream(&chunks.map(Value::clone)).unwrap();
        assert_eq!(
            parts(&response),
            [PartKind::Text(text.to_owned().into()), signed_reasoning()]
        );
    }
    let call = response(json!([{"functionCall": {"name": "f"}}]), "STOP");
    let response = decode_stream(&[begin, signed, call]).unwrap();
    assert_eq!(
        parts(&response)[..2],
        [PartKind::Text("Hello you".into()), signed_reasoning()]
    );
}

#[test]
fn a_stream_reports_an_inexact_finish_reason() {
    for (reason, reported) in [("MALFORMED_FUNCTION_CALL", 1), ("STOP", 0)] {
        let mut decoder = Native.stream_decoder();
        let body = response(json!([{"text": "Hi"}]), reason);
        decoder
            .decode_event(&body.to_string(), &mut |_| {})
            .unwrap();
        decoder.finish(&mut |_| {}).unwrap();
        assert_eq!(decoder.take_losses().0.len(), reported, "{reason}");
        assert_eq!(decoder.take_losses(), Losses::default());
    }
}

#[test]
fn a_finish_reason_may_come_early_and_be_repeated() {
    let chunks = ["Hel", "lo."].map(|text| response(json!([{"text": text}]), "STOP"));
    assert_eq!(
        parts(&decode_stream(&chunks).unwrap()),
        [PartKind::Text("Hello.".into())]
    );
}

#[test]
fn candidates_are_decoded_by_their_index() {
    let chunk = |index: u32, text: &str| {
        json!({"candidates": [{"index": index, "finishReason": "STOP",
            "content": {"parts": [{"text": text}]}}]})
    };
    let mut decoder = Native.stream_decoder();
    let mut fold = Fold::default();
    let mut out = |event: Event<'_>| fold.push(event);
    for chunk in [chunk(1, "b"), chunk(0, "a"), chunk(1, "c")] {
        decoder.decode_event(&chunk.to_string(), &mut out).unwrap();
    }
    // A proxy in between has added the end of its own streams.
    decoder.decode_event("[DONE]", &mut out).unwrap();
    decoder.finish(&mut |event| fold.push(event)).unwrap();
    let response = fold.finish();
    assert_eq!(response.choices[0].parts, [text("a")]);
    assert_eq!(response.choices[1].parts, [text("bc")]);
}

#[test]
fn partial_arguments_are_joined() {
    let chunk =
        |call: Value| json!({"candidates": [{"content": {"parts": [{"functionCall": call}]}}]});
    let end = |reason| json!({"candidates": [{"finishReason": reason}]});
    let begin = chunk(json!({"id": "call_1", "name": "get_weather", "willContinue": true}));
    let argument = chunk(json!({"willContinue": true, "partialArgs": [
        {"jsonPath": "$.city", "stringValue": "Par", "willContinue": true}]}));
    let rest = chunk(json!({"willContinue": true, "partialArgs": [
        {"jsonPath": "$.city", "stringValue": "is"}]}));
    let done = chunk(json!({}));
    let whole = call("get_weather", "{\"city\":\"Paris\"}").kind;
    let all = [begin, argument, rest, done, end("STOP")];
    let decoded = decode_stream(&all).unwrap();
    let whole = vec![whole];
    assert_eq!(parts(&decoded), whole);
    assert_eq!(decoded.choices[0].finish, Finish::Tools);
    let unfinished = [all[0].clone(), all[1].clone(), all[2].clone(), end("STOP")];
    assert_eq!(parts(&decode_stream(&unfinished).unwrap()), whole);
    let cut = [all[0].clone(), all[1].clone(), end("MAX_TOKENS")];
    let empty_text = response(json!([{"text": ""}]), "MAX_TOKENS");
    let cut_later = [all[0].clone(), all[1].clone(), empty_text];
    for cut in [cut, cut_later] {
        let decoded = decode_stream(&cut).unwrap();
        assert_eq!(
            (parts(&decoded), &decoded.choices[0].finish),
            (vec![], &Finish::Length)
        );
    }
}

#[test]
fn citations_are_sent_once_and_before_the_end_of_their_text() {
    let mut first = response(json!([{"text": "Sunny."}]), "STOP");
    first["candidates"][0]["groundingMetadata"] = json!({
        "groundingChunks": [{"web": {"uri": "https://a"}}],
        "groundingSupports": [{"segment": {"endIndex": 6}, "groundingChunkIndices": [0]}]
    });
    let mut last = first.clone();
    last["candidates"][0]["content"]["parts"] = json!([
        {"text": " Warm."}, {"functionCall": {"name": "f"}}
    ]);
    let supports = &mut last["candidates"][0]["groundingMetadata"]["groundingSupports"];
    supports
        .as_array_mut()
        .unwrap()
        .push(json!({"segment": {"startIndex": 7, "endIndex": 12}, "groundingChunkIndices": [0]}));
    let mut sent = Vec::new();
    let mut decoder = Native.stream_decoder();
    let mut out = |event: Event<'_>| match event {
        Event::Delta {
            delta: Delta::Citation(citation),
            ..
        } => sent.push((citation.start, citation.end)),
        Event::Open {
            block: Block::Call { .. },
            ..
        } => assert_eq!(sent, [(0, 6), (7, 12)]),
        _ => {}
    };
    for chunk in [first, last] {
        decoder.decode_event(&chunk.to_string(), &mut out).unwrap();
    }
    decoder.finish(&mut out).unwrap();
    assert_eq!(sent.len(), 2);
}
