//! Requests of chat clients, and what one says.

use serde_json::{Value, json};

use super::super::values::{elements, put, text};
use crate::score::facts::RequestFacts;
use crate::score::said::{SaidChoice, SaidPart, SaidRequest, SaidTurn};

pub fn write(said: &SaidRequest, model: &str, stream: bool) -> Value {
    let mut messages = Vec::new();
    if let Some(system) = &said.system {
        messages.push(json!({"role": "system", "content": system}));
    }
    let mut ids = Vec::new();
    for turn in &said.turns {
        write_turn(turn, &mut messages, &mut ids);
    }
    let mut body = json!({"model": model, "messages": messages});
    put(&mut body, "max_completion_tokens", said.limit);
    put(&mut body, "temperature", said.temperature);
    put(&mut body, "top_p", said.top_p);
    put(&mut body, "seed", said.seed);
    put(&mut body, "presence_penalty", said.presence_penalty);
    put(&mut body, "frequency_penalty", said.frequency_penalty);
    put(&mut body, "reasoning_effort", said.effort.clone());
    put(&mut body, "user", said.user.clone());
    put(
        &mut body,
        "stop",
        (!said.stop.is_empty()).then(|| said.stop.clone()),
    );
    write_tools(said, &mut body);
    if let Some(output) = &said.output {
        let schema = json!({"name": output.name, "schema": output.schema, "strict": true});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    if stream {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

fn write_tools(said: &SaidRequest, body: &mut Value) {
    let tools = said.tools.iter().map(|tool| {
        let function =
            json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
        json!({"type": "function", "function": function})
    });
    let tools: Vec<Value> = tools.collect();
    put(body, "tools", (!tools.is_empty()).then_some(tools));
    let choice = said.choice.as_ref().map(|choice| match choice {
        SaidChoice::None => json!("none"),
        SaidChoice::Required => json!("required"),
        SaidChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    });
    put(body, "tool_choice", choice);
    put(body, "parallel_tool_calls", said.parallel);
}

fn write_turn(turn: &SaidTurn, messages: &mut Vec<Value>, ids: &mut Vec<String>) {
    match turn {
        SaidTurn::User(parts) => {
            let content = match parts.as_slice() {
                [part] if part.text().is_some() => json!(part.text()),
                parts => parts.iter().map(write_part).collect(),
            };
            messages.push(json!({"role": "user", "content": content}));
        }
        SaidTurn::Assistant(parts) => {
            let said: Vec<String> = parts.iter().filter_map(SaidPart::text).collect();
            let mut calls = Vec::new();
            for part in parts {
                let SaidPart::Call(call) = part else { continue };
                ids.push(call.id.clone());
                let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
                calls.push(json!({"id": call.id, "type": "function", "function": function}));
            }
            let content = (!said.is_empty()).then(|| said.concat());
            let mut message = json!({"role": "assistant", "content": content});
            put(
                &mut message,
                "tool_calls",
                (!calls.is_empty()).then_some(calls),
            );
            messages.push(message);
        }
        SaidTurn::Results(results) => {
            for result in results {
                let id = ids.get(result.call - 1);
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": result.text}));
            }
        }
        SaidTurn::Answer(message) => {
            let calls = elements(&message["tool_calls"]).iter();
            ids.extend(calls.map(|call| text(&call["id"]).to_owned()));
            messages.push(message.clone());
        }
    }
}

fn write_part(part: &SaidPart) -> Value {
    match part {
        SaidPart::Image(media) => {
            json!({"type": "image_url", "image_url": {"url": media.data_url()}})
        }
        SaidPart::ImageUrl(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        SaidPart::Document(media) => {
            let file = json!({"file_data": media.data_url(), "filename": media.file_name()});
            json!({"type": "file", "file": file})
        }
        SaidPart::Audio(media) => {
            let format = match media.media.as_str() {
                "audio/mpeg" => "mp3",
                _ => "wav",
            };
            json!({"type": "input_audio", "input_audio": {"data": media.data, "format": format}})
        }
        other => json!({"type": "text", "text": other.text()}),
    }
}

pub fn read(body: &Value) -> RequestFacts {
    let mut facts = RequestFacts::default();
    let mut system = Vec::new();
    for message in elements(&body["messages"]) {
        match text(&message["role"]) {
            "system" | "developer" => system.push(plain_text(&message["content"])),
            "assistant" => read_assistant(message, &mut facts),
            "tool" => {
                let id = message["tool_call_id"].as_str();
                facts.result(id, None, &plain_text(&message["content"]), false);
            }
            _ => read_user(&message["content"], &mut facts),
        }
    }
    if !system.is_empty() {
        facts.set("system prompt", &json!(system.join("\n")));
    }
    let limit = match &body["max_completion_tokens"] {
        Value::Null => &body["max_tokens"],
        limit => limit,
    };
    facts.set("output limit", limit);
    for (name, field) in [
        ("temperature", "temperature"),
        ("top-p", "top_p"),
        ("seed", "seed"),
        ("presence penalty", "presence_penalty"),
        ("frequency penalty", "frequency_penalty"),
        ("effort", "reasoning_effort"),
        ("end user", "user"),
    ] {
        facts.set(name, &body[field]);
    }
    let stop = match &body["stop"] {
        Value::String(stop) => json!([stop]),
        other => other.clone(),
    };
    facts.set("stop sequences", &stop);
    read_tools(body, &mut facts);
    let schema = &body["response_format"]["json_schema"];
    if schema.is_object() {
        facts.set(
            "output schema",
            &crate::score::facts::plain_schema(&schema["schema"]),
        );
        facts.set("name of the output schema", &schema["name"]);
    }
    facts
}

fn read_tools(body: &Value, facts: &mut RequestFacts) {
    for tool in elements(&body["tools"]) {
        let function = &tool["function"];
        facts.tool(
            text(&function["name"]),
            &function["description"],
            &function["parameters"],
        );
    }
    match &body["tool_choice"] {
        Value::String(choice) if choice != "auto" => facts.set("tool choice", &json!(choice)),
        choice @ Value::Object(_) => facts.set(
            "tool choice",
            &json!(format!("tool {}", text(&choice["function"]["name"]))),
        ),
        _ => {}
    }
    if body["parallel_tool_calls"] == false {
        facts.set("one call at a time", &json!(true));
    }
}

fn read_assistant(message: &Value, facts: &mut RequestFacts) {
    facts.text("assistant", &plain_text(&message["content"]));
    for call in elements(&message["tool_calls"]) {
        let function = &call["function"];
        facts.call(
            call["id"].as_str(),
            text(&function["name"]),
            &function["arguments"],
        );
    }
}

fn read_user(content: &Value, facts: &mut RequestFacts) {
    facts.text("user", text(content));
    for part in elements(content) {
        match text(&part["type"]) {
            "text" => facts.text("user", text(&part["text"])),
            "image_url" => facts.url("user", "image", text(&part["image_url"]["url"])),
            "file" => facts.url("user", "document", text(&part["file"]["file_data"])),
            "input_audio" => {
                let media = match text(&part["input_audio"]["format"]) {
                    "mp3" => "audio/mpeg",
                    _ => "audio/wav",
                };
                facts.media("user", "audio", media, text(&part["input_audio"]["data"]));
            }
            other => facts.text("user", &format!("({other})")),
        }
    }
}

/// The text of a content that is a string or parts.
fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => elements(parts)
            .iter()
            .map(|part| text(&part["text"]))
            .collect(),
    }
}
