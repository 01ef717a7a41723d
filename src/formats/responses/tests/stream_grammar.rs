//! The events of a stream, and the order that the format prescribes.

use serde_json::Value;

use super::options;
use crate::formats::StreamEncoder as _;
use crate::formats::responses::stream::ResponsesStreamEncoder;
use crate::model::{Block, Delta, Event, Finish, Issuer, Signature};
use crate::sse::{SseFrame, SseFrames, SseWriter};

/// What was written, after a check that names and numbers are right.
pub(super) fn events_in(out: &mut SseWriter) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    let mut frames = SseFrames::default();
    let mut check_frame = |frame: SseFrame<'_>| {
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

pub(super) fn stream(events: &[Event<'_>]) -> Vec<Value> {
    let mut encoder = ResponsesStreamEncoder::new(&options("m-1"));
    let mut out = SseWriter::default();
    for event in events {
        encoder.encode_event(event.clone(), &mut out);
    }
    events_in(&mut out)
}

pub(super) fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .map(|name| name.strip_prefix("response.").unwrap_or(name))
        .collect()
}

/// Checks the order of the events: one item at a time, ids that agree, deltas that add up, a final response that
/// contains the items. Returns the final response.
pub(super) fn check(events: &[Value]) -> Value {
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

pub(super) fn open(block: Block<'static>) -> Event<'static> {
    Event::Open { choice: 0, block }
}

pub(super) fn delta(delta: Delta<'static>) -> Event<'static> {
    Event::Delta { choice: 0, delta }
}

pub(super) fn text(delta_text: &'static str) -> Event<'static> {
    delta(Delta::Text(delta_text.into()))
}

pub(super) const CLOSE: Event<'static> = Event::Close { choice: 0 };

pub(super) fn start() -> Event<'static> {
    Event::Start {
        id: "chatcmpl-1".into(),
        model: "upstream-name".into(),
        created: 1_760_000_000,
    }
}

pub(super) fn finish(reason: Finish<'static>) -> Event<'static> {
    Event::Finish { choice: 0, reason }
}

pub(super) fn arguments(delta_text: &'static str) -> Event<'static> {
    delta(Delta::Arguments(delta_text.into()))
}

pub(super) fn signature(issuer: Issuer, data: &'static str) -> Event<'static> {
    let data = data.into();
    delta(Delta::Signature(Signature { issuer, data }))
}
