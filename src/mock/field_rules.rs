//! Fields of chat requests that some providers refuse.

use serde_json::{Map, Value};

use crate::model::{ApiError, ApiErrorKind};

/// What a provider's chat endpoint refuses.
pub(super) enum FieldRule {
    None,
    /// Every field that is not in its documentation, with a 422.
    Mistral,
    Groq,
    Cohere,
}

const MISTRAL: [&str; 20] = [
    "model",
    "messages",
    "temperature",
    "top_p",
    "max_tokens",
    "stream",
    "stop",
    "random_seed",
    "response_format",
    "tools",
    "tool_choice",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "prediction",
    "parallel_tool_calls",
    "prompt_mode",
    "prompt_cache_key",
    "guardrails",
    "safe_prompt",
];

const MISTRAL_MESSAGE: [&str; 5] = ["role", "content", "tool_calls", "tool_call_id", "prefix"];

/// What a body is refused for.
pub(super) fn refusal(rule: &FieldRule, body: &[u8]) -> Option<ApiError> {
    let fields: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let messages = fields.get("messages").and_then(Value::as_array);
    let messages = messages.into_iter().flatten().filter_map(Value::as_object);
    let refused: Option<String> = match rule {
        FieldRule::None => None,
        FieldRule::Mistral => {
            let mut names = fields.keys();
            let top = names.find(|name| !MISTRAL.contains(&name.as_str()));
            let mut inside = messages.flat_map(Map::keys);
            let inside = inside.find(|name| !MISTRAL_MESSAGE.contains(&name.as_str()));
            top.or(inside).cloned()
        }
        FieldRule::Groq => {
            let refused = ["logprobs", "top_logprobs", "logit_bias"];
            let mut names = fields.keys();
            let top = names.find(|name| refused.contains(&name.as_str()));
            let mut inside = messages.flat_map(Map::keys);
            top.or_else(|| inside.find(|name| *name == "name")).cloned()
        }
        FieldRule::Cohere => {
            let mut names = fields.keys();
            names.find(|name| *name == "stream_options").cloned()
        }
    };
    let message = format!("{}: Extra inputs are not permitted", refused?);
    let mut api_error = ApiError::new(ApiErrorKind::Invalid, message);
    if matches!(rule, FieldRule::Mistral) {
        api_error.status = 422;
    }
    Some(api_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_refused_by_those_who_refuse_them() {
        let status = |rule: FieldRule, body: &str| {
            let refused = refusal(&rule, body.as_bytes());
            refused.map_or(200, |api_error| api_error.status)
        };
        for (body, mistral, groq, cohere) in [
            (r#"{"model":"m","messages":[]}"#, 200, 200, 200),
            (r#"{"stream_options":{}}"#, 422, 200, 400),
            (r#"{"logprobs":true}"#, 422, 400, 200),
            (
                r#"{"messages":[{"role":"user","name":"a"}]}"#,
                422,
                400,
                200,
            ),
            (r#"{"seed":1}"#, 422, 200, 200),
        ] {
            assert_eq!(status(FieldRule::Mistral, body), mistral, "{body}");
            assert_eq!(status(FieldRule::Groq, body), groq, "{body}");
            assert_eq!(status(FieldRule::Cohere, body), cohere, "{body}");
            assert_eq!(status(FieldRule::None, body), 200, "{body}");
        }
    }
}
