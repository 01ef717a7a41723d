//! Errors in the shape of each format: those that the upstream sends, and whether a client can read one.

use serde_json::{Value, json};

use super::format::WireFormat;

/// An error that the upstream answers with.
#[derive(Debug, Clone)]
pub struct UpstreamError {
    pub status: u16,
    pub message: String,
}

/// An error that a client read.
#[derive(Debug, Clone, Default)]
pub struct SeenError {
    pub message: String,
    /// What is not as the format has it.
    pub flaw: Option<String>,
}

impl UpstreamError {
    /// The body in the shape of a format.
    pub fn body(&self, format: WireFormat) -> Value {
        let message = &self.message;
        match format {
            WireFormat::Chat | WireFormat::Responses => {
                let (kind, code) = openai_kind(self.status);
                json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
            }
            WireFormat::Messages => {
                let kind = anthropic_kind(self.status);
                let error = json!({"type": kind, "message": message});
                json!({"type": "error", "error": error, "request_id": "req_score"})
            }
            WireFormat::Native => {
                let status = google_status(self.status);
                json!({"error": {"code": self.status, "message": message, "status": status}})
            }
        }
    }

    /// The event of a stream that fails after it has begun.
    pub fn frame(&self, format: WireFormat) -> String {
        let body = self.body(format);
        match format {
            WireFormat::Chat | WireFormat::Native => format!("data: {body}\n\n"),
            WireFormat::Messages => format!("event: error\ndata: {body}\n\n"),
            WireFormat::Responses => {
                let error = json!({"code": "server_error", "message": self.message});
                let response = json!({
                    "id": "resp_score", "object": "response", "created_at": 1_700_000_000, "model": "score",
                    "status": "failed", "error": error, "output": [], "parallel_tool_calls": true,
                    "tool_choice": "auto", "tools": []
                });
                let event =
                    json!({"type": "response.failed", "sequence_number": 99, "response": response});
                format!("event: response.failed\ndata: {event}\n\n")
            }
        }
    }
}

/// Reads the body of an error, in any shape that has words, and says what is wrong with it.
pub fn read(format: WireFormat, body: &Value) -> Result<SeenError, String> {
    let flaw = flaw(format, body).map(|missing| format!("the error has no {missing}"));
    let error = &body["error"];
    let words = [&error["message"], error, &body["message"], &body["detail"]];
    match words.into_iter().find_map(Value::as_str) {
        Some(message) => Ok(SeenError {
            message: message.to_owned(),
            flaw,
        }),
        None => Err(flaw.unwrap_or_default()),
    }
}

/// What an error of the format must have, and this one has not.
fn flaw(format: WireFormat, body: &Value) -> Option<&'static str> {
    let error = &body["error"];
    Some(match format {
        WireFormat::Chat | WireFormat::Responses if !error["type"].is_string() => "error.type",
        WireFormat::Messages if body["type"] != "error" => "type: error",
        WireFormat::Messages if !error["type"].is_string() => "error.type",
        WireFormat::Native if !error["code"].is_u64() => "error.code, a number",
        WireFormat::Native if !error["status"].is_string() => "error.status",
        _ if !error["message"].is_string() => "error.message",
        _ => return None,
    })
}

const fn openai_kind(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        400 => ("invalid_request_error", None),
        401 => ("invalid_request_error", Some("invalid_api_key")),
        403 => ("invalid_request_error", Some("permission_denied")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("rate_limit_error", Some("rate_limit_exceeded")),
        _ => ("server_error", None),
    }
}

const fn anthropic_kind(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        _ => "api_error",
    }
}

const fn google_status(status: u16) -> &'static str {
    match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}
