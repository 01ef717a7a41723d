//! Requests of messages clients, and what one says.

use serde_json::{Value, json};

use super::super::values::{elements, put, text};
use crate::score::facts::{RequestFacts, plain_schema};
use crate::score::said::{SaidChoice, SaidMedia, SaidPart, SaidRequest, SaidTurn};

/// The format requires a limit.
const LIMIT: u64 = 2048;

pub fn write(said: &SaidRequest, model: &str, stream: bool) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    let mut ids = Vec::new();
    for turn in &said.turns {
        let (role, content) = write_turn(turn, &mut ids);
        match messages.last_mut() {
            Some(last) if last["role"] == role => {
                let mut blocks = elements(&last["content"]).to_vec();
                blocks.extend(content);
                last["content"] = Value::Array(blocks);
            }
            _ => messages.push(json!({"role": role, "content": content})),
        }
    }
    let limit = said.limit.unwrap_or(LIMIT);
    let mut body = json!({"model": model, "max_tokens": limit, "messages": messages});
    put(&mut body, "system", said.system.clone());
    put(&mut body, "temperature", said.temperature);
    put(&mut body, "top_p", said.top_p);
    put(&mut body, "top_k", said.top_k);
    put(
        &mut body,
        "stop_sequences",
        (!said.stop.is_empty()).then(|| said.stop.clone()),
    );
    put(
        &mut body,
        "metadata",
        said.user.as_ref().map(|user| json!({"user_id": user})),
    );
    if let Some(effort) = &said.effort {
        body["thinking"] = json!({"type": "adaptive"});
        body["output_config"]["effort"] = json!(effort);
    }
    if let Some(output) = &said.output {
        body["output_config"]["format"] = json!({"type": "json_schema", "schema": output.schema});
    }
    write_tools(said, &mut body);
    put(&mut body, "stream", stream.then_some(true));
    body
}

fn write_tools(said: &SaidRequest, body: &mut Value) {
    let tools = said.tools.iter().map(
        |tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema}),
    );
    let tools: Vec<Value> = tools.collect();
    put(body, "tools", (!tools.is_empty()).then_some(tools));
    let mut choice = match &said.choice {
        Some(SaidChoice::None) => json!({"type": "none"}),
        Some(SaidChoice::Required) => json!({"type": "any"}),
        Some(SaidChoice::Tool(name)) => json!({"type": "tool", "name": name}),
        None if said.parallel == Some(false) => json!({"type": "auto"}),
        None => return,
    };
    put(
        &mut choice,
        "disable_parallel_tool_use",
        (said.parallel == Some(false)).then_some(true),
    );
    body["tool_choice"] = choice;
}

fn write_turn(turn: &SaidTurn, ids: &mut Vec<String>) -> (&'static str, Vec<Value>) {
    match turn {
        SaidTurn::User(parts) => ("user", parts.iter().map(write_part).collect()),
        SaidTurn::Assistant(parts) => {
            let calls = parts.iter().filter_map(|part| match part {
                SaidPart::Call(call) => Some(call.id.clone()),
                _ => None,
            });
            ids.extend(calls);
            ("assistant", parts.iter().map(write_part).collect())
        }
        SaidTurn::Results(results) => {
            let blocks = results.iter().map(|result| {
                let content = match &result.image {
                    Some(image) => {
                        json!([{"type": "text", "text": result.text}, write_media("image", image)])
                    }
                    None => json!(result.text),
                };
                let id = ids.get(result.call - 1);
                let mut block =
                    json!({"type": "tool_result", "tool_use_id": id, "content": content});
                put(&mut block, "is_error", result.error.then_some(true));
                block
            });
            ("user", blocks.collect())
        }
        SaidTurn::Answer(blocks) => {
            let calls = elements(blocks)
                .iter()
                .filter(|block| block["type"] == "tool_use");
            ids.extend(calls.map(|call| text(&call["id"]).to_owned()));
            ("assistant", elements(blocks).to_vec())
        }
    }
}

