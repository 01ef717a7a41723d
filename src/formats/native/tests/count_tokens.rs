//! Tests of counting tokens: requests and responses of `countTokens`.

use serde_json::{Value, json};

use super::super::Native;
use crate::formats::{Capabilities, Codec as _, TokenCounter, UpstreamTarget};
use crate::json::replace;
use crate::model::{Format, Losses, Role};
use crate::translate;

fn counter() -> &'static dyn TokenCounter {
    Native.token_counter().expect("a counter")
}

fn translate_count(from: Format, to: Format, body: &Value) -> (Option<Value>, Vec<String>) {
    let target = UpstreamTarget {
        model: "m-1",
        stream: false,
        max_output_tokens: None,
        capabilities: &Capabilities::default(),
        brand: "vendor",
        images_only: false,
    };
    let mut losses = Losses::default();
    let body = body.to_string();
    let translated =
        translate::count_tokens_request(from, to, body.as_bytes(), &target, &mut losses);
    let translated = translated.expect("a request");
    let paths = losses.0.iter();
    let paths = paths.map(|loss| from.codec().path_of(&loss.location));
    let parse = |bytes: Vec<u8>| serde_json::from_slice(&bytes).expect("JSON");
    (translated.map(parse), paths.collect())
}

#[test]
fn a_conversation_alone_is_sent_as_contents() {
    let body = json!({"model": "m", "max_tokens": 9, "temperature": 0.5,
        "messages": [{"role": "user", "content": "Hi"}]});
    let (sent, losses) = translate_count(Format::Messages, Format::Native, &body);
    let contents = json!([{"role": "user", "parts": [{"text": "Hi"}]}]);
    assert_eq!(sent, Some(json!({"contents": contents})));
    assert_eq!(losses, [] as [&str; 0]);
}

#[test]
fn more_than_a_conversation_is_sent_as_generate_content_request() {
    let body = json!({"model": "m", "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
        "metadata": {"user_id": "u"}});
    let (sent, losses) = translate_count(Format::Messages, Format::Native, &body);
    let sent = sent.expect("a counter");
    assert_eq!(sent.as_object().map(|fields| fields.len()), Some(1));
    let inside = &sent["generateContentRequest"];
    assert_eq!(inside["model"], "models/m-1");
    let system = json!({"parts": [{"text": "Be brief."}]});
    assert_eq!(inside["systemInstruction"], system);
    assert_eq!(inside["tools"][0]["functionDeclarations"][0]["name"], "f");
    assert_eq!(inside["contents"][0]["parts"][0]["text"], "Hi");
    assert_eq!(losses, [] as [&str; 0]);
}

#[test]
fn both_forms_of_a_count_request_are_decoded() {
    let contents = r#"[{"parts":[{"text":"Hi"}]}]"#;
    let system = r#"{"parts":[{"text":"Be brief."}]}"#;
    for (body, roles) in [
        (format!(r#"{{"contents":{contents}}}"#), &[Role::User][..]),
        (
            format!(
                r#"{{"generateContentRequest":{{"model":"models/m","contents":{contents},
                "systemInstruction":{system}}},"contents":null}}"#
            ),
            &[Role::System, Role::User],
        ),
        (
            format!(r#"{{"generate_content_request":{{"contents":{contents}}}}}"#),
            &[Role::User],
        ),
    ] {
        let mut losses = Losses::default();
        let counted = counter().decode_count_request(body.as_bytes(), &mut losses);
        let counted = counted.expect("a request");
        let turns = counted.request.turns.iter();
        assert!(turns.map(|turn| turn.role).eq(roles.iter().copied()));
        assert_eq!(losses.0, []);
    }
    let both = format!(r#"{{"generateContentRequest":{{}},"contents":{contents}}}"#);
    let api_error = counter().decode_count_request(both.as_bytes(), &mut Losses::default());
    assert_eq!(api_error.unwrap_err().param.as_deref(), Some("contents"));
}

#[test]
fn a_generate_request_has_no_wrapped_request() {
    let body = r#"{"generateContentRequest":{"contents":[{"parts":[{"text":"Hi"}]}]}}"#;
    let (request, losses) = super::decode(body).expect("a request");
    assert_eq!(request.turns, []);
    assert_eq!(losses[0].1, "generateContentRequest");
}

#[test]
fn losses_have_the_paths_of_the_client() {
    let body = json!({"generateContentRequest": {
        "contents": [{"parts": [{"text": "Hi"}]}],
        "safetySettings": [],
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 9}, "temperature": 1},
    }, "other": 1});
    let (_, losses) = translate_count(Format::Native, Format::Responses, &body);
    assert_eq!(
        losses,
        [
            "generateContentRequest.safetySettings",
            "other",
            "generateContentRequest.generationConfig.thinkingConfig"
        ]
    );
    let not_supported = translate_count(Format::Native, Format::Chat, &body).0;
    assert_eq!(not_supported, None);
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
