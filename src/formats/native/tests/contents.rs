//! Tests of encoding conversations for an upstream.

use serde_json::{Value, json};

use super::translated::{ReportedLosses, contents, encode};
use crate::model::{Action, ApiError, Format};

/// Encodes the only part of a user's message.
fn user_part(part: Value) -> Result<(Value, ReportedLosses), ApiError> {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": [part]}]});
    let (sent, losses) = encode(Format::Chat, &body, &[])?;
    Ok((sent["contents"][0]["parts"][0].clone(), losses))
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}})
}

#[test]
fn the_first_content_is_of_the_user() {
    let (sent, losses) = contents(json!([{"role": "assistant", "content": "Hello"}]));
    assert_eq!(
        sent,
        json!([
            {"role": "user", "parts": [{"text": "(continued)"}]},
            {"role": "model", "parts": [{"text": "Hello"}]}
        ])
    );
    assert_eq!(losses, [(Action::Approximated, "turn Some(0)".to_owned())]);
}

#[test]
fn a_system_prompt_holds_only_text() {
    let input = json!([{"type": "message", "role": "system", "content": [
        {"type": "input_image", "image_url": "https://example.com/a.png"}
    ]}]);
    let body = json!({"model": "m", "input": input});
    let api_error = encode(Format::Responses, &body, &[]).unwrap_err();
    assert_eq!(api_error.status, 400);
}

#[test]
fn the_results_of_a_step_share_a_content_before_other_input() {
    let (sent, _) = contents(json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "tool_calls": [call("a", "{}"), call("b", " "), call("c", "oops")]},
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        {"role": "user", "content": "Well?"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "tool", "tool_call_id": "c", "content": " {\"n\": 1} "},
    ]));
    let answer = |id, response: Value| json!({"functionResponse": {"id": id, "name": "look", "response": response}});
    assert_eq!(
        sent[1]["parts"][2]["functionCall"]["args"],
        json!({"_raw": "oops"})
    );
    assert_eq!(sent[1]["parts"][1]["functionCall"]["args"], json!({}));
    assert_eq!(
        sent[2]["parts"],
        json!([
            answer("a", json!({"output": "A"})),
            answer("b", json!({"output": ""})),
            answer("c", json!({"n": 1}))
        ])
    );
    assert_eq!(sent[3]["parts"], json!([{"text": "Well?"}]));
}

fn result_with_image() -> Value {
    json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [
            {"type": "text", "text": "Chart:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk_"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Notes"}}
        ]}]}
    ]})
}

#[test]
fn images_of_a_result_follow_it() {
    let (sent, losses) = encode(Format::Messages, &result_with_image(), &[]).unwrap();
    let response = &sent["contents"][2]["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"output": "Chart:\n\nNotes"}));
    assert_eq!(
        sent["contents"][3],
        json!({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk/"}}]})
    );
    assert_eq!(
        losses,
        [(
            Action::Approximated,
            "part Some(2) Some(0) Some(1)".to_owned()
        )]
    );
}

#[test]
fn some_models_take_images_inside_of_results() {
    let capability = [("native_function_response_parts", "true")];
    let (sent, losses) = encode(Format::Messages, &result_with_image(), &capability).unwrap();
    assert_eq!(
        sent["contents"][2]["parts"][0]["functionResponse"]["parts"],
        json!([{"inlineData": {"mimeType": "image/png", "data": "aGk/"}}])
    );
    assert_eq!(sent["contents"].as_array().unwrap().len(), 3);
    assert_eq!(losses, []);
}

#[test]
fn a_moved_image_is_no_input_of_the_user() {
    let capability = [("native_requires_signature", "true")];
    let (sent, _) = encode(Format::Messages, &result_with_image(), &capability).unwrap();
    let signature = &sent["contents"][1]["parts"][0]["thoughtSignature"];
    assert_eq!(*signature, "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=");
}

#[test]
fn only_first_calls_since_the_last_user_input_get_a_default_signature() {
    let step = |id: &str| {
        let other = format!("{id}2");
        json!({"role": "assistant", "tool_calls": [call(id, "{}"), call(&other, "{}")]})
    };
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "One."}, step("a"), result("a"), result("a2"),
        {"role": "user", "content": "Two."}, step("b"), result("b"), result("b2"),
        step("c"), result("c"), result("c2"),
    ]});
    let capability = [("native_requires_signature", "true")];
    let (sent, losses) = encode(Format::Chat, &body, &capability).unwrap();
    let signed: Vec<_> = sent["contents"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|content| content["parts"].as_array().unwrap())
        .filter(|part| part.get("thoughtSignature").is_some())
        .map(|part| part["functionCall"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(signed, ["b", "c"]);
    assert_eq!(losses, []);
}

#[test]
fn a_result_needs_the_name_of_its_call() {
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "tool", "tool_call_id": "x", "content": "1"}
    ]});
    let api_error = encode(Format::Chat, &body, &[]).unwrap_err();
    assert_eq!(
        (api_error.status, api_error.location.is_some()),
        (400, true)
    );
    let (sent, _) = contents(json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "1"}
    ]));
    assert_eq!(
        sent[2]["parts"],
        json!([{"functionResponse": {"name": "look", "response": {"output": "1"}}}])
    );
}

