//! Token counters as strict as the real ones, which refuse every field they do not know.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::answer::words_of_request;
use super::reply::Entry;
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

/// `None`: this is no question for a counter.
pub(super) fn of(entry: &Entry) -> Option<&'static dyn TokenCounter> {
    let counter = entry.format.codec().token_counter();
    counter.filter(|_| entry.operation == Operation::CountTokens)
}

pub(super) fn read<'a>(
    counter: &dyn TokenCounter,
    entry: &Entry,
    body: &'a [u8],
) -> Result<Request<'a>, ApiError> {
    let question = counter.decode_count_request(body, &mut Losses::default())?;
    let fields = fields(body)?;
    match entry.format {
        Format::Chat | Format::Images => {}
        Format::Messages => {
            refuse_others(&fields, MESSAGES, |name| {
                format!("{name}: Extra inputs are not permitted")
            })?;
        }
        Format::Responses => {
            refuse_others(&fields, RESPONSES, |name| {
                format!("Unknown parameter: '{name}'.")
            })?;
        }
        Format::Native => {
            refuse_others(&fields, NATIVE, unknown_name)?;
            if let Some(inside) = fields.get(WRAPPED) {
                read_wrapped(inside.get().as_bytes(), entry)?;
            }
        }
    }
    Ok(question.request)
}

/// Each tool counts as a word; only conversations are counted where tokens are paid for.
pub(super) fn count(request: &Request<'_>) -> u64 {
    words_of_request(request) + request.tools.len() as u64
}

type Fields<'a> = BTreeMap<String, &'a RawValue>;

fn fields(body: &[u8]) -> Result<Fields<'_>, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::invalid(error.to_string()))
}

fn refuse_others(
    fields: &Fields<'_>,
    known: &[&str],
    message: impl Fn(&str) -> String,
) -> Result<(), ApiError> {
    // Native fields may be spelled in either way.
    let is = |name: &str, known: &str| name.replace('_', "") == known.to_lowercase();
    let spelled = |name: &str| known.contains(&name) || known.iter().any(|known| is(name, known));
    match fields.keys().find(|name| !spelled(name)) {
        None => Ok(()),
        Some(name) => Err(ApiError::invalid(message(name)).at(name.as_str())),
    }
}

fn unknown_name(name: &str) -> String {
    format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field.")
}

/// The model must be named here too, and be the one of the path.
fn read_wrapped(inside: &[u8], entry: &Entry) -> Result<(), ApiError> {
    let inside = fields(inside)?;
    refuse_others(&inside, NATIVE_INSIDE, unknown_name)?;
    let path_model = entry.path_model.as_deref().unwrap_or_default();
    let expected = format!("\"models/{path_model}\"");
    let given = inside.get("model").map_or("", |name| name.get());
    if given == expected {
        return Ok(());
    }
    let message = format!("GenerateContentRequest.model: expected {expected}, got {given}");
    Err(ApiError::invalid(message).at("model"))
}
