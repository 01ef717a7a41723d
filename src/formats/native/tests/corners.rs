//! What other formats do not show: borrowed data, own signatures, paths, orders, limits and counts.

use serde_json::json;

use super::upstream::response as upstream_response;
use super::{choice, decode, encode, options, response, rich, signature, text};
use crate::formats::native::Native;
use crate::formats::native::reference_budget::ReferenceBudget;
use crate::formats::native::schema::{EncodedSchema, encode_schema};
use crate::formats::{Codec as _, FieldPaths as _, Framing, ResponseCodec as _, TokenCounter};
use crate::json::replace;
use crate::model::{
    Arguments, FieldLocation, Finish, Issuer, Losses, PartKind, Setting, Source, Text,
};

#[test]
fn text_without_escapes_is_borrowed() {
    let (request, losses) = decode(r#"{"contents":[{"parts":[{"text":"plain"}]}]}"#).unwrap();
    assert_eq!(losses, []);
    let PartKind::Text(Text::Borrowed("plain")) = &request.turns[0].parts[0].kind else {
        panic!("the text was copied");
    };
}

#[test]
fn a_large_image_is_not_copied() {
    let data = "A".repeat(1 << 16);
    let body = upstream_response(
        json!([{"inlineData": {"mimeType": "image/png", "data": data}}]),
        "STOP",
    );
    let bytes = serde_json::to_vec(&body).unwrap();
    let response = Native
        .decode_response(&bytes, &mut Losses::default())
        .unwrap();
    let PartKind::Media(media) = &response.choices[0].parts[0].kind else {
        panic!("an image");
    };
    let Source::Base64(Text::Borrowed(_)) = &media.source else {
        panic!("borrowed");
    };
}

#[test]
fn arguments_are_decoded_as_a_tree() {
    let body = upstream_response(
        json!([{"functionCall": {"name": "f", "args": {"b": 1}}}]),
        "STOP",
    );
    let bytes = serde_json::to_vec(&body).unwrap();
    let response = Native
        .decode_response(&bytes, &mut Losses::default())
        .unwrap();
    let PartKind::Call(call) = &response.choices[0].parts[0].kind else {
        panic!("a call");
    };
    assert!(matches!(call.arguments, Arguments::Tree(_)));
    assert_eq!(call.arguments.to_text(), r#"{"b":1}"#);
}

#[test]
fn thoughts_are_joined_until_a_signature() {
    let (request, losses) = decode(
        r#"{"contents":[{"role":"model","parts":[{"text":"Let ","thought":true},
        {"text":"me.","thought":true,"thoughtSignature":"b21uaWdsb3QvMSBtClJYSlZRa05yV1VsQg"},
        {"text":"More.","thought":true},{"text":"42","thoughtSignature":"Q2lR"},
        {"functionCall":{"name":"f"},"thoughtSignature":"c2ln"},{"text":"","thoughtSignature":"ZW5k"}]}]}"#,
    )
    .unwrap();
    assert_eq!(losses, []);
    let reasoning = |text: &'static str, signature| PartKind::Reasoning {
        text: text.into(),
        signature: Some(signature),
    };
    let parts: Vec<_> = request.turns[0]
        .parts
        .iter()
        .map(|part| &part.kind)
        .collect();
    assert_eq!(
        *parts[0],
        reasoning("Let me.", signature(Issuer::Thinking, "RXJVQkNrWUlB"))
    );
    assert_eq!(
        *parts[1],
        reasoning("More.", signature(Issuer::Native, "Q2lR"))
    );
    assert_eq!(*parts[2], PartKind::Text("42".into()));
    let PartKind::Call(call) = parts[3] else {
        panic!("{:?} is no call", parts[3]);
    };
    assert_eq!(call.signature, Some(signature(Issuer::Native, "c2ln")));
    assert!(matches!(&call.arguments, Arguments::Tree(tree) if tree.to_string() == "{}"));
    assert_eq!(*parts[4], reasoning("", signature(Issuer::Native, "ZW5k")));
    assert_eq!(parts.len(), 5);
}

#[test]
fn properties_keep_their_order() {
    let plain = r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}"#;
    let tree = serde_json::from_str(plain).unwrap();
    let EncodedSchema::Native { schema, .. } =
        encode_schema(&tree, &mut ReferenceBudget::default())
    else {
        panic!("the dialect can say it");
    };
    let sent = serde_json::to_string(&schema).unwrap();
    assert_eq!(
        sent,
        plain
            .replace("object", "OBJECT")
            .replace("\"string", "\"STRING")
    );
}

