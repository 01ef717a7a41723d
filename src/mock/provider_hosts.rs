//! The hosts of providers, where a request names one: the mock then refuses what the real host would refuse.
//!
//! The table is written from the documentation of the providers, and not from the presets, which are tested with it.

use http::request::Parts;

use super::cloud_rules::{self, credential, not_found};
use super::field_rules::{self, FieldRule};
use super::request::MockRequest;
use crate::model::{ApiError, ApiErrorKind, Format};

/// A host and the paths that it has.
struct ProviderHost {
    name: &'static str,
    /// What stands before `/chat/completions`, `/embeddings` and the like.
    chat: Option<&'static str>,
    /// What stands before `/responses`.
    responses: Option<&'static str>,
    /// What stands before `/v1/messages`.
    messages: Option<&'static str>,
    /// The header of the key; a bearer token where it is `authorization`.
    key: &'static str,
    /// What its chat endpoint refuses.
    fields: FieldRule,
}

const OPENAI: ProviderHost = ProviderHost {
    name: "api.openai.com",
    chat: Some("/v1"),
    responses: Some("/v1"),
    messages: None,
    key: "authorization",
    fields: FieldRule::None,
};

const fn chat(name: &'static str, base: &'static str) -> ProviderHost {
    ProviderHost {
        name,
        chat: Some(base),
        responses: None,
        ..OPENAI
    }
}

const fn with_messages(host: ProviderHost, base: &'static str) -> ProviderHost {
    ProviderHost {
        messages: Some(base),
        ..host
    }
}

const fn with_responses(host: ProviderHost, base: &'static str) -> ProviderHost {
    ProviderHost {
        responses: Some(base),
        ..host
    }
}

const fn with_rule(host: ProviderHost, fields: FieldRule) -> ProviderHost {
    ProviderHost { fields, ..host }
}

const HOSTS: [ProviderHost; 20] = [
    OPENAI,
    ProviderHost {
        name: "api.anthropic.com",
        chat: None,
        responses: None,
        messages: Some(""),
        key: "x-api-key",
        fields: FieldRule::None,
    },
    with_rule(chat("api.mistral.ai", "/v1"), FieldRule::Mistral),
    with_rule(
        with_responses(chat("api.groq.com", "/openai/v1"), "/openai/v1"),
        FieldRule::Groq,
    ),
    with_messages(chat("api.deepseek.com", ""), "/anthropic"),
    with_responses(chat("api.x.ai", "/v1"), "/v1"),
    with_rule(
        chat("api.cohere.ai", "/compatibility/v1"),
        FieldRule::Cohere,
    ),
    chat("api.together.ai", "/v1"),
    with_messages(
        with_responses(chat("api.fireworks.ai", "/inference/v1"), "/inference/v1"),
        "/inference",
    ),
    with_messages(
        with_responses(chat("openrouter.ai", "/api/v1"), "/api/v1"),
        "/api",
    ),
    chat("models.github.ai", "/inference"),
    chat("api.cerebras.ai", "/v1"),
    with_responses(chat("api.perplexity.ai", ""), "/v1"),
    with_messages(
        with_responses(chat("api.moonshot.ai", "/v1"), "/v1"),
        "/anthropic",
    ),
    with_messages(chat("open.bigmodel.cn", "/api/paas/v4"), "/api/anthropic"),
    with_messages(chat("api.z.ai", "/api/paas/v4"), "/api/anthropic"),
    with_messages(
        with_responses(
            chat("dashscope.aliyuncs.com", "/compatible-mode/v1"),
            "/api/v2/apps/protocols/compatible-mode/v1",
        ),
        "/apps/anthropic",
    ),
    with_messages(chat("api.minimax.io", "/v1"), "/anthropic"),
    chat("integrate.api.nvidia.com", "/v1"),
    chat("router.huggingface.co", "/v1"),
];

/// The endpoints behind the base of a host.
const CHAT: &str = "/chat/completions";
const RESPONSES: &str = "/responses";
const MESSAGES: [&str; 2] = ["/v1/messages", "/v1/messages/count_tokens"];

/// The host that a request is for, without its port.
pub(super) fn host_of(head: &Parts) -> &str {
    let named = head.headers.get(http::header::HOST);
    let named = named.and_then(|host| host.to_str().ok());
    let host = named.or_else(|| head.uri.host()).unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

fn provider(name: &str) -> Option<&'static ProviderHost> {
    HOSTS.iter().find(|host| host.name == name)
}

/// The format of an endpoint that a provider has at a path of its own, and whether it counts tokens.
pub(super) fn endpoint(head: &Parts) -> Option<(Format, bool)> {
    let host = provider(host_of(head))?;
    let below = |base: Option<&str>| head.uri.path().strip_prefix(base?);
    let in_messages = below(host.messages).filter(|rest| MESSAGES.contains(rest));
    if let Some(rest) = in_messages {
        return Some((Format::Messages, rest == MESSAGES[1]));
    }
    if below(host.responses) == Some(RESPONSES) {
        return Some((Format::Responses, false));
    }
    (below(host.chat) == Some(CHAT)).then_some((Format::Chat, false))
}

/// What the host of a request refuses it for. `None`: nothing, or it is a host that the mock does not know.
pub(super) fn refusal(received: &MockRequest) -> Option<ApiError> {
    let name = host_of(&received.head);
    if let Some(refusal) = cloud_rules::refusal(name, received) {
        return Some(refusal);
    }
    let host = provider(name)?;
    let path = received.head.uri.path();
    let bases = [host.chat, host.responses, host.messages];
    let mut bases = bases.into_iter().flatten();
    if !bases.any(|base| path.starts_with(base)) {
        return Some(not_found(path));
    }
    if credential(&received.head.headers, host.key).is_none() {
        let message = format!("{name} wants a key in `{}`", host.key);
        return Some(ApiError::new(ApiErrorKind::Unauthenticated, message));
    }
    if host.key == "x-api-key" && received.head.headers.get("anthropic-version").is_none() {
        return Some(ApiError::invalid("anthropic-version: header is required"));
    }
    match path.ends_with(CHAT) {
        true => field_rules::refusal(&host.fields, &received.body),
        false => None,
    }
}
