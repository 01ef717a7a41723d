//! What an upstream of the chat format refuses.

use serde_json::Value;

use super::super::values::{elements, text};

pub fn complaint(body: &Value) -> Option<String> {
    let messages = elements(&body["messages"]);
    if messages.is_empty() {
        return Some("messages is empty".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = text(&message["role"]);
        match role {
            "tool" => {
                let id = text(&message["tool_call_id"]);
                let Some(found) = open.iter().position(|call| *call == id) else {
                    return Some(format!(
                        "messages[{at}]: no call before it has the id {id:?}"
                    ));
                };
                open.remove(found);
            }
            "system" | "developer" | "user" | "assistant" if !open.is_empty() => {
                return Some(format!(
                    "messages[{at}]: the calls {open:?} have no result yet"
                ));
            }
            "system" | "developer" | "user" => {}
            "assistant" => {
                if let Some(reason) = assistant(message, &mut open) {
                    return Some(format!("messages[{at}]: {reason}"));
                }
            }
            _ => return Some(format!("messages[{at}].role is {role:?}")),
        }
        if role != "assistant" && !message["content"].is_string() && !message["content"].is_array()
        {
            return Some(format!("messages[{at}].content is missing"));
        }
    }
    if !open.is_empty() {
        return Some(format!("the calls {open:?} have no result"));
    }
    settings(body)
}

fn assistant<'b>(message: &'b Value, open: &mut Vec<&'b str>) -> Option<String> {
    let calls = elements(&message["tool_calls"]);
    if calls.is_empty() && message["content"].is_null() && message["refusal"].is_null() {
        return Some("the assistant says nothing".to_owned());
    }
    for call in calls {
        let id = text(&call["id"]);
        if id.is_empty() || open.contains(&id) {
            return Some(format!("a call has the id {id:?}"));
        }
        if call["type"] != "function" {
            return Some("a call has no type".to_owned());
        }
        if !call["function"]["arguments"].is_string() {
            return Some("the arguments of a call are no string".to_owned());
        }
        open.push(id);
    }
    None
}

fn settings(body: &Value) -> Option<String> {
    let has_tools = !elements(&body["tools"]).is_empty();
    if !has_tools && !body["tool_choice"].is_null() && body["tool_choice"] != "none" {
        return Some("tool_choice without tools".to_owned());
    }
    if !body["stream_options"].is_null() && body["stream"] != true {
        return Some("stream_options without stream".to_owned());
    }
    for tool in elements(&body["tools"]) {
        let name = text(&tool["function"]["name"]);
        let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if tool["type"] != "function"
            || name.is_empty()
            || name.len() > 64
            || !name.chars().all(is_allowed)
        {
            return Some(format!("a tool is no function with a good name: {name:?}"));
        }
    }
    None
}
