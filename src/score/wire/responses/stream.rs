//! Streams of responses upstreams, and the response that one says.

use serde_json::{Value, json};

use super::super::errors;
use super::super::events::{Gathered, SseEvents, StreamScript};
use super::super::values::{elements, in_parts, text};

/// A stream whose events are counted.
#[derive(Default)]
struct CountedScript {
    script: StreamScript,
}

impl CountedScript {
    fn event(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.script.frames.len());
        self.script.event(&data);
    }
}

pub fn write(response: &Value) -> StreamScript {
    let mut events = CountedScript::default();
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    begun["incomplete_details"] = Value::Null;
    events.event("response.created", json!({"response": begun}));
    events.event("response.in_progress", json!({"response": begun}));
    for (index, item) in elements(&response["output"]).iter().enumerate() {
        let mut added = item.clone();
        match text(&item["type"]) {
            "message" => {
                added["content"] = json!([]);
                added["status"] = json!("in_progress");
            }
            "function_call" => added["arguments"] = json!(""),
            _ => {
                added["summary"] = json!([]);
                added["encrypted_content"] = Value::Null;
            }
        }
        events.event(
            "response.output_item.added",
            json!({"output_index": index, "item": added}),
        );
        match text(&item["type"]) {
            "message" => write_message(index, item, &mut events),
            "function_call" => write_call(index, item, &mut events),
            _ => write_reasoning(index, item, &mut events),
        }
        events.event(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }
    events.script.finish_follows();
    let end = format!("response.{}", text(&response["status"]));
    events.event(&end, json!({"response": response}));
    events.script
}

fn write_message(index: usize, item: &Value, events: &mut CountedScript) {
    for (at, part) in elements(&item["content"]).iter().enumerate() {
        let place = json!({"item_id": item["id"], "output_index": index, "content_index": at});
        let with = |field: &str, value: Value| {
            let mut data = place.clone();
            data[field] = value;
            data
        };
        let (kind, field) = match text(&part["type"]) {
            "refusal" => ("response.refusal", "refusal"),
            _ => ("response.output_text", "text"),
        };
        let mut empty = part.clone();
        empty[field] = json!("");
        if empty["annotations"].is_array() {
            empty["annotations"] = json!([]);
        }
        events.event("response.content_part.added", with("part", empty));
        for words in in_parts(text(&part[field])) {
            events.event(&format!("{kind}.delta"), with("delta", json!(words)));
        }
        for (number, annotation) in elements(&part["annotations"]).iter().enumerate() {
            let mut data = with("annotation", annotation.clone());
            data["annotation_index"] = json!(number);
            events.event("response.output_text.annotation.added", data);
        }
        events.event(&format!("{kind}.done"), with(field, part[field].clone()));
        events.event("response.content_part.done", with("part", part.clone()));
    }
}

fn write_call(index: usize, item: &Value, events: &mut CountedScript) {
    let place = json!({"item_id": item["id"], "output_index": index});
    for words in in_parts(text(&item["arguments"])) {
        let mut data = place.clone();
        data["delta"] = json!(words);
        events.event("response.function_call_arguments.delta", data);
    }
    let mut data = place;
    data["arguments"] = item["arguments"].clone();
    events.event("response.function_call_arguments.done", data);
}

fn write_reasoning(index: usize, item: &Value, events: &mut CountedScript) {
    for (at, part) in elements(&item["summary"]).iter().enumerate() {
        let place = json!({"item_id": item["id"], "output_index": index, "summary_index": at});
        let with = |field: &str, value: Value| {
            let mut data = place.clone();
            data[field] = value;
            data
        };
        let empty = json!({"type": "summary_text", "text": ""});
        events.event("response.reasoning_summary_part.added", with("part", empty));
        for words in in_parts(text(&part["text"])) {
            events.event(
                "response.reasoning_summary_text.delta",
                with("delta", json!(words)),
            );
        }
        events.event(
            "response.reasoning_summary_text.done",
            with("text", part["text"].clone()),
        );
        events.event(
            "response.reasoning_summary_part.done",
            with("part", part.clone()),
        );
    }
}

pub fn gather(events: &SseEvents) -> Gathered {
    let mut said = String::new();
    let mut arguments = String::new();
    let mut end = None;
    for (at, event) in events.events.iter().enumerate() {
        if event.data == "[DONE]" {
            continue;
        }
        let data = match event.json() {
            Ok(data) => data,
            Err(broken) => return broken,
        };
        let kind = text(&data["type"]);
        if event.name.as_deref().is_some_and(|name| name != kind) {
            return Gathered::Broken(format!("the event {kind} is named {:?}", event.name));
        }
        if kind == "error" || kind == "response.failed" {
            return failure(&data);
        }
        if at == 0 && kind != "response.created" {
            return Gathered::Broken(format!("the first event is {kind}"));
        }
        if end.is_some() {
            return Gathered::Broken(format!("{kind} follows the end of the response"));
        }
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                said.push_str(text(&data["delta"]))
            }
            "response.function_call_arguments.delta" => arguments.push_str(text(&data["delta"])),
            "response.completed" | "response.incomplete" => end = Some(data["response"].clone()),
            _ => {}
        }
    }
    let Some(response) = end else {
        return events.unfinished();
    };
    match said == final_text(&response) && arguments == final_arguments(&response) {
        true => Gathered::Whole(response),
        false => {
            Gathered::Broken("the deltas say something else than the final response".to_owned())
        }
    }
}

/// What is wrong with the numbers of the events.
pub fn misnumbered(events: &SseEvents) -> Option<String> {
    let numbered = events.events.iter().filter(|event| event.data != "[DONE]");
    numbered.enumerate().find_map(|(at, event)| {
        let data = event.json().ok()?;
        let number = &data["sequence_number"];
        (!number.is_null() && *number != at as u64).then(|| {
            let kind = text(&data["type"]);
            format!("the sequence_number of {kind} is {number}, not {at}")
        })
    })
}

fn final_text(response: &Value) -> String {
    let items = elements(&response["output"]).iter();
    let parts = items.flat_map(|item| match text(&item["type"]) {
        "message" => elements(&item["content"]),
        _ => &[],
    });
    parts
        .map(|part| text(&part["text"]).to_owned() + text(&part["refusal"]))
        .collect()
}

fn final_arguments(response: &Value) -> String {
    let items = elements(&response["output"]).iter();
    let calls = items.filter(|item| item["type"] == "function_call");
    calls.map(|call| text(&call["arguments"])).collect()
}

/// `error` events are flat or nested; `response.failed` has the error inside.
fn failure(data: &Value) -> Gathered {
    let message = [
        &data["message"],
        &data["error"]["message"],
        &data["response"]["error"]["message"],
    ];
    match message.into_iter().find_map(Value::as_str) {
        Some(message) => Gathered::Error(errors::SeenError {
            message: message.to_owned(),
            flaw: None,
        }),
        None => Gathered::Broken("the error has no message".to_owned()),
    }
}
