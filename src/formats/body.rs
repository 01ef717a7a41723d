//! Decodes bodies and events, and makes the errors for those that cannot be decoded.

use std::fmt::Display;

use bytes::Bytes;
use serde_json::Value;

use super::json_bytes::to_json_string;
use super::request_options::ModelField;
use crate::json::{self, Edit, FromJson, RawJson, UniqueField, UniqueFieldsError, decode_value};
use crate::model::ApiError;

/// The message for an upstream's error that has none.
pub(super) const DEFAULT_ERROR_MESSAGE: &str = "upstream error";

/// Returns the message of an error, also of servers that do not follow any format.
pub(super) fn error_message<'b>(message: Option<&'b str>, body: &'b Value) -> &'b str {
    let elsewhere = ["message", "detail"].map(|key| body[key].as_str());
    let mut messages = [message].into_iter().chain(elsewhere).flatten();
    messages
        .find(|message| !message.is_empty())
        .unwrap_or(DEFAULT_ERROR_MESSAGE)
}

/// Tells whether a body is an error of a model API: `{"error": …}`, be it in a list, or the flat `{"object": "error", …}`
/// of some servers. What a web server or a framework says of a path that it does not know is none.
pub(super) fn is_error_body(body: &[u8]) -> bool {
    let body = decode_value(body);
    let body = body.get(0).unwrap_or(&body);
    matches!(body["error"], Value::Object(_) | Value::String(_)) || body["object"] == "error"
}

/// Decodes the body of a request, which must be an object: derived readers would accept an array
/// in its place.
pub(super) fn decode_request_body<'a, T: FromJson<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    json::decode_json(object_text(body)?).map_err(|error| not_json(&error))
}

/// Decodes the fields of a request that decide access or money: each may stand there once.
pub(super) fn decode_unique_fields<'a, const N: usize>(
    body: &'a [u8],
    spellings: [&[&'static str]; N],
) -> Result<[UniqueField<'a>; N], ApiError> {
    let fields = json::decode_unique(object_text(body)?, None, spellings);
    fields.map_err(|error| match error {
        UniqueFieldsError::Refused(api_error) => api_error,
        UniqueFieldsError::Syntax(error) => not_json(&error),
    })
}

/// Decodes such fields, unless the body is known to have none of them.
pub(super) fn decode_written_fields<'a, const N: usize>(
    body: &'a [u8],
    may_be_written: bool,
    spellings: [&[&'static str]; N],
) -> Result<[UniqueField<'a>; N], ApiError> {
    match may_be_written {
        true => decode_unique_fields(body, spellings),
        false => Ok(spellings.map(|names| UniqueField::absent(names[0]))),
    }
}

/// Decodes such fields of an object in the body; where it is absent, they are.
pub(super) fn decode_unique_members<'a, const N: usize>(
    object: &UniqueField<'a>,
    spellings: [&[&'static str]; N],
) -> Result<[UniqueField<'a>; N], ApiError> {
    let text = object.value().map_or("{}", RawJson::get);
    let fields = json::decode_unique(text, Some(object.name()), spellings);
    fields.map_err(|error| match error {
        UniqueFieldsError::Refused(api_error) => api_error,
        UniqueFieldsError::Syntax(_) => object.wrong("an object"),
    })
}

/// Decodes such fields of an object in a list of the body; `parent` names the list.
pub(super) fn decode_unique_item<'a, const N: usize>(
    text: &'a str,
    parent: &'static str,
    spellings: [&[&'static str]; N],
) -> Result<[UniqueField<'a>; N], ApiError> {
    json::decode_unique(text, Some(parent), spellings).map_err(|error| match error {
        UniqueFieldsError::Refused(api_error) => api_error,
        UniqueFieldsError::Syntax(_) => {
            ApiError::invalid(format!("`{parent}` must be an object")).at(parent)
        }
    })
}

/// The edit that sets such a field of the body.
pub(super) fn set_field(body: &[u8], field: &UniqueField<'_>, value: &str) -> Edit {
    let written = field.written().map(|value| value.range_in(body));
    let object = body.iter().position(|byte| *byte == b'{').unwrap_or(0);
    json::set_member(body, object, field.name(), written, value)
}

/// Decodes the model that a field of the body names, and where its name stands.
pub(super) fn decode_model_name<'a>(
    body: &[u8],
    field: &UniqueField<'a>,
) -> Result<Option<ModelField<'a>>, ApiError> {
    let Some(raw) = field.value() else {
        return Ok(None);
    };
    let name = raw.text();
    Ok(Some(ModelField {
        name: name.ok_or_else(|| ApiError::invalid("model: expected a string").at("model"))?,
        range: raw.range_in(body),
    }))
}

/// Returns the body with this `model`, whatever it named before.
pub(super) fn set_model(body: &[u8], model: &str) -> Result<Bytes, ApiError> {
    let [named] = decode_unique_fields(body, [&["model"]])?;
    let model = to_json_string(model);
    let edit = set_field(body, &named, &String::from_utf8_lossy(&model));
    Ok(json::replace(body, &[edit]))
}

fn object_text(body: &[u8]) -> Result<&str, ApiError> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    str::from_utf8(body).map_err(|error| not_json(&error))
}

#[cold]
fn not_json(why: &dyn Display) -> ApiError {
    ApiError::invalid(format!("the body is not valid JSON: {why}"))
}

/// The error for a response without the field that holds its content.
pub(super) fn missing_content() -> ApiError {
    ApiError::bad_gateway("the upstream's response has no content")
}

/// Decodes the body of an upstream's response, which must be an object as well.
pub(super) fn decode_response_body<'a, T: FromJson<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    let text = str::from_utf8(body).map_err(|error| unreadable(&error))?;
    decode_event_data(text)
}

/// Decodes the payload of an event of a stream, or a part of it.
pub(super) fn decode_event_data<'a, T: FromJson<'a>>(data: &'a str) -> Result<T, ApiError> {
    json::decode_json(data).map_err(|error| unreadable(&error))
}

#[cold]
fn unreadable(why: &dyn Display) -> ApiError {
    ApiError::bad_gateway(format!("the upstream's response cannot be decoded: {why}"))
}

#[cfg(test)]
mod tests {
    use super::is_error_body;

    #[test]
    fn errors_of_model_apis_are_told_from_those_of_web_servers() {
        for body in [
            r#"{"error":{"message":"no such model"}}"#,
            r#"[{"error":{"code":404}}]"#,
            r#"{"error":"model 'm' not found"}"#,
            r#"{"object":"error","message":"no such model","code":404}"#,
        ] {
            assert!(is_error_body(body.as_bytes()), "{body}");
        }
        for body in [
            "",
            "<!doctype html><h1>404</h1>",
            "404 page not found",
            r#"{"detail":"Not Found"}"#,
            r#"{"message":"no Route matched with those values"}"#,
            r#"{"error":null}"#,
            "[]",
            "404",
        ] {
            assert!(!is_error_body(body.as_bytes()), "{body}");
        }
    }
}
