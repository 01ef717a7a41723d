//! Streams of an upstream, event by event.

use serde_json::{Value, json};

use super::*;
use crate::model::{Fold, PartKind, Response};

fn decoded(events: &[Value]) -> Result<Vec<String>, ApiError> {
    let mut decoder = ResponsesStreamDecoder::default();
    let mut seen = Vec::new();
    for event in events {
        decoder.decode_event(&event.to_string(), &mut |event| seen.push(brief(&event)))?;
    }
    decoder.finish(&mut |_| {})?;
    Ok(seen)
}

/// The events in a few letters each; the start and the end are the same everywhere.
fn brief(event: &Event<'_>) -> String {
    match event {
        Event::Open { block, .. } => match block {
            Block::Call { name, .. } => format!("<{name}"),
            Block::Text => "<text".to_owned(),
            Block::Refusal => "<refusal".to_owned(),
            Block::Reasoning => "<reasoning".to_owned(),
            Block::Media(_) => "<media".to_owned(),
        },
        Event::Delta { delta, .. } => match delta {
            Delta::Text(text) | Delta::Arguments(text) => text.to_string(),
            Delta::Signature(signature) => {
                format!("signature {}", signature.data.replace('\n', " "))
            }
            Delta::Citation(citation) => {
                format!("citation {}-{}", citation.start, citation.end)
            }
            Delta::Logprob(logprob) => format!("token {}", logprob.token),
        },
        Event::Close { .. } => ">".to_owned(),
        Event::Finish { reason, .. } => format!("{reason:?}"),
        Event::Usage(usage) => format!("{}+{}", usage.input, usage.output),
        Event::Start { id, .. } => format!("start {id}"),
        Event::End => "end".to_owned(),
    }
}

fn created() -> Value {
    json!({"type": "response.created", "response": {"id": "r", "model": "m", "created_at": 1, "output": []}})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": output,
        "usage": {"input_tokens": 3, "output_tokens": 2}}})
}

fn item(name: &str, index: u32, item: Value) -> Value {
    json!({"type": format!("response.output_item.{name}"), "output_index": index, "item": item})
}

fn delta(name: &str, index: u32, delta: &str) -> Value {
    json!({"type": format!("response.{name}.delta"), "output_index": index, "delta": delta})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg", "content": [{"type": "output_text", "text": text}]})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": id, "arguments": arguments})
}

/// Between the start and the finish.
fn inner(events: &[Value]) -> Vec<String> {
    let mut seen = decoded(events).expect("a whole stream");
    assert_eq!(seen.remove(0), "start r");
    let tail = seen.split_off(seen.len() - 2);
    assert_eq!(tail, ["3+2", "end"]);
    seen
}

#[test]
fn delivered_text_is_not_repeated() {
    let seen = inner(&[
        created(),
        item("added", 0, json!({"type": "message", "content": []})),
        delta("output_text", 0, "Hel"),
        delta("output_text", 0, "lo."),
        item("done", 0, message("Hello.")),
        item("added", 1, call("f", "")),
        delta("function_call_arguments", 1, "{}"),
        item("done", 1, call("f", "{}")),
        completed(json!([message("Hello."), call("f", "{}")])),
    ]);
    assert_eq!(seen, ["<text", "Hel", "lo.", ">", "<f", "{}", ">", "Tools"]);
}

#[test]
fn text_without_deltas_comes_with_the_complete_item() {
    let seen = inner(&[
        created(),
        delta("output_text", 0, "Hel"),
        item("done", 0, message("Hello.")),
        item("done", 1, call("f", "{}")),
        completed(json!([message("Hello."), call("f", "{}"), call("g", "[]")])),
    ]);
    let expected = [
        "<text", "Hel", "lo.", ">", "<f", "{}", ">", "<g", "[]", ">", "Tools",
    ];
    assert_eq!(seen, expected);
    let seen = decoded(&[completed(json!([message("Hi.")]))]).expect("a whole stream");
    assert_eq!(seen, ["start r", "<text", "Hi.", ">", "Stop", "3+2", "end"]);
}

#[test]
fn the_final_response_may_order_its_items_otherwise() {
    let search = json!({"type": "web_search_call", "id": "ws"});
    let seen = inner(&[
        created(),
        delta("output_text", 0, "Hi."),
        item("done", 0, message("Hi.")),
        completed(json!([search, message("Hi.")])),
    ]);
    assert_eq!(seen, ["<text", "Hi.", ">", "Stop"]);
}

