//! Streams of native upstreams, and the response that one says.

use serde_json::{Value, json};

use super::super::errors;
use super::super::events::{Gathered, SseEvents, StreamScript};
use super::super::format::WireFormat;
use super::super::values::{elements, in_parts, text};

pub fn write(response: &Value) -> StreamScript {
    let mut script = StreamScript::default();
    let candidate = &response["candidates"][0];
    let mut pieces = Vec::new();
    for part in elements(&candidate["content"]["parts"]) {
        let Value::String(said) = &part["text"] else {
            pieces.push(part.clone());
            continue;
        };
        let texts = in_parts(said);
        for (at, words) in texts.iter().enumerate() {
            let mut piece = part.clone();
            piece["text"] = json!(words);
            // A signature comes with the last part of its text.
            if let Some(fields) = piece.as_object_mut().filter(|_| at + 1 < texts.len()) {
                fields.remove("thoughtSignature");
            }
            pieces.push(piece);
        }
    }
    let last = pieces.pop();
    let chunk = |part: Option<Value>| {
        let parts: Vec<Value> = part.into_iter().collect();
        json!({
            "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
            "usageMetadata": {"promptTokenCount": response["usageMetadata"]["promptTokenCount"]},
            "modelVersion": response["modelVersion"], "responseId": response["responseId"]
        })
    };
    for piece in pieces {
        script.data(&chunk(Some(piece)));
    }
    let mut end = chunk(last);
    end["usageMetadata"] = response["usageMetadata"].clone();
    for field in ["finishReason", "groundingMetadata"] {
        if !candidate[field].is_null() {
            end["candidates"][0][field] = candidate[field].clone();
        }
    }
    script.finish_follows();
    script.data(&end);
    script
}

pub fn gather(events: &SseEvents) -> Gathered {
    if let Some(line) = events.other_lines.first() {
        return Gathered::Broken(format!("a line that is no data: {line}"));
    }
    let mut whole = json!({});
    let mut candidate = json!({"content": {"role": "model"}});
    let mut parts: Vec<Value> = Vec::new();
    for event in &events.events {
        if let Some(name) = &event.name {
            return Gathered::Broken(format!("an event has a name: {name}"));
        }
        let chunk = match event.json() {
            Ok(chunk) => chunk,
            Err(broken) => return broken,
        };
        if !chunk["error"].is_null() {
            return match errors::read(WireFormat::Native, &chunk) {
                Ok(error) => Gathered::Error(error),
                Err(reason) => Gathered::Broken(reason),
            };
        }
        for (name, value) in chunk.as_object().into_iter().flatten() {
            if name != "candidates" {
                whole[name] = value.clone();
            }
        }
        let new = &chunk["candidates"][0];
        for part in elements(&new["content"]["parts"]) {
            add(&mut parts, part);
        }
        for (name, value) in new.as_object().into_iter().flatten() {
            if name != "content" {
                candidate[name] = value.clone();
            }
        }
    }
    if !candidate["finishReason"].is_string() {
        return events.unfinished();
    }
    candidate["content"]["parts"] = Value::Array(parts);
    whole["candidates"] = json!([candidate]);
    Gathered::Whole(whole)
}

/// Adds a part; neighbouring texts of one kind are one, unless a signature stands between them.
fn add(parts: &mut Vec<Value>, part: &Value) {
    let is_text = |part: &Value| part["text"].is_string() && part["thoughtSignature"].is_null();
    match parts.last_mut() {
        Some(last) if is_text(last) && is_text(part) && last["thought"] == part["thought"] => {
            let so_far = text(&last["text"]).to_owned();
            last["text"] = json!(so_far + text(&part["text"]));
        }
        _ => parts.push(part.clone()),
    }
}