fn write_part(part: &SaidPart) -> Value {
    match part {
        SaidPart::Image(media) => write_media("image", media),
        SaidPart::ImageUrl(url) => json!({"type": "image", "source": {"type": "url", "url": url}}),
        SaidPart::Document(media) | SaidPart::Audio(media) => {
            let mut block = write_media("document", media);
            put(&mut block, "title", media.name.clone());
            block
        }
        SaidPart::Call(call) => {
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
        }
        other => json!({"type": "text", "text": other.text()}),
    }
}

fn write_media(kind: &str, media: &SaidMedia) -> Value {
    let source = json!({"type": "base64", "media_type": media.media, "data": media.data});
    json!({"type": kind, "source": source})
}

pub fn read(body: &Value) -> RequestFacts {
    let mut facts = RequestFacts::default();
    let system = match &body["system"] {
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().map(|block| text(&block["text"])).collect();
            json!(texts.join("\n"))
        }
        other => other.clone(),
    };
    facts.set("system prompt", &system);
    for message in elements(&body["messages"]) {
        let role = text(&message["role"]);
        facts.text(role, text(&message["content"]));
        for block in elements(&message["content"]) {
            read_block(role, block, &mut facts);
        }
    }
    for (name, field) in [
        ("output limit", "max_tokens"),
        ("temperature", "temperature"),
        ("top-p", "top_p"),
        ("top-k", "top_k"),
        ("stop sequences", "stop_sequences"),
    ] {
        facts.set(name, &body[field]);
    }
    facts.set("end user", &body["metadata"]["user_id"]);
    let output = &body["output_config"];
    let effort = match (text(&body["thinking"]["type"]), &output["effort"]) {
        ("enabled", _) => json!("on"),
        ("adaptive", Value::Null) => json!("on"),
        (_, effort) => effort.clone(),
    };
    facts.set("effort", &effort);
    for format in [&output["format"], &body["output_format"]] {
        if format.is_object() {
            facts.set("output schema", &plain_schema(&format["schema"]));
        }
    }
    for tool in elements(&body["tools"]) {
        facts.tool(
            text(&tool["name"]),
            &tool["description"],
            &tool["input_schema"],
        );
    }
    let choice = &body["tool_choice"];
    match text(&choice["type"]) {
        "any" => facts.set("tool choice", &json!("required")),
        "none" => facts.set("tool choice", &json!("none")),
        "tool" => facts.set(
            "tool choice",
            &json!(format!("tool {}", text(&choice["name"]))),
        ),
        _ => {}
    }
    if choice["disable_parallel_tool_use"] == true {
        facts.set("one call at a time", &json!(true));
    }
    facts
}

fn read_block(role: &str, block: &Value, facts: &mut RequestFacts) {
    match text(&block["type"]) {
        "text" => facts.text(role, text(&block["text"])),
        "image" => read_media(role, "image", block, facts),
        "document" => read_media(role, "document", block, facts),
        "tool_use" => facts.call(block["id"].as_str(), text(&block["name"]), &block["input"]),
        "tool_result" => {
            let content = &block["content"];
            let texts = elements(content).iter().map(|part| text(&part["text"]));
            let said = match content {
                Value::String(text) => text.clone(),
                _ => texts.collect(),
            };
            facts.result(
                block["tool_use_id"].as_str(),
                None,
                &said,
                block["is_error"] == true,
            );
            for part in elements(content)
                .iter()
                .filter(|part| part["type"] == "image")
            {
                read_media("tool", "image", part, facts);
            }
        }
        "thinking" | "redacted_thinking" => {}
        other => facts.text(role, &format!("({other})")),
    }
}

fn read_media(role: &str, kind: &str, block: &Value, facts: &mut RequestFacts) {
    let source = &block["source"];
    match text(&source["type"]) {
        "url" => facts.url(role, kind, text(&source["url"])),
        _ => facts.media(
            role,
            kind,
            text(&source["media_type"]),
            text(&source["data"]),
        ),
    }
}
