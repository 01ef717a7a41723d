//! Requests of native clients, and what one says.

use serde_json::{Value, json};

use super::super::values::{elements, put, text};
use crate::score::facts::{RequestFacts, plain_schema};
use crate::score::said::{SaidChoice, SaidMedia, SaidPart, SaidRequest, SaidTurn};

/// A call that results refer to.
struct NamedCall {
    id: Value,
    name: String,
}

pub fn write(said: &SaidRequest) -> Value {
    let mut contents = Vec::new();
    let mut calls = Vec::new();
    for turn in &said.turns {
        contents.push(write_turn(turn, &mut calls));
    }
    let mut body = json!({"contents": contents});
    let system = said
        .system
        .as_ref()
        .map(|text| json!({"parts": [{"text": text}]}));
    put(&mut body, "systemInstruction", system);
    let mut config = json!({});
    put(&mut config, "maxOutputTokens", said.limit);
    put(&mut config, "temperature", said.temperature);
    put(&mut config, "topP", said.top_p);
    put(&mut config, "topK", said.top_k);
    put(&mut config, "seed", said.seed);
    put(&mut config, "presencePenalty", said.presence_penalty);
    put(&mut config, "frequencyPenalty", said.frequency_penalty);
    put(
        &mut config,
        "stopSequences",
        (!said.stop.is_empty()).then(|| said.stop.clone()),
    );
    if let Some(effort) = &said.effort {
        let level = effort.to_uppercase();
        config["thinkingConfig"] = json!({"thinkingLevel": level, "includeThoughts": true});
    }
    if let Some(output) = &said.output {
        config["responseMimeType"] = json!("application/json");
        config["responseJsonSchema"] = output.schema.clone();
    }
    put(
        &mut body,
        "generationConfig",
        (config != json!({})).then_some(config),
    );
    write_tools(said, &mut body);
    body
}

fn write_tools(said: &SaidRequest, body: &mut Value) {
    let tools = said.tools.iter().map(
        |tool| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}),
    );
    let tools: Vec<Value> = tools.collect();
    put(
        body,
        "tools",
        (!tools.is_empty()).then(|| json!([{"functionDeclarations": tools}])),
    );
    let choice = said.choice.as_ref().map(|choice| match choice {
        SaidChoice::None => json!({"mode": "NONE"}),
        SaidChoice::Required => json!({"mode": "ANY"}),
        SaidChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    });
    put(
        body,
        "toolConfig",
        choice.map(|choice| json!({"functionCallingConfig": choice})),
    );
}

fn write_turn(turn: &SaidTurn, calls: &mut Vec<NamedCall>) -> Value {
    let (role, parts): (&str, Vec<Value>) = match turn {
        SaidTurn::User(parts) => ("user", parts.iter().map(write_part).collect()),
        SaidTurn::Assistant(parts) => {
            let parts: Vec<Value> = parts.iter().map(write_part).collect();
            note_calls(&parts, calls);
            ("model", parts)
        }
        SaidTurn::Results(results) => {
            let parts = results.iter().map(|result| {
                let field = match result.error {
                    true => "error",
                    false => "output",
                };
                let call = &calls[result.call - 1];
                let mut response = json!({"name": call.name, "response": {field: result.text}});
                put(
                    &mut response,
                    "id",
                    Some(&call.id).filter(|id| !id.is_null()).cloned(),
                );
                json!({"functionResponse": response})
            });
            ("user", parts.collect())
        }
        SaidTurn::Answer(content) => {
            note_calls(elements(&content["parts"]), calls);
            return content.clone();
        }
    };
    json!({"role": role, "parts": parts})
}

fn note_calls(parts: &[Value], calls: &mut Vec<NamedCall>) {
    for part in parts {
        let call = &part["functionCall"];
        if call.is_object() {
            calls.push(NamedCall {
                id: call["id"].clone(),
                name: text(&call["name"]).to_owned(),
            });
        }
    }
}

fn write_part(part: &SaidPart) -> Value {
    match part {
        SaidPart::Image(media) | SaidPart::Document(media) | SaidPart::Audio(media) => {
            write_media(media)
        }
        SaidPart::ImageUrl(url) => json!({"fileData": {"mimeType": "image/png", "fileUri": url}}),
        SaidPart::Call(call) => {
            json!({"functionCall": {"name": call.name, "args": call.arguments}})
        }
        other => json!({"text": other.text()}),
    }
}

fn write_media(media: &SaidMedia) -> Value {
    json!({"inlineData": {"mimeType": media.media, "data": media.data}})
}

/// A field in either of its spellings.
fn either<'b>(object: &'b Value, camel: &str, snake: &str) -> &'b Value {
    match &object[camel] {
        Value::Null => &object[snake],
        value => value,
    }
}

