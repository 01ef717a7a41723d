//! Encodes the list of models in each format.

use serde_json::{Value, json};

use super::body_hash::CREATED;
use crate::model::Format;

const MODELS: [&str; 7] = [
    "demo-chat",
    "demo-messages",
    "demo-native",
    "demo-responses",
    "demo-image",
    "demo-embedding",
    "demo-completion",
];

/// Returns the format of a list: formats share a path, so the headers decide.
pub(super) fn format_of_list(path: &str, headers: &http::HeaderMap) -> Format {
    let has = |name: &str| headers.contains_key(name);
    if path.starts_with("/v1beta/") || has("x-goog-api-key") || has("x-goog-api-client") {
        Format::Native
    } else if has("anthropic-version") {
        Format::Messages
    } else {
        Format::Chat
    }
}

/// Encodes the list.
pub(super) fn models(format: Format) -> Value {
    let listed: Vec<Value> = MODELS.iter().map(|id| model(format, id)).collect();
    match format {
        Format::Chat | Format::Responses | Format::Images => {
            json!({"object": "list", "data": listed})
        }
        Format::Messages => json!({
            "data": listed,
            "has_more": false,
            "first_id": MODELS.first(),
            "last_id": MODELS.last(),
        }),
        Format::Native => json!({"models": listed}),
    }
}

/// Encodes one model: every name is one.
pub(super) fn model(format: Format, id: &str) -> Value {
    match format {
        Format::Chat | Format::Responses | Format::Images => {
            json!({"id": id, "object": "model", "created": CREATED, "owned_by": "mock"})
        }
        Format::Messages => json!({
            "type": "model",
            "id": id,
            "display_name": id,
            "created_at": "2025-10-09T08:53:20Z",
            "lifecycle": "active",
        }),
        Format::Native => json!({
            "name": format!("models/{id}"),
            "version": "mock",
            "displayName": id,
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        }),
    }
}
