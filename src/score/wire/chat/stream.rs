//! Streams of chat upstreams, and the response that one says.

use serde_json::{Value, json};

use super::super::errors;
use super::super::events::{Gathered, SseEvents, StreamScript};
use super::super::format::WireFormat;
use super::super::values::{elements, in_parts, text};

pub fn write(response: &Value) -> StreamScript {
    let mut script = StreamScript::default();
    let (choice, message) = (&response["choices"][0], &response["choices"][0]["message"]);
    let chunk = |delta: Value, finish: &Value| {
        json!({
            "id": response["id"], "object": "chat.completion.chunk", "created": response["created"],
            "model": response["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": null}], "usage": null
        })
    };
    let open = Value::Null;
    script.data(&chunk(json!({"role": "assistant", "content": ""}), &open));
    for field in ["reasoning_content", "content", "refusal"] {
        for part in in_parts(text(&message[field])) {
            script.data(&chunk(json!({field: part}), &open));
        }
    }
    if message["annotations"].is_array() {
        script.data(&chunk(
            json!({"annotations": message["annotations"]}),
            &open,
        ));
    }
    for (index, call) in elements(&message["tool_calls"]).iter().enumerate() {
        let function = &call["function"];
        let start = json!({"name": function["name"], "arguments": ""});
        let start =
            json!({"index": index, "id": call["id"], "type": "function", "function": start});
        script.data(&chunk(json!({"tool_calls": [start]}), &open));
        for part in in_parts(text(&function["arguments"])) {
            let more = json!({"index": index, "function": {"arguments": part}});
            script.data(&chunk(json!({"tool_calls": [more]}), &open));
        }
    }
    script.finish_follows();
    script.data(&chunk(json!({}), &choice["finish_reason"]));
    let mut last = chunk(json!({}), &open);
    last["choices"] = json!([]);
    last["usage"] = response["usage"].clone();
    script.data(&last);
    script.frames.push("data: [DONE]\n\n".to_owned());
    script
}

pub fn gather(events: &SseEvents) -> Gathered {
    let mut message = json!({"role": "assistant"});
    let (mut finish, mut usage, mut id) = (Value::Null, Value::Null, Value::Null);
    let mut is_done = false;
    for event in &events.events {
        if event.data == "[DONE]" {
            is_done = true;
            continue;
        }
        let chunk = match event.json() {
            Ok(chunk) => chunk,
            Err(broken) => return broken,
        };
        if !chunk["error"].is_null() {
            return match errors::read(WireFormat::Chat, &chunk) {
                Ok(error) => Gathered::Error(error),
                Err(reason) => Gathered::Broken(reason),
            };
        }
        if is_done {
            return Gathered::Broken("a chunk follows [DONE]".to_owned());
        }
        if chunk["object"] != "chat.completion.chunk" {
            return Gathered::Broken("a chunk has no object: chat.completion.chunk".to_owned());
        }
        id = chunk["id"].clone();
        if chunk["usage"].is_object() {
            usage = chunk["usage"].clone();
        }
        for choice in elements(&chunk["choices"]) {
            if let Err(reason) = add(&mut message, &choice["delta"]) {
                return Gathered::Broken(reason);
            }
            if choice["finish_reason"].is_string() {
                finish = choice["finish_reason"].clone();
            }
        }
    }
    // SDKs take a response for whole that says how it ends; whether [DONE] follows, is a scenario of its own.
    if finish.is_null() || (events.is_cut && !is_done) {
        return events.unfinished();
    }
    if message["content"].is_null() {
        message["content"] = Value::Null;
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    Gathered::Whole(
        json!({"id": id, "object": "chat.completion", "choices": [choice], "usage": usage}),
    )
}

/// Adds a delta to a message, as SDKs do: texts are joined, lists grow, calls are told apart by their index.
fn add(message: &mut Value, delta: &Value) -> Result<(), String> {
    for (name, value) in delta.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            (_, Value::Null) | ("role", _) => {}
            ("tool_calls", calls) => add_calls(message, calls)?,
            (_, Value::String(more)) => {
                let so_far = text(&message[name]).to_owned();
                message[name] = json!(so_far + more);
            }
            (_, Value::Array(more)) => {
                let mut all = elements(&message[name]).to_vec();
                all.extend(more.iter().cloned());
                message[name] = Value::Array(all);
            }
            (_, other) => message[name] = other.clone(),
        }
    }
    Ok(())
}

fn add_calls(message: &mut Value, calls: &Value) -> Result<(), String> {
    let mut all = elements(&message["tool_calls"]).to_vec();
    for more in elements(calls) {
        let Some(index) = more["index"].as_u64() else {
            return Err("a call has no index".to_owned());
        };
        let index = index as usize;
        if index > all.len() {
            return Err(format!("call {index} comes before those of lower indexes"));
        }
        if index == all.len() {
            let mut call = more.clone();
            if let Some(fields) = call.as_object_mut() {
                fields.remove("index");
            }
            all.push(call);
            continue;
        }
        let so_far = text(&all[index]["function"]["arguments"]).to_owned();
        let added = text(&more["function"]["arguments"]);
        all[index]["function"]["arguments"] = json!(so_far + added);
    }
    message["tool_calls"] = Value::Array(all);
    Ok(())
}
