//! Streams to clients, event by event, checked against the order that the format prescribes.

use serde_json::{Value, json};

use super::super::super::response::encode_tests::options;
use super::*;
use crate::model::{Issuer, Logprob};
use crate::sse::SseFrames;

#[path = "stream_laws.rs"]
mod laws;

/// What was written, after a check that names and numbers are right.
fn events_in(out: &mut SseWriter) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    let mut frames = SseFrames::default();
    let mut check_frame = |frame: crate::sse::SseFrame<'_>| {
        let data = frame.data.expect("data");
        let event: Value = serde_json::from_str(&data).expect("JSON");
        assert_eq!(event["type"], frame.name.as_ref());
        assert_eq!(event["sequence_number"], events.len());
        events.push(event);
    };
    frames.push(&out.take(), &mut check_frame);
    frames.finish(&mut check_frame);
    events
}

fn stream(events: &[Event<'_>]) -> Vec<Value> {
    let mut encoder = ResponsesStreamEncoder::new(&options("m-1"));
    let mut out = SseWriter::default();
    for event in events {
        encoder.encode_event(event.clone(), &mut out);
    }
    events_in(&mut out)
}

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .map(|name| name.strip_prefix("response.").unwrap_or(name))
        .collect()
}

/// Checks the order of the events: one item at a time, ids that agree, deltas that add up, a final response that
/// contains the items. Returns the final response.
fn check(events: &[Value]) -> Value {
    assert_eq!(names(events)[..2], ["created", "in_progress"]);
    let (last, body) = events[2..].split_last().expect("an end");
    let mut done: Vec<Value> = Vec::new();
    let mut open: Option<Value> = None;
    let mut written = String::new();
    for (event, name) in body.iter().zip(names(body)) {
        if name != "output_item.added" {
            let item = open.as_ref().expect("an open item");
            let id = event.get("item_id").unwrap_or(&event["item"]["id"]);
            assert_eq!(*id, item["id"]);
            assert_eq!(event["output_index"], done.len());
        }
        match name {
            "output_item.added" => {
                assert!(open.is_none(), "items never overlap");
                assert_eq!(event["output_index"], done.len());
                open = Some(event["item"].clone());
                written.clear();
            }
            "output_item.done" => {
                done.push(event["item"].clone());
                open = None;
            }
            "content_part.added" | "reasoning_summary_part.added" => written.clear(),
            "output_text.annotation.added" => {}
            _ if name.ends_with(".delta") => written += event["delta"].as_str().expect("text"),
            "content_part.done" | "reasoning_summary_part.done" => {
                let part = &event["part"];
                let text = part.get("text").unwrap_or(&part["refusal"]);
                assert_eq!(*text, written);
            }
            _ if name.ends_with(".done") => {
                let keys = ["text", "refusal", "arguments", "input"];
                let whole = keys.iter().find_map(|key| event.get(key));
                assert_eq!(whole, Some(&Value::from(written.as_str())));
            }
            "image_generation_call.in_progress" | "image_generation_call.completed" => {}
            other => panic!("{other}"),
        }
    }
    assert!(open.is_none(), "every item is closed");
    let name = names(std::slice::from_ref(last))[0];
    assert_eq!(last["response"]["status"], name);
    let without_annotations = |items: &[Value]| {
        let mut items = items.to_vec();
        for content in items
            .iter_mut()
            .filter_map(|item| item["content"].as_array_mut())
        {
            content
                .iter_mut()
                .for_each(|part| part["annotations"] = Value::Null);
        }
        items
    };
    let output = last["response"]["output"].as_array().expect("items");
    assert_eq!(without_annotations(output), without_annotations(&done));
    last["response"].clone()
}