/// A wrapped signature of this format, one of another format, and the first one unwrapped.
const NATIVE_SIGNATURE: &str = "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ==";
const FOREIGN_SIGNATURE: &str = "b21uaWdsb3QvMSBlCnJzXzEKeA==";
const UNWRAPPED_SIGNATURE: &str = "Q2lRQmU5L2U=";

fn assistant(content: Value) -> (Value, ReportedLosses) {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": "Go on."}
    ]});
    let (sent, losses) = encode(Format::Messages, &body, &[]).unwrap();
    (sent["contents"][1]["parts"].clone(), losses)
}

#[test]
fn a_signature_returns_to_the_part_after_it_or_the_one_before() {
    let thinking =
        |signature| json!({"type": "thinking", "thinking": "Hm.", "signature": signature});
    let redacted = json!({"type": "redacted_thinking", "data": NATIVE_SIGNATURE});
    let text = json!({"type": "text", "text": "42"});
    for (content, parts) in [
        (
            json!([thinking(NATIVE_SIGNATURE), text]),
            json!([{"text": "Hm.", "thought": true}, {"text": "42", "thoughtSignature": UNWRAPPED_SIGNATURE}]),
        ),
        (
            json!([text, redacted]),
            json!([{"text": "42", "thoughtSignature": UNWRAPPED_SIGNATURE}]),
        ),
        (
            json!([redacted, text, redacted]),
            json!([{"text": "42", "thoughtSignature": UNWRAPPED_SIGNATURE}, {"text": "", "thoughtSignature": UNWRAPPED_SIGNATURE}]),
        ),
    ] {
        assert_eq!(assistant(content), (parts, vec![]));
    }
}

#[test]
fn reasoning_without_a_signature_of_this_format_is_dropped() {
    let dropped = |part| vec![(Action::Dropped, format!("part Some(1) Some({part})"))];
    let text = json!({"type": "text", "text": "42"});
    for signature in [FOREIGN_SIGNATURE, "EqQBCkYIBRgC", ""] {
        let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": signature});
        assert_eq!(
            assistant(json!([thinking, text])),
            (json!([{"text": "42"}]), dropped(0)),
            "{signature:?}"
        );
    }
}

#[test]
fn media_is_encoded_with_its_mime_type() {
    let data = |url: &str| user_part(json!({"type": "image_url", "image_url": {"url": url}}));
    assert_eq!(
        data("data:image/gif;base64,-_8").unwrap(),
        (
            json!({"inlineData": {"mimeType": "image/gif", "data": "+/8="}}),
            vec![]
        )
    );
    let audio = json!({"type": "input_audio", "input_audio": {"data": "aGkh", "format": "mp3"}});
    assert_eq!(
        user_part(audio).unwrap().0,
        json!({"inlineData": {"mimeType": "audio/mpeg", "data": "aGkh"}})
    );
    assert_eq!(
        data("https://example.com/a/Cat.JPEG?size=1").unwrap(),
        (
            json!({"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.com/a/Cat.JPEG?size=1"}}),
            vec![]
        )
    );
    let (part, losses) = data("https://example.com/cat").unwrap();
    assert_eq!(part["fileData"]["mimeType"], "image/jpeg");
    assert_eq!(
        losses,
        [(Action::Approximated, "part Some(0) Some(0)".to_owned())]
    );
    assert_eq!(data("http://example.com/cat.png").unwrap_err().status, 400);
    let stored = json!({"type": "file", "file": {"file_id": "file-1"}});
    assert_eq!(user_part(stored).unwrap_err().status, 400);
}

#[test]
fn documents_are_encoded_with_their_mime_type() {
    let file = |part: Value| {
        let body = json!({"model": "m", "input": [{"role": "user", "content": [part]}]});
        let (sent, losses) = encode(Format::Responses, &body, &[]).unwrap();
        (sent["contents"][0]["parts"][0].clone(), losses)
    };
    assert_eq!(
        file(json!({"type": "input_file", "file_url": "https://example.com/a.csv"})).0,
        json!({"fileData": {"mimeType": "text/csv", "fileUri": "https://example.com/a.csv"}})
    );
    let (part, losses) =
        file(json!({"type": "input_file", "file_url": "https://example.com/report"}));
    assert_eq!(part["fileData"]["mimeType"], "application/pdf");
    assert_eq!(losses.len(), 1);
    let (part, losses) = file(
        json!({"type": "input_file", "file_data": "data:;base64,aGkh", "filename": "notes.md"}),
    );
    assert_eq!(
        part,
        json!({"inlineData": {"mimeType": "text/markdown", "data": "aGkh"}})
    );
    assert_eq!(
        losses,
        [(Action::Dropped, "part Some(0) Some(0) FileName".to_owned())]
    );
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi!"}}
    ]}]});
    let (sent, _) = encode(Format::Messages, &body, &[]).unwrap();
    assert_eq!(
        sent["contents"][0]["parts"],
        json!([{"inlineData": {"mimeType": "text/plain", "data": "aGkh"}}])
    );
}
