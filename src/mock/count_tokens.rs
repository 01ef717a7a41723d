//! Token counting endpoints as strict as the real ones, which refuse every unknown field.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::content::words_of_request;
use super::endpoint::MockEndpoint;
use crate::formats::{Operation, TokenCounter};
use crate::model::{ApiError, Format, Losses, Request};

const MESSAGES: &[&str] = &[
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
    "speed",
    "user_profile_id",
    "workspace_id",
    "compaction",
    "context_management",
    "mcp_servers",
];
const RESPONSES: &[&str] = &[
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
    "personality",
    "conversation",
    "previous_response_id",
];
const NATIVE: &[&str] = &["contents", WRAPPED];
const WRAPPED: &str = "generateContentRequest";
const NATIVE_INSIDE: &[&str] = &[
    "model",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "serviceTier",
    "store",
];

/// Returns the counter of the endpoint, if it is one that counts.
pub(super) fn counter_of(endpoint: &MockEndpoint) -> Option<&'static dyn TokenCounter> {
    let counter = endpoint.format.codec().token_counter();
    counter.filter(|_| endpoint.operation == Operation::CountTokens)
}

/// Decodes and checks a request for a count.
pub(super) fn decode<'a>(
    counter: &dyn TokenCounter,
    endpoint: &MockEndpoint,
    body: &'a [u8],
) -> Result<Request<'a>, ApiError> {
    let count_request = counter.decode_count_request(body, &mut Losses::default())?;
    let fields = fields(body)?;
    match endpoint.format {
        Format::Chat | Format::Images => {}
        Format::Messages => {
            refuse_unknown(&fields, MESSAGES, |name| {
                format!("{name}: Extra inputs are not permitted")
            })?;
        }
        Format::Responses => {
            refuse_unknown(&fields, RESPONSES, |name| {
                format!("Unknown parameter: '{name}'.")
            })?;
        }
        Format::Native => {
            refuse_unknown(&fields, NATIVE, unknown_name)?;
            if let Some(inside) = fields.get(WRAPPED) {
                check_wrapped(inside.get().as_bytes(), endpoint)?;
            }
        }
    }
    Ok(count_request.request)
}

/// Counts tokens: each word is one, and each tool.
pub(super) fn count(request: &Request<'_>) -> u64 {
    words_of_request(request) + request.tools.len() as u64
}

type CountFields<'a> = BTreeMap<String, &'a RawValue>;

fn fields(body: &[u8]) -> Result<CountFields<'_>, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::invalid(error.to_string()))
}

fn refuse_unknown(
    fields: &CountFields<'_>,
    known: &[&str],
    message: impl Fn(&str) -> String,
) -> Result<(), ApiError> {
    // Native fields may be in camel case or in snake case.
    let is = |name: &str, known: &str| name.replace('_', "") == known.to_lowercase();
    let is_known = |name: &str| known.contains(&name) || known.iter().any(|known| is(name, known));
    match fields.keys().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(ApiError::invalid(message(name)).at(name.as_str())),
    }
}

fn unknown_name(name: &str) -> String {
    format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field.")
}

/// Checks the wrapped request: it must name the model of the path.
fn check_wrapped(inside: &[u8], endpoint: &MockEndpoint) -> Result<(), ApiError> {
    let inside = fields(inside)?;
    refuse_unknown(&inside, NATIVE_INSIDE, unknown_name)?;
    let path_model = endpoint.path_model.as_deref().unwrap_or_default();
    let expected = format!("\"models/{path_model}\"");
    let found = inside.get("model").map_or("", |name| name.get());
    if found == expected {
        return Ok(());
    }
    let message = format!("GenerateContentRequest.model: expected {expected}, got {found}");
    Err(ApiError::invalid(message).at("model"))
}
