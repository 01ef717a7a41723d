//! `/translate`, for everybody.

use std::collections::BTreeMap;

use axum::Json;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Body;
use crate::console::actor::ConsoleCall;
use crate::console::operations::translate::{self, TranslationInput};
use crate::console::refusal::Refusal;
use crate::console::views::TranslationView;

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TranslateBody {
    /// `request`, `response` or `stream`; absent: a request.
    #[serde(default)]
    kind: String,
    /// The format of the input: `chat`, `responses`, `messages`, `native` or `images`.
    from: String,
    /// The format of the output.
    to: String,
    /// JSON as it is, or a text with JSON or server-sent events; at most 256 KiB.
    #[cfg_attr(test, schema(value_type = Value))]
    input: Box<RawValue>,
    /// Of a request: the upstream's model id; of a response: the client's. Absent: as in the input.
    #[serde(default)]
    model: String,
    /// The request is for a stream, where the path says so.
    #[serde(default)]
    stream: bool,
    /// The longest output of the upstream's model.
    max_output_tokens: Option<u64>,
    /// Capabilities of the upstream's model, as in the config.
    #[serde(default)]
    #[cfg_attr(test, schema(value_type = BTreeMap<String, Value>))]
    capabilities: BTreeMap<String, Value>,
}

/// Translates a body into another format, as the gateway does. Nothing is stored or logged.
#[cfg_attr(test, utoipa::path(post, path = "/translate", tag = "translate", request_body = TranslateBody, responses((status = 200, body = TranslationView), (status = 400, body = super::ApiRefusal), (status = 429, body = super::ApiRefusal))))]
pub async fn translate(
    call: ConsoleCall,
    Body(body): Body<TranslateBody>,
) -> Result<Json<TranslationView>, Refusal> {
    let text = serde_json::from_str(body.input.get());
    let capabilities = body.capabilities.into_iter().map(|(name, value)| {
        let value = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        (name, value)
    });
    let input = TranslationInput {
        kind: body.kind,
        from: body.from,
        to: body.to,
        input: text.unwrap_or_else(|_| body.input.get().to_owned()),
        model: body.model,
        stream: body.stream,
        max_output_tokens: body
            .max_output_tokens
            .map(|tokens| tokens.to_string())
            .unwrap_or_default(),
        capabilities: capabilities.collect(),
    };
    translate::translate(&call, input).await.map(Json)
}
