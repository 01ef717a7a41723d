//! What an upstream of the responses format refuses.

use serde_json::Value;

use super::super::format::WireFormat;
use super::super::values::{elements, text};

pub fn complaint(body: &Value) -> Option<String> {
    let items = elements(&body["input"]);
    if items.is_empty() && text(&body["input"]).is_empty() {
        return Some("input is empty".to_owned());
    }
    if !body["previous_response_id"].is_null() {
        return Some("previous_response_id: there is no such response".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(reason) = complaint_of_item(item, items.get(at + 1), &mut open) {
            return Some(format!("input[{at}]: {reason}"));
        }
    }
    if let Some(id) = open.first() {
        return Some(format!("No tool output found for function call {id}"));
    }
    if elements(&body["tools"]).is_empty() && body["tool_choice"].is_object() {
        return Some("tool_choice without tools".to_owned());
    }
    let is_nameless = |tool: &Value| tool["type"] == "function" && text(&tool["name"]).is_empty();
    if elements(&body["tools"]).iter().any(is_nameless) {
        return Some("a function tool has no name".to_owned());
    }
    if body["max_output_tokens"]
        .as_u64()
        .is_some_and(|limit| limit < 16)
    {
        return Some("max_output_tokens is below 16".to_owned());
    }
    None
}

fn complaint_of_item<'b>(
    item: &'b Value,
    next: Option<&Value>,
    open: &mut Vec<&'b str>,
) -> Option<String> {
    match text(&item["type"]) {
        "" | "message" => complaint_of_message(item),
        "function_call" => {
            let id = text(&item["call_id"]);
            if id.is_empty() || id.len() > 64 {
                return Some(format!(
                    "call_id {id:?} is empty or longer than 64 characters"
                ));
            }
            if !item["arguments"].is_string() {
                return Some("arguments is no string".to_owned());
            }
            open.push(id);
            None
        }
        "function_call_output" => {
            let id = text(&item["call_id"]);
            let found = open.iter().position(|call| *call == id);
            let Some(found) = found else {
                return Some(format!("no function_call before it has the call_id {id:?}"));
            };
            open.remove(found);
            None
        }
        "reasoning" => {
            let content = text(&item["encrypted_content"]);
            if !content.is_empty() && content != WireFormat::Responses.signature() {
                return Some("encrypted_content could not be verified".to_owned());
            }
            if !item["summary"].is_array() {
                return Some("a reasoning item has no summary".to_owned());
            }
            match next {
                None => {
                    Some("reasoning was provided without its required following item".to_owned())
                }
                Some(_) => None,
            }
        }
        other => Some(format!("the type is {other:?}")),
    }
}

fn complaint_of_message(item: &Value) -> Option<String> {
    let role = text(&item["role"]);
    if !matches!(role, "user" | "assistant" | "system" | "developer") {
        return Some(format!("the role is {role:?}"));
    }
    let is_output = role == "assistant";
    for part in elements(&item["content"]) {
        let kind = text(&part["type"]);
        let fits = match is_output {
            true => matches!(kind, "output_text" | "refusal"),
            false => matches!(kind, "input_text" | "input_image" | "input_file"),
        };
        if !fits {
            return Some(format!(
                "a part of the type {kind:?} in a message of the {role}"
            ));
        }
    }
    None
}
