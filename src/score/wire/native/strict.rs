//! What an upstream of the native format refuses.

use serde_json::Value;

use super::super::format::WireFormat;
use super::super::values::{elements, text};

/// What stands for a signature that was lost; the vendor documents it, and takes it as bytes or as base64.
const STAND_INS: [&str; 2] = [
    "skip_thought_signature_validator",
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
];

pub fn complaint(body: &Value) -> Option<String> {
    let contents = elements(&body["contents"]);
    if contents.is_empty() {
        return Some("contents is empty".to_owned());
    }
    let mut calls_before = 0;
    for (at, content) in contents.iter().enumerate() {
        let role = text(&content["role"]);
        // Older examples of the vendor give results the role `function`.
        if !matches!(role, "user" | "model" | "function" | "") {
            return Some(format!(
                "contents[{at}].role is {role:?}: use user or model"
            ));
        }
        let parts = elements(&content["parts"]);
        if parts.is_empty() {
            return Some(format!("contents[{at}].parts is empty"));
        }
        if let Some(reason) = parts.iter().find_map(part) {
            return Some(format!("contents[{at}]: {reason}"));
        }
        let results = count(parts, "functionResponse");
        if results != calls_before {
            return Some(format!(
                "contents[{at}]: the number of function response parts ({results}) is not that of the function calls \
                 before it ({calls_before})"
            ));
        }
        if results > 0 && role == "model" {
            return Some(format!(
                "contents[{at}]: function responses are of the user"
            ));
        }
        calls_before = count(parts, "functionCall");
    }
    if calls_before > 0 {
        return Some("the function calls at the end have no responses".to_owned());
    }
    settings(body)
}

fn count(parts: &[Value], field: &str) -> usize {
    parts.iter().filter(|part| part[field].is_object()).count()
}

fn part(part: &Value) -> Option<String> {
    let signature = text(&part["thoughtSignature"]);
    let is_known = signature == WireFormat::Native.signature() || STAND_INS.contains(&signature);
    if !signature.is_empty() && !is_known {
        return Some("Corrupted thought signature".to_owned());
    }
    let call = &part["functionCall"];
    if call.is_object() && !call["args"].is_object() && !call["args"].is_null() {
        return Some("functionCall.args is no object".to_owned());
    }
    let response = &part["functionResponse"];
    if response.is_object()
        && (!response["response"].is_object() || text(&response["name"]).is_empty())
    {
        return Some("functionResponse needs a name, and an object as response".to_owned());
    }
    let inline = &part["inlineData"];
    if inline.is_object() && text(&inline["data"]).starts_with("data:") {
        return Some("inlineData.data is a data URL".to_owned());
    }
    None
}

fn settings(body: &Value) -> Option<String> {
    let config = &body["generationConfig"];
    let has_schema = !config["responseSchema"].is_null() || !config["responseJsonSchema"].is_null();
    if has_schema && config["responseMimeType"] != "application/json" {
        return Some("a schema needs responseMimeType application/json".to_owned());
    }
    for tool in elements(&body["tools"]) {
        for function in elements(&tool["functionDeclarations"]) {
            if let Some(reason) = schema(&function["parameters"]) {
                return Some(format!("parameters of {}: {reason}", function["name"]));
            }
        }
    }
    schema(&config["responseSchema"]).map(|reason| format!("responseSchema: {reason}"))
}

/// The subset of OpenAPI that `parameters` and `responseSchema` may have.
fn schema(value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    for (name, value) in fields {
        let reason = match (name.as_str(), value) {
            ("$schema" | "$ref" | "$defs" | "const" | "allOf" | "not" | "patternProperties", _) => {
                Some(format!("unknown field `{name}`"))
            }
            ("type", Value::Array(_)) => Some("type is a list".to_owned()),
            ("properties", Value::Object(properties)) => properties.values().find_map(schema),
            ("items", items) => schema(items),
            _ => None,
        };
        if reason.is_some() {
            return reason;
        }
    }
    None
}
