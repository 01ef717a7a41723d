//! Requests of responses clients, and what one says.

use serde_json::{Value, json};

use super::super::values::{elements, put, text};
use crate::score::facts::{RequestFacts, plain_schema};
use crate::score::said::{SaidChoice, SaidPart, SaidRequest, SaidTurn};

pub fn write(said: &SaidRequest, model: &str, stream: bool) -> Value {
    let mut input = Vec::new();
    let mut ids = Vec::new();
    for turn in &said.turns {
        write_turn(turn, &mut input, &mut ids);
    }
    let mut body = json!({"model": model, "input": input, "store": false});
    put(&mut body, "instructions", said.system.clone());
    put(&mut body, "max_output_tokens", said.limit);
    put(&mut body, "temperature", said.temperature);
    put(&mut body, "top_p", said.top_p);
    put(&mut body, "user", said.user.clone());
    if let Some(effort) = &said.effort {
        body["reasoning"] = json!({"effort": effort, "summary": "auto"});
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Some(output) = &said.output {
        let format = json!({"type": "json_schema", "name": output.name, "schema": output.schema, "strict": true});
        body["text"] = json!({"format": format});
    }
    let tools = said.tools.iter().map(|tool| {
        json!({
            "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema,
            "strict": false
        })
    });
    let tools: Vec<Value> = tools.collect();
    put(&mut body, "tools", (!tools.is_empty()).then_some(tools));
    let choice = said.choice.as_ref().map(|choice| match choice {
        SaidChoice::None => json!("none"),
        SaidChoice::Required => json!("required"),
        SaidChoice::Tool(name) => json!({"type": "function", "name": name}),
    });
    put(&mut body, "tool_choice", choice);
    put(&mut body, "parallel_tool_calls", said.parallel);
    put(&mut body, "stream", stream.then_some(true));
    body
}

fn write_turn(turn: &SaidTurn, input: &mut Vec<Value>, ids: &mut Vec<String>) {
    match turn {
        SaidTurn::User(parts) => {
            let content: Vec<Value> = parts.iter().map(write_part).collect();
            input.push(json!({"type": "message", "role": "user", "content": content}));
        }
        SaidTurn::Assistant(parts) => {
            for part in parts {
                if let Some(words) = part.text() {
                    let content =
                        json!([{"type": "output_text", "text": words, "annotations": []}]);
                    input.push(json!({
                        "type": "message", "id": format!("msg_{}", input.len()), "role": "assistant",
                        "status": "completed", "content": content
                    }));
                }
                if let SaidPart::Call(call) = part {
                    ids.push(call.id.clone());
                    input.push(json!({
                        "type": "function_call", "call_id": call.id, "name": call.name,
                        "arguments": call.arguments.to_string()
                    }));
                }
            }
        }
        SaidTurn::Results(results) => {
            for result in results {
                let output = match &result.image {
                    Some(image) => json!([
                        {"type": "input_text", "text": result.text},
                        {"type": "input_image", "image_url": image.data_url(), "detail": "auto"}
                    ]),
                    None => json!(result.text),
                };
                let id = ids.get(result.call - 1);
                input
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
        }
        SaidTurn::Answer(items) => {
            for item in elements(items) {
                if item["type"] == "function_call" {
                    ids.push(text(&item["call_id"]).to_owned());
                }
                input.push(item.clone());
            }
        }
    }
}

fn write_part(part: &SaidPart) -> Value {
    match part {
        SaidPart::Image(media) => {
            json!({"type": "input_image", "image_url": media.data_url(), "detail": "auto"})
        }
        SaidPart::ImageUrl(url) => {
            json!({"type": "input_image", "image_url": url, "detail": "auto"})
        }
        SaidPart::Document(media) | SaidPart::Audio(media) => {
            json!({"type": "input_file", "file_data": media.data_url(), "filename": media.file_name()})
        }
        other => json!({"type": "input_text", "text": other.text()}),
    }
}

pub fn read(body: &Value) -> RequestFacts {
    let mut facts = RequestFacts::default();
    let mut system: Vec<String> = body["instructions"]
        .as_str()
        .map(str::to_owned)
        .into_iter()
        .collect();
    facts.text("user", text(&body["input"]));
    for item in elements(&body["input"]) {
        match text(&item["type"]) {
            "" | "message" => read_message(item, &mut system, &mut facts),
            "function_call" => facts.call(
                item["call_id"].as_str(),
                text(&item["name"]),
                &item["arguments"],
            ),
            "function_call_output" => read_output(item, &mut facts),
            "reasoning" => {}
            other => facts.text("user", &format!("({other})")),
        }
    }
    if !system.is_empty() {
        facts.set("system prompt", &json!(system.join("\n")));
    }
    for (name, field) in [
        ("output limit", "max_output_tokens"),
        ("temperature", "temperature"),
        ("top-p", "top_p"),
        ("end user", "user"),
    ] {
        facts.set(name, &body[field]);
    }
    facts.set("effort", &body["reasoning"]["effort"]);
    let format = &body["text"]["format"];
    if format["type"] == "json_schema" {
        facts.set("output schema", &plain_schema(&format["schema"]));
        facts.set("name of the output schema", &format["name"]);
    }
    for tool in elements(&body["tools"]) {
        facts.tool(
            text(&tool["name"]),
            &tool["description"],
            &tool["parameters"],
        );
    }
    match &body["tool_choice"] {
        Value::String(choice) if choice != "auto" => facts.set("tool choice", &json!(choice)),
        choice @ Value::Object(_) => facts.set(
            "tool choice",
            &json!(format!("tool {}", text(&choice["name"]))),
        ),
        _ => {}
    }
    if body["parallel_tool_calls"] == false {
        facts.set("one call at a time", &json!(true));
    }
    facts
}

fn read_message(item: &Value, system: &mut Vec<String>, facts: &mut RequestFacts) {
    let role = text(&item["role"]);
    let content = &item["content"];
    if matches!(role, "system" | "developer") {
        let texts = elements(content).iter().map(|part| text(&part["text"]));
        system.push(text(content).to_owned() + &texts.collect::<String>());
        return;
    }
    facts.text(role, text(content));
    for part in elements(content) {
        match text(&part["type"]) {
            "input_text" | "output_text" => facts.text(role, text(&part["text"])),
            "refusal" => facts.text(role, text(&part["refusal"])),
            "input_image" => facts.url(role, "image", text(&part["image_url"])),
            "input_file" => facts.url(role, "document", text(&part["file_data"])),
            other => facts.text(role, &format!("({other})")),
        }
    }
}

fn read_output(item: &Value, facts: &mut RequestFacts) {
    let output = &item["output"];
    let texts = elements(output).iter().map(|part| text(&part["text"]));
    let said = text(output).to_owned() + &texts.collect::<String>();
    facts.result(item["call_id"].as_str(), None, &said, false);
    for part in elements(output)
        .iter()
        .filter(|part| part["type"] == "input_image")
    {
        facts.url("tool", "image", text(&part["image_url"]));
    }
}