fn open(block: Block<'static>) -> Event<'static> {
    Event::Open { choice: 0, block }
}

fn delta(delta: Delta<'static>) -> Event<'static> {
    Event::Delta { choice: 0, delta }
}

fn text(delta_text: &'static str) -> Event<'static> {
    delta(Delta::Text(delta_text.into()))
}

const CLOSE: Event<'static> = Event::Close { choice: 0 };

fn start() -> Event<'static> {
    Event::Start {
        id: "chatcmpl-1".into(),
        model: "upstream-name".into(),
        created: 1_760_000_000,
    }
}

fn finish(reason: Finish<'static>) -> Event<'static> {
    Event::Finish { choice: 0, reason }
}

fn call(id: Option<&'static str>) -> Event<'static> {
    open(Block::Call {
        id: id.map(Into::into),
        name: "get_weather".into(),
        kind: ToolKind::Function,
    })
}

fn arguments(delta_text: &'static str) -> Event<'static> {
    delta(Delta::Arguments(delta_text.into()))
}

fn signature(issuer: Issuer, data: &'static str) -> Event<'static> {
    let data = data.into();
    delta(Delta::Signature(Signature { issuer, data }))
}

#[test]
fn text_and_a_call_are_encoded_event_by_event() {
    let usage = Usage {
        input: 20,
        output: 12,
        ..Usage::default()
    };
    let events = stream(&[
        start(),
        open(Block::Text),
        text("Ok."),
        CLOSE,
        call(Some("call_1")),
        arguments("{\"city\":"),
        arguments("\"Paris\"}"),
        CLOSE,
        finish(Finish::Tools),
        Event::Usage(usage),
        Event::End,
    ]);
    check(&events);
    let frame = json!({"id":"resp_1","object":"response","created_at":1_760_000_000,
        "status":"in_progress","error":null,"incomplete_details":null,"model":"m-1","output":[],
        "parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":null});
    let message = json!({"type":"message","id":"msg_1_0","status":"completed","role":"assistant",
        "content":[{"type":"output_text","text":"Ok.","annotations":[]}]});
    let function = json!({"type":"function_call","id":"fc_call_1","call_id":"call_1",
        "name":"get_weather","arguments":"{\"city\":\"Paris\"}","status":"completed"});
    let mut whole = frame.clone();
    whole["status"] = "completed".into();
    whole["output"] = json!([message, function]);
    whole["usage"] = json!({"input_tokens":20,
        "input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":12,
        "output_tokens_details":{"reasoning_tokens":0},"total_tokens":32});
    let expected = json!([
        {"type":"response.created","sequence_number":0,"response":frame},
        {"type":"response.in_progress","sequence_number":1,"response":frame},
        {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":
            {"type":"message","id":"msg_1_0","status":"in_progress","role":"assistant","content":[]}},
        {"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1_0",
            "output_index":0,"content_index":0,
            "part":{"type":"output_text","text":"","annotations":[]}},
        {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1_0",
            "output_index":0,"content_index":0,"delta":"Ok.","logprobs":[]},
        {"type":"response.output_text.done","sequence_number":5,"item_id":"msg_1_0",
            "output_index":0,"content_index":0,"text":"Ok.","logprobs":[]},
        {"type":"response.content_part.done","sequence_number":6,"item_id":"msg_1_0",
            "output_index":0,"content_index":0,
            "part":{"type":"output_text","text":"Ok.","annotations":[]}},
        {"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":message},
        {"type":"response.output_item.added","sequence_number":8,"output_index":1,"item":
            {"type":"function_call","id":"fc_call_1","call_id":"call_1","name":"get_weather",
             "arguments":"","status":"in_progress"}},
        {"type":"response.function_call_arguments.delta","sequence_number":9,
            "item_id":"fc_call_1","output_index":1,"delta":"{\"city\":"},
        {"type":"response.function_call_arguments.delta","sequence_number":10,
            "item_id":"fc_call_1","output_index":1,"delta":"\"Paris\"}"},
        {"type":"response.function_call_arguments.done","sequence_number":11,
            "item_id":"fc_call_1","output_index":1,"arguments":"{\"city\":\"Paris\"}"},
        {"type":"response.output_item.done","sequence_number":12,"output_index":1,"item":function},
        {"type":"response.completed","sequence_number":13,"response":whole},
    ]);
    assert_eq!(Value::Array(events), expected);
}

#[test]
fn reasoning_is_a_summary_and_a_late_signature_is_an_item_of_its_own() {
    let events = stream(&[
        start(),
        open(Block::Reasoning),
        text("Think"),
        text("ing."),
        CLOSE,
        open(Block::Text),
        text("42"),
        CLOSE,
        open(Block::Reasoning),
        signature(Issuer::Native, "Q2lRQmU5L2U="),
        CLOSE,
        finish(Finish::Stop),
        Event::End,
    ]);
    check(&events);
    assert_eq!(
        names(&events)[2..],
        [
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "output_item.done",
            "completed",
        ]
    );
    assert_eq!(
        events[2]["item"],
        json!({"type":"reasoning","id":"rs_1_0","summary":[]})
    );
    assert_eq!(
        events[7]["part"],
        json!({"type":"summary_text","text":"Thinking."})
    );
    assert_eq!(
        events[16]["item"],
        json!({"type":"reasoning","id":"rs_1_2","summary":[],
            "encrypted_content":"b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ=="})
    );
}

#[test]
fn the_last_item_of_a_truncated_response_is_incomplete() {
    let events = stream(&[
        start(),
        open(Block::Text),
        text("Hel"),
        CLOSE,
        finish(Finish::Length),
        Event::End,
    ]);
    let response = check(&events);
    assert_eq!(
        response["incomplete_details"]["reason"],
        "max_output_tokens"
    );
    assert_eq!(events[events.len() - 2]["item"]["status"], "incomplete");
}

#[test]
fn adjacent_texts_are_joined_and_annotations_are_sent_while_the_text_is_open() {
    let citation = |start, end| {
        let (url, title) = ("https://a.example".into(), None);
        delta(Delta::Citation(Citation {
            url,
            title,
            start,
            end,
        }))
    };
    let events = stream(&[
        start(),
        open(Block::Text),
        text("Café"),
        CLOSE,
        call(Some("c")),
        CLOSE,
        open(Block::Text),
        text("One."),
        CLOSE,
        open(Block::Text),
        text(" Two."),
        CLOSE,
        citation(4, 8),
        citation(0, 4),
        finish(Finish::Stop),
        Event::End,
    ]);
    let response = check(&events);
    let sent: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "response.output_text.annotation.added")
        .collect();
    assert_eq!(sent.len(), 1, "the other text was closed by then");
    assert_eq!(sent[0]["annotation"]["start_index"], 0);
    assert_eq!(sent[0]["annotation"]["title"], "");
    let annotations = |item: usize| response["output"][item]["content"][0]["annotations"].clone();
    assert_eq!(annotations(2)[0], sent[0]["annotation"]);
    assert_eq!(annotations(0)[0]["end_index"], 4);
    assert_eq!(response["output"][2]["content"][0]["text"], "One. Two.");
    assert_eq!(response["output"][1]["arguments"], "{}");
}

#[test]
fn a_late_signature_of_a_call_is_sent_after_it() {
    let events = stream(&[
        start(),
        call(None),
        arguments("{}"),
        signature(Issuer::Native, "x"),
        CLOSE,
        finish(Finish::Tools),
        Event::End,
    ]);
    let response = check(&events);
    assert_eq!(response["output"][0]["type"], "function_call");
    assert_eq!(response["output"][1]["type"], "reasoning");
    assert!(response["output"][1]["encrypted_content"].is_string());
}

#[test]
fn an_own_signature_is_raw_only_under_its_own_id() {
    let own = || signature(Issuer::Responses, "rs_7\ngAAAA");
    let first = check(&stream(&[
        start(),
        open(Block::Reasoning),
        own(),
        CLOSE,
        Event::End,
    ]));
    assert_eq!(first["output"][0]["id"], "rs_7");
    assert_eq!(first["output"][0]["encrypted_content"], "gAAAA");
    let reasoning = [
        start(),
        open(Block::Reasoning),
        text("t"),
        own(),
        CLOSE,
        Event::End,
    ];
    let later = check(&stream(&reasoning));
    let wrapped = later["output"][0]["encrypted_content"].as_str();
    let signature = wrapped
        .and_then(Signature::unwrap_text)
        .expect("a wrapped signature");
    assert_eq!(signature.data, "rs_7\ngAAAA");
}

#[test]
fn log_probabilities_come_with_deltas_and_are_repeated() {
    let logprob = Logprob {
        token: "a".into(),
        logprob: -1.0,
        top: Vec::new(),
    };
    let events = stream(&[
        start(),
        open(Block::Text),
        text("a"),
        delta(Delta::Logprob(logprob)),
        CLOSE,
        Event::End,
    ]);
    check(&events);
    let expected = json!([{"token":"a","bytes":[97],"logprob":-1.0,"top_logprobs":[]}]);
    assert_eq!(events[5]["delta"], "");
    assert_eq!(events[5]["logprobs"], expected);
    assert_eq!(events[6]["logprobs"], expected);
    assert_eq!(events[7]["part"]["logprobs"], expected);
}

#[test]
fn other_choices_are_left_out() {
    let events = stream(&[
        start(),
        Event::Open {
            choice: 1,
            block: Block::Text,
        },
        Event::Delta {
            choice: 1,
            delta: Delta::Text("x".into()),
        },
        Event::Close { choice: 1 },
        Event::Finish {
            choice: 1,
            reason: Finish::Length,
        },
        Event::End,
    ]);
    assert_eq!(check(&events)["output"], json!([]));
}