#[test]
fn items_may_overlap() {
    let reasoning = json!({"type": "reasoning", "id": "rs", "encrypted_content": "x",
        "summary": [{"type": "summary_text", "text": "Hm."}]});
    let seen = inner(&[
        created(),
        delta("reasoning_summary_text", 0, "Hm."),
        delta("output_text", 1, "Hi."),
        item("added", 2, call("f", "")),
        item("added", 3, call("g", "")),
        delta("function_call_arguments", 3, "[]"),
        delta("function_call_arguments", 2, "{}"),
        item("done", 3, call("g", "[]")),
        item("done", 2, call("f", "{}")),
        item("done", 0, reasoning),
        completed(json!([])),
    ]);
    let expected = [
        "<reasoning",
        "Hm.",
        ">",
        "<text",
        "Hi.",
        ">",
        "<f",
        "{}",
        ">",
        "<g",
        "[]",
        ">",
        "<reasoning",
        "signature rs x",
        ">",
        "Tools",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn reasoning_is_joined_as_paragraphs_and_has_its_signature() {
    let summary = |index: u32, text: &str| {
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
            "summary_index": index, "delta": text})
    };
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let whole = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "x",
        "summary": [part("One."), part("Two.")]});
    let seen = inner(&[
        created(),
        summary(0, "One."),
        summary(1, "Tw"),
        summary(1, "o."),
        delta("reasoning_text", 0, "Not this."),
        item("done", 0, whole),
        item(
            "done",
            1,
            json!({"type": "reasoning", "id": "rs_2", "encrypted_content": "y"}),
        ),
        item(
            "done",
            2,
            json!({"type": "reasoning", "id": "rs_3", "summary": []}),
        ),
        completed(json!([])),
    ]);
    let expected = [
        "<reasoning",
        "One.",
        "\n\nTw",
        "o.",
        "signature rs_1 x",
        ">",
        "<reasoning",
        "signature rs_2 y",
        ">",
        "Stop",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn late_signatures_and_citations_come_with_the_final_response() {
    let reasoning = |signature: Value| {
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": signature,
        "summary": [{"type": "summary_text", "text": "Hm."}]})
    };
    let citation =
        json!({"type": "url_citation", "url": "https://a", "start_index": 0, "end_index": 2});
    let mut cited = message("Hi");
    cited["content"][0]["annotations"] = json!([citation]);
    let seen = inner(&[
        created(),
        delta("reasoning_summary_text", 0, "Hm."),
        item("done", 0, reasoning(Value::Null)),
        delta("output_text", 1, "Hi"),
        item("done", 1, message("Hi")),
        completed(json!([reasoning(json!("x")), cited])),
    ]);
    let expected = [
        "<reasoning",
        "Hm.",
        ">",
        "<text",
        "Hi",
        ">",
        "<reasoning",
        "signature rs_1 x",
        ">",
        "citation 0-2",
        "Stop",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn deltas_that_the_complete_item_contradicts_are_left_as_they_are() {
    let seen = inner(&[
        created(),
        delta("output_text", 0, "Hel"),
        delta("output_text", 0, "wor"),
        item("added", 1, call("f", "")),
        delta("function_call_arguments", 1, "{\"y\":"),
        completed(json!([message("Hello world"), call("f", "{\"x\":1}")])),
    ]);
    let expected = ["<text", "Hel", "wor", ">", "<f", "{\"y\":", ">", "Tools"];
    assert_eq!(seen, expected);
}

#[test]
fn citations_and_logprobs_come_with_their_text() {
    let citation =
        json!({"type": "url_citation", "url": "https://a", "start_index": 1, "end_index": 2});
    let logprob = json!({"token": "Hé", "logprob": -0.5});
    let whole = |text: &str| {
        json!({"type": "message", "content": [
        {"type": "output_text", "text": text, "annotations": [citation, citation], "logprobs": [logprob]}]})
    };
    let seen = inner(&[
        created(),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hé", "logprobs": [logprob]}),
        json!({"type": "response.output_text.annotation.added", "output_index": 0, "annotation": citation}),
        item("done", 0, whole("Hé")),
        delta("output_text", 1, "Ho"),
        item("done", 1, whole("Ho")),
        completed(json!([])),
    ]);
    let expected = [
        "<text",
        "Hé",
        "token Hé",
        "citation 1-2",
        "citation 1-2",
        ">",
        "<text",
        "Ho",
        "citation 3-4",
        "citation 3-4",
        "token Hé",
        ">",
        "Stop",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn parts_of_a_message_are_blocks_of_their_own() {
    let part = |index: u32, text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": index, "delta": text});
    let refusal = json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 2, "delta": "No."});
    let seen = inner(&[
        created(),
        part(0, "A"),
        part(1, "B"),
        refusal,
        completed(json!([])),
    ]);
    let expected = [
        "<text", "A", ">", "<text", "B", ">", "<refusal", "No.", ">", "Refused",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_stream_that_fails_or_breaks_off_is_an_error() {
    let nested =
        json!({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow."}});
    let failed = json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": "server_error", "message": "Broken."}}});
    let bare = json!({"error": {"code": "server_error", "message": "Bare."}});
    let cancelled = json!({"type": "response.completed", "response": {"status": "cancelled"}});
    for (event, status) in [(nested, 429), (failed, 500), (bare, 500), (cancelled, 502)] {
        let api_error = decoded(&[created(), event]).expect_err("an error");
        assert_eq!(api_error.status, status, "{api_error:?}");
    }
    let broken = [created(), delta("output_text", 0, "Hel")];
    assert_eq!(decoded(&broken).expect_err("an error").status, 502);
    let mut decoder = ResponsesStreamDecoder::default();
    assert!(decoder.decode_event("[DONE]", &mut |_| {}).is_ok());
    assert!(decoder.decode_event("<html>", &mut |_| {}).is_err());
    let unknown = json!({"type": "response.mcp_call_arguments.delta", "delta": {"a": 1}});
    assert!(
        decoder
            .decode_event(&unknown.to_string(), &mut |_| {})
            .is_ok()
    );
}

#[test]
fn images_come_with_the_complete_item() {
    let image = json!({"type": "image_generation_call", "id": "ig", "result": "AAAA"});
    let mut fold = Fold::default();
    let mut decoder = ResponsesStreamDecoder::default();
    for event in [created(), item("done", 0, image), completed(json!([]))] {
        let outcome = decoder.decode_event(&event.to_string(), &mut |event| fold.push(event));
        assert_eq!(outcome, Ok(()));
    }
    let response: Response<'_> = fold.finish();
    let kind = &response.choices[0].parts[0].kind;
    assert!(matches!(kind, PartKind::Media(media) if media.mime == "image/png"));
}
