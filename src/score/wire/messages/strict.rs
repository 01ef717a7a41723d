//! What an upstream of the messages format refuses.

use http::HeaderMap;
use serde_json::Value;

use super::super::format::WireFormat;
use super::super::values::{elements, text};

pub fn complaint(headers: &HeaderMap, body: &Value) -> Option<String> {
    if !headers.contains_key("anthropic-version") {
        return Some("the header anthropic-version is missing".to_owned());
    }
    if !body["max_tokens"].is_u64() {
        return Some("max_tokens is missing".to_owned());
    }
    let messages = elements(&body["messages"]);
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Some("the first message is not of the user".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    let mut has_calls = false;
    for (at, message) in messages.iter().enumerate() {
        let reason = match text(&message["role"]) {
            "user" => user(message, &mut open),
            "assistant" if !open.is_empty() => {
                Some(format!("tool_use without tool_result: {open:?}"))
            }
            "assistant" => assistant(message, &mut open),
            role => Some(format!("the role is {role:?}")),
        };
        if let Some(reason) = reason {
            return Some(format!("messages[{at}]: {reason}"));
        }
        has_calls |= !open.is_empty();
    }
    if !open.is_empty() {
        return Some(format!("tool_use without tool_result: {open:?}"));
    }
    if has_calls && elements(&body["tools"]).is_empty() {
        return Some("tool_use in the history, and no tools".to_owned());
    }
    settings(body)
}

fn user<'b>(message: &'b Value, open: &mut Vec<&'b str>) -> Option<String> {
    let blocks = elements(&message["content"]);
    if blocks.is_empty() && text(&message["content"]).is_empty() {
        return Some("the content is empty".to_owned());
    }
    let mut is_after_results = false;
    for block in blocks {
        if block["type"] == "tool_result" {
            let id = text(&block["tool_use_id"]);
            let Some(found) = open.iter().position(|call| *call == id) else {
                return Some(format!(
                    "tool_result for {id:?}, which no tool_use before it has"
                ));
            };
            if is_after_results {
                return Some("tool_result blocks come first".to_owned());
            }
            open.remove(found);
            continue;
        }
        is_after_results = true;
        if block["type"] == "text" && text(&block["text"]).is_empty() {
            return Some("text content blocks must be non-empty".to_owned());
        }
    }
    match open.is_empty() {
        true => None,
        false => Some(format!(
            "tool_use without tool_result right after it: {open:?}"
        )),
    }
}

fn assistant<'b>(message: &'b Value, open: &mut Vec<&'b str>) -> Option<String> {
    let blocks = elements(&message["content"]);
    for block in blocks {
        match text(&block["type"]) {
            "text" if text(&block["text"]).is_empty() => {
                return Some("text content blocks must be non-empty".to_owned());
            }
            "thinking" if block["signature"] != WireFormat::Messages.signature() => {
                return Some("Invalid `signature` in `thinking` block".to_owned());
            }
            "redacted_thinking" => {
                return Some("Invalid `data` in `redacted_thinking` block".to_owned());
            }
            "tool_use" => {
                let id = text(&block["id"]);
                let is_allowed =
                    |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
                if id.is_empty() || !id.chars().all(is_allowed) {
                    return Some(format!(
                        "tool_use.id {id:?} does not match ^[a-zA-Z0-9_-]+$"
                    ));
                }
                if !block["input"].is_object() {
                    return Some("tool_use.input is no object".to_owned());
                }
                open.push(id);
            }
            _ => {}
        }
    }
    None
}

fn settings(body: &Value) -> Option<String> {
    let thinking = text(&body["thinking"]["type"]);
    let choice = text(&body["tool_choice"]["type"]);
    if matches!(thinking, "adaptive" | "enabled") && matches!(choice, "any" | "tool") {
        return Some("thinking and a forced tool_choice".to_owned());
    }
    if thinking == "enabled" {
        let budget = body["thinking"]["budget_tokens"]
            .as_u64()
            .unwrap_or_default();
        if budget < 1024 || Some(budget) >= body["max_tokens"].as_u64() {
            return Some("thinking.budget_tokens is below 1024 or not below max_tokens".to_owned());
        }
    }
    if !choice.is_empty() && choice != "none" && elements(&body["tools"]).is_empty() {
        return Some("tool_choice without tools".to_owned());
    }
    let is_open = |tool: &Value| tool["type"].is_null() && tool["input_schema"]["type"] != "object";
    if elements(&body["tools"]).iter().any(is_open) {
        return Some("a tool has no input_schema of the type object".to_owned());
    }
    let format = match &body["output_config"]["format"] {
        Value::Null => &body["output_format"],
        format => format,
    };
    if format.is_object() && format["schema"]["additionalProperties"] != false {
        return Some(
            "the objects of output_config.format.schema must have additionalProperties: false"
                .to_owned(),
        );
    }
    None
}
