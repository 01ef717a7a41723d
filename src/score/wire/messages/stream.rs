//! Streams of messages upstreams, and the response that one says.

use serde_json::{Value, json};

use super::super::errors;
use super::super::events::{Gathered, SseEvents, StreamScript};
use super::super::format::WireFormat;
use super::super::values::{elements, in_parts, text};

pub fn write(response: &Value) -> StreamScript {
    let mut script = StreamScript::default();
    let mut message = response.clone();
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["stop_sequence"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);
    script.event(&json!({"type": "message_start", "message": message}));
    script.event(&json!({"type": "ping"}));
    for (index, block) in elements(&response["content"]).iter().enumerate() {
        write_block(index, block, &mut script);
    }
    let delta =
        json!({"stop_reason": response["stop_reason"], "stop_sequence": response["stop_sequence"]});
    let usage = &response["usage"];
    let usage = json!({
        "output_tokens": usage["output_tokens"], "output_tokens_details": usage["output_tokens_details"]
    });
    script.finish_follows();
    script.event(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
    script.event(&json!({"type": "message_stop"}));
    script
}

fn write_block(index: usize, block: &Value, script: &mut StreamScript) {
    let kind = text(&block["type"]);
    let (start, field, source) = match kind {
        "thinking" => (
            json!({"type": kind, "thinking": "", "signature": ""}),
            "thinking",
            text(&block["thinking"]).to_owned(),
        ),
        "tool_use" => {
            let start =
                json!({"type": kind, "id": block["id"], "name": block["name"], "input": {}});
            (start, "partial_json", block["input"].to_string())
        }
        _ => (
            json!({"type": kind, "text": ""}),
            "text",
            text(&block["text"]).to_owned(),
        ),
    };
    script.event(&json!({"type": "content_block_start", "index": index, "content_block": start}));
    let delta_type = match field {
        "thinking" => "thinking_delta",
        "partial_json" => "input_json_delta",
        _ => "text_delta",
    };
    let mut delta = |delta: Value| {
        script.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
    };
    for part in in_parts(&source) {
        delta(json!({"type": delta_type, field: part}));
    }
    for citation in elements(&block["citations"]) {
        delta(json!({"type": "citations_delta", "citation": citation}));
    }
    if !text(&block["signature"]).is_empty() {
        delta(json!({"type": "signature_delta", "signature": block["signature"]}));
    }
    script.event(&json!({"type": "content_block_stop", "index": index}));
}

/// A response on its way, and the block that is open.
#[derive(Default)]
struct OpenMessage {
    message: Value,
    block: Option<Value>,
    input: String,
    is_stopped: bool,
}

pub fn gather(events: &SseEvents) -> Gathered {
    let mut open = OpenMessage::default();
    for event in &events.events {
        let data = match event.json() {
            Ok(data) => data,
            Err(broken) => return broken,
        };
        let kind = text(&data["type"]);
        if event.name.as_deref() != Some(kind) {
            return Gathered::Broken(format!("the event {kind} is named {:?}", event.name));
        }
        if kind == "error" {
            return match errors::read(WireFormat::Messages, &data) {
                Ok(error) => Gathered::Error(error),
                Err(reason) => Gathered::Broken(reason),
            };
        }
        if let Err(reason) = open.add(kind, &data) {
            return Gathered::Broken(reason);
        }
    }
    match open.is_stopped {
        true => Gathered::Whole(open.message),
        false => events.unfinished(),
    }
}

impl OpenMessage {
    fn add(&mut self, kind: &str, data: &Value) -> Result<(), String> {
        let wrong = |what: &str| Err(what.to_owned());
        if self.message.is_null() && !matches!(kind, "message_start" | "ping") {
            return wrong("the first event is no message_start");
        }
        if self.is_stopped {
            return wrong("an event follows message_stop");
        }
        match kind {
            "message_start" if !self.message.is_null() => return wrong("a second message_start"),
            "message_start" => self.message = data["message"].clone(),
            "content_block_start" if self.block.is_some() => {
                return wrong("two blocks are open at once");
            }
            "content_block_start" => {
                let index = elements(&self.message["content"]).len() as u64;
                if data["index"] != index {
                    return wrong("the indexes of blocks are not 0, 1, 2");
                }
                self.block = Some(data["content_block"].clone());
            }
            "content_block_delta" => return self.add_delta(&data["delta"]),
            "content_block_stop" => return self.close(),
            "message_delta" => {
                for field in ["stop_reason", "stop_sequence"] {
                    self.message[field] = data["delta"][field].clone();
                }
                for (name, count) in data["usage"].as_object().into_iter().flatten() {
                    self.message["usage"][name] = count.clone();
                }
            }
            "message_stop" if self.block.is_some() => {
                return wrong("message_stop in an open block");
            }
            "message_stop" if self.message["stop_reason"].is_null() => {
                return wrong("message_stop without a stop_reason");
            }
            "message_stop" => self.is_stopped = true,
            _ => {}
        }
        Ok(())
    }

    fn add_delta(&mut self, delta: &Value) -> Result<(), String> {
        let Some(block) = &mut self.block else {
            return Err("a delta outside of a block".to_owned());
        };
        let kind = text(&delta["type"]);
        let fits = match text(&block["type"]) {
            "text" => matches!(kind, "text_delta" | "citations_delta"),
            "thinking" => matches!(kind, "thinking_delta" | "signature_delta"),
            "tool_use" => kind == "input_json_delta",
            _ => true,
        };
        if !fits {
            return Err(format!("a {kind} in a block of the type {}", block["type"]));
        }
        match kind {
            "input_json_delta" => self.input.push_str(text(&delta["partial_json"])),
            "citations_delta" => {
                let mut all = elements(&block["citations"]).to_vec();
                all.push(delta["citation"].clone());
                block["citations"] = Value::Array(all);
            }
            _ => {
                let field = kind.trim_end_matches("_delta");
                let so_far = text(&block[field]).to_owned();
                block[field] = json!(so_far + text(&delta[field]));
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(mut block) = self.block.take() else {
            return Err("content_block_stop without a block".to_owned());
        };
        let input = std::mem::take(&mut self.input);
        if block["type"] == "tool_use" {
            let read = match input.trim() {
                "" => Ok(json!({})),
                input => serde_json::from_str(input),
            };
            block["input"] =
                read.map_err(|_| format!("the input of a call is no JSON: {input}"))?;
        }
        let mut all = elements(&self.message["content"]).to_vec();
        all.push(block);
        self.message["content"] = Value::Array(all);
        Ok(())
    }
}