pub fn read(body: &Value) -> RequestFacts {
    let mut facts = RequestFacts::default();
    let system = either(body, "systemInstruction", "system_instruction");
    let texts = elements(&system["parts"])
        .iter()
        .map(|part| text(&part["text"]));
    let texts: Vec<&str> = texts.collect();
    if !texts.is_empty() {
        facts.set("system prompt", &json!(texts.join("\n")));
    }
    for content in elements(&body["contents"]) {
        let role = match text(&content["role"]) {
            "model" => "assistant",
            _ => "user",
        };
        for part in elements(&content["parts"]) {
            read_part(role, part, &mut facts);
        }
    }
    let config = either(body, "generationConfig", "generation_config");
    for (name, camel, snake) in [
        ("output limit", "maxOutputTokens", "max_output_tokens"),
        ("temperature", "temperature", "temperature"),
        ("top-p", "topP", "top_p"),
        ("top-k", "topK", "top_k"),
        ("seed", "seed", "seed"),
        ("presence penalty", "presencePenalty", "presence_penalty"),
        ("frequency penalty", "frequencyPenalty", "frequency_penalty"),
        ("stop sequences", "stopSequences", "stop_sequences"),
    ] {
        facts.set(name, either(config, camel, snake));
    }
    read_config(config, &mut facts);
    read_tools(body, &mut facts);
    facts
}

fn read_config(config: &Value, facts: &mut RequestFacts) {
    let thinking = either(config, "thinkingConfig", "thinking_config");
    let level = either(thinking, "thinkingLevel", "thinking_level");
    let budget = either(thinking, "thinkingBudget", "thinking_budget");
    match (level, budget) {
        (Value::String(level), _) => facts.set("effort", &json!(level.to_lowercase())),
        (_, Value::Number(budget)) if budget.as_i64() != Some(0) => {
            facts.set("effort", &json!("on"))
        }
        _ => {}
    }
    let plain = either(config, "responseJsonSchema", "response_json_schema");
    let schema = match plain {
        Value::Null => either(config, "responseSchema", "response_schema"),
        schema => schema,
    };
    if schema.is_object() {
        facts.set("output schema", &plain_schema(schema));
    }
}

fn read_tools(body: &Value, facts: &mut RequestFacts) {
    for tool in elements(&body["tools"]) {
        for function in elements(either(
            tool,
            "functionDeclarations",
            "function_declarations",
        )) {
            let plain = either(function, "parametersJsonSchema", "parameters_json_schema");
            let schema = match plain {
                Value::Null => &function["parameters"],
                schema => schema,
            };
            facts.tool(text(&function["name"]), &function["description"], schema);
        }
    }
    let config = either(body, "toolConfig", "tool_config");
    let config = either(config, "functionCallingConfig", "function_calling_config");
    let names = elements(either(
        config,
        "allowedFunctionNames",
        "allowed_function_names",
    ));
    match (text(&config["mode"]).to_uppercase().as_str(), names) {
        ("NONE", _) => facts.set("tool choice", &json!("none")),
        ("ANY", [name]) => facts.set("tool choice", &json!(format!("tool {}", text(name)))),
        ("ANY", _) => facts.set("tool choice", &json!("required")),
        _ => {}
    }
}

fn read_part(role: &str, part: &Value, facts: &mut RequestFacts) {
    if part["thought"] == true {
        return;
    }
    facts.text(role, text(&part["text"]));
    let inline = either(part, "inlineData", "inline_data");
    if inline.is_object() {
        read_media(inline, facts);
    }
    let file = either(part, "fileData", "file_data");
    if file.is_object() {
        facts.url(role, "image", text(either(file, "fileUri", "file_uri")));
    }
    let call = either(part, "functionCall", "function_call");
    if call.is_object() {
        facts.call(call["id"].as_str(), text(&call["name"]), &call["args"]);
    }
    let result = either(part, "functionResponse", "function_response");
    if result.is_object() {
        let (said, is_error) = result_text(&result["response"]);
        facts.result(
            result["id"].as_str(),
            result["name"].as_str(),
            &said,
            is_error,
        );
        for part in elements(&result["parts"]) {
            read_media(either(part, "inlineData", "inline_data"), facts);
        }
    }
}

fn read_media(inline: &Value, facts: &mut RequestFacts) {
    let media = text(either(inline, "mimeType", "mime_type"));
    let kind = match media.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        _ => "document",
    };
    facts.media("user", kind, media, text(&inline["data"]));
}

/// The text of a result. The reference names `output` and `error`; gateways have other wrappers too.
fn result_text(response: &Value) -> (String, bool) {
    let fields = response.as_object();
    let mut only = fields
        .filter(|fields| fields.len() == 1)
        .into_iter()
        .flatten();
    match only.next() {
        Some((name, Value::String(text))) if name == "error" => (text.clone(), true),
        Some((name, Value::String(text)))
            if matches!(name.as_str(), "output" | "result" | "content") =>
        {
            (text.clone(), false)
        }
        Some((name, value)) if name == "output" => (value.to_string(), false),
        _ => (response.to_string(), false),
    }
}