#[test]
fn nested_references_are_limited() {
    let mut plain = json!({"$ref": "#/$defs/d0", "$defs": {"d20": {"type": "string"}}});
    for level in 0..20 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        plain["$defs"][format!("d{level}")] = json!({"properties": {"a": next, "b": next}});
    }
    let text = plain.to_string();
    let tree = serde_json::from_str(&text).unwrap();
    let encoded = encode_schema(&tree, &mut ReferenceBudget::default());
    assert!(matches!(encoded, EncodedSchema::JsonSchema { .. }));
}

#[test]
fn finish_reasons_are_encoded() {
    for (finish, reason) in [
        (Finish::Stop, "STOP"),
        (Finish::StopSequence(Some("END".into())), "STOP"),
        (Finish::Length, "MAX_TOKENS"),
        (Finish::ContextFull, "MAX_TOKENS"),
        (Finish::Tools, "STOP"),
        (Finish::Filtered(None), "SAFETY"),
        (Finish::Refused, "STOP"),
        (Finish::Paused, "OTHER"),
        (Finish::MalformedCall, "MALFORMED_FUNCTION_CALL"),
        (Finish::Other, "OTHER"),
    ] {
        let encoded = encode(&response(vec![choice(vec![text("a")], finish)]));
        assert_eq!(encoded["candidates"][0]["finishReason"], reason);
    }
}

#[test]
fn fields_have_the_order_of_real_responses() {
    let bytes = Native.encode_response(&rich(), &options(Framing::Sse), &mut Losses::default());
    let body = String::from_utf8(bytes).unwrap();
    let positions = [
        "\"candidates\"",
        "\"usageMetadata\"",
        "\"modelVersion\"",
        "\"responseId\"",
    ]
    .map(|key| body.find(key).unwrap());
    assert!(positions.is_sorted());
}

fn counter() -> &'static dyn TokenCounter {
    Native.token_counter().expect("a counter")
}

#[test]
fn the_model_of_a_wrapped_request_is_renamed() {
    let body = br#"{ "generateContentRequest": {"model" : "models/ours", "contents": [] } }"#;
    let edit = counter().rename_model(body, "their \"m\"").expect("a name");
    assert_eq!(
        replace(body, &[edit]).as_ref(),
        br#"{ "generateContentRequest": {"model" : "models/their \"m\"", "contents": [] } }"#
    );
    for body in [
        &br#"{"contents":[]}"#[..],
        br#"{"generateContentRequest":{}}"#,
    ] {
        assert_eq!(counter().rename_model(body, "m"), None);
    }
}

#[test]
fn counts_are_encoded_and_decoded() {
    assert_eq!(counter().encode_count(7), br#"{"totalTokens":7}"#);
    let more = br#"{"totalTokens":7,"promptTokensDetails":[{"modality":"TEXT","tokenCount":7}]}"#;
    assert_eq!(counter().decode_count(more), Ok(7));
    assert_eq!(counter().decode_count(b"{}"), Ok(0));
    let error = br#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#;
    assert_eq!(counter().decode_count(error).unwrap_err().status, 503);
    for bad in [&b"[]"[..], b"7", b"", br#"{"totalTokens":"many"}"#] {
        assert_eq!(counter().decode_count(bad).unwrap_err().status, 502);
    }
}

#[test]
fn locations_have_paths() {
    let path = |location| Native.path_of(&location);
    let (turn, part) = (Some(3), Some(1));
    assert_eq!(path(FieldLocation::Turn { turn }), "contents[3]");
    assert_eq!(
        path(FieldLocation::Part { turn, part }),
        "contents[3].parts[1]"
    );
    assert_eq!(
        path(FieldLocation::Part { turn: None, part }),
        "systemInstruction.parts[1]"
    );
    assert_eq!(
        path(FieldLocation::Tool { tool: 2 << 16 | 5 }),
        "tools[2].functionDeclarations[5]"
    );
    assert_eq!(
        path(FieldLocation::Setting(Setting::TopK)),
        "generationConfig.topK"
    );
    assert_eq!(path(FieldLocation::Path("a.b".into())), "a.b");
}
