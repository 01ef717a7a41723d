//! The upstream of a model: its address, credentials and name there, from LiteLLM's parameters.

use serde_json::{Map, Value};

use super::cloud;
use super::config_text::{mapping, scalar};
use super::value::{text, yaml_text};
use crate::config::providers;

/// The names that LiteLLM and Bifrost have for providers, and our presets.
const PRESETS: [(&str, &str); 29] = [
    ("openai", "openai"),
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("mistral", "mistral"),
    ("groq", "groq"),
    ("deepseek", "deepseek"),
    ("xai", "xai"),
    ("cohere", "cohere"),
    ("cohere_chat", "cohere"),
    ("together_ai", "together"),
    ("fireworks_ai", "fireworks"),
    ("fireworks", "fireworks"),
    ("openrouter", "openrouter"),
    ("cerebras", "cerebras"),
    ("perplexity", "perplexity"),
    ("moonshot", "moonshot"),
    ("zai", "zai"),
    ("dashscope", "dashscope"),
    ("minimax", "minimax"),
    ("nvidia_nim", "nvidia"),
    ("huggingface", "huggingface"),
    ("ollama", "ollama"),
    ("ollama_chat", "ollama"),
    ("hosted_vllm", "vllm"),
    ("vllm", "vllm"),
    ("lm_studio", "lmstudio"),
    ("llamafile", "llamacpp"),
    ("github", "github"),
    ("sgl", "sglang"),
];

/// Providers whose `api_base` speaks the chat format.
const CHAT_SERVERS: [&str; 4] = [
    "openai_like",
    "custom_openai",
    "litellm_proxy",
    "databricks",
];

/// Where a model is, in the words of our config.
pub(super) struct Backend {
    /// What the upstream is called.
    pub name: String,
    pub settings: Vec<(&'static str, String)>,
    /// The upstream's own name for the model.
    pub model: String,
    /// The other gateway's name of the provider.
    pub provider: String,
}

impl Backend {
    /// The upstream of an entry. `Err`: why it has none.
    pub(super) fn of(parameters: &Map<String, Value>) -> Result<Backend, String> {
        let written = parameters.get("model").and_then(text).unwrap_or_default();
        let named = parameters.get("custom_llm_provider").and_then(text);
        let (provider, model) = match (named, written.split_once('/')) {
            (Some(provider), Some((first, rest))) if first == provider => (provider, rest),
            (Some(provider), _) => (provider, written.as_str()),
            (None, Some((provider, rest))) if is_provider(provider) => (provider.to_owned(), rest),
            // Names without a provider are OpenAI's, as are those of models with a slash of their own.
            (None, _) => ("openai".to_owned(), written.as_str()),
        };
        if let Some(cloud) = cloud::of(&provider, model, parameters) {
            let cloud = cloud?;
            let mut settings = vec![("provider", cloud.preset.to_owned())];
            settings.extend(cloud.settings);
            settings.extend(headers(parameters).map(|headers| ("headers", headers)));
            return Ok(Backend {
                name: cloud.preset.to_owned(),
                settings,
                model: cloud.model,
                provider,
            });
        }
        let base = parameters
            .get("api_base")
            .or_else(|| parameters.get("base_url"));
        let base = base.and_then(text);
        let mut settings = endpoint(&provider, base.as_deref())?;
        let is_preset = settings.iter().any(|(key, _)| *key == "provider");
        let key = parameters.get("api_key").and_then(text);
        // The preset finds its own key.
        let key = key.filter(|key| !is_preset || !is_key_of_preset(&provider, key));
        settings.extend(auth(&provider, key.map(|key| scalar(&key)), is_preset));
        if let Some(headers) = headers(parameters) {
            settings.push(("headers", headers));
        }
        Ok(Backend {
            name: preset(&provider).map_or_else(|| provider.replace('_', "-"), str::to_owned),
            settings,
            model: model.to_owned(),
            provider,
        })
    }
}

fn is_provider(name: &str) -> bool {
    preset(name).is_some()
        || CHAT_SERVERS.contains(&name)
        || cloud::CLOUDS.contains(&name)
        || [
            "sagemaker",
            "text-completion-openai",
            "snowflake",
            "watsonx",
            "replicate",
        ]
        .contains(&name)
}

fn preset(provider: &str) -> Option<&'static str> {
    let found = PRESETS.iter().find(|(theirs, _)| *theirs == provider);
    found.map(|(_, ours)| *ours)
}

/// Whether the key is the variable in which the preset looks for it.
fn is_key_of_preset(provider: &str, key: &str) -> bool {
    let name = preset(provider).unwrap_or_default();
    let preset = providers().iter().find(|preset| preset.name == name);
    let keys = preset.map_or(&[][..], |preset| &preset.keys);
    matches!(keys, [only] if *key == format!("${{{only}}}"))
}

fn endpoint(provider: &str, base: Option<&str>) -> Result<Vec<(&'static str, String)>, String> {
    let chat = |base: &str| {
        vec![
            ("format", "chat".to_owned()),
            ("base_url", scalar(base.trim_end_matches('/'))),
        ]
    };
    match (preset(provider), base) {
        (Some("openai"), Some(base)) => Ok(chat(base)),
        (Some(preset), None) => Ok(vec![("provider", preset.to_owned())]),
        (Some(preset), Some(base)) => Ok(vec![
            ("provider", preset.to_owned()),
            ("base_url", scalar(&moved_base(preset, base))),
        ]),
        (None, Some(base)) if CHAT_SERVERS.contains(&provider) => Ok(chat(base)),
        (None, None) if CHAT_SERVERS.contains(&provider) => {
            Err(format!("{provider} needs api_base"))
        }
        (None, _) => Err(format!("the gateway has no preset for {provider}")),
    }
}

/// The base URL as our formats take it: other gateways accept whole paths, and addresses without a path.
fn moved_base(name: &str, base: &str) -> String {
    let base = base.trim_end_matches('/');
    let base = ["/v1/messages", "/v1", "/v1beta"]
        .iter()
        .filter(|_| matches!(name, "anthropic" | "gemini"))
        .find_map(|ending| base.strip_suffix(ending))
        .unwrap_or(base);
    let has_path = base.splitn(4, '/').count() > 3;
    let preset = providers().iter().find(|preset| preset.name == name);
    match preset.and_then(|preset| preset.formats.first()) {
        Some((_, own)) if !has_path => format!("{base}{}", own.prefix),
        _ => base.to_owned(),
    }
}

/// The credentials. A preset finds its own key in the environment.
fn auth(provider: &str, key: Option<String>, has_preset: bool) -> Option<(&'static str, String)> {
    let header = match provider {
        "anthropic" => Some("x-api-key"),
        "gemini" => Some("x-goog-api-key"),
        _ => None,
    };
    match (key, header) {
        (Some(key), Some(name)) => {
            let header = mapping(&[("name", name.to_owned()), ("value", key)]);
            Some(("auth", mapping(&[("header", header)])))
        }
        (Some(key), None) => Some(("auth", mapping(&[("bearer", key)]))),
        (None, _) if has_preset => None,
        (None, _) if provider == "openai" => {
            let key = scalar("${OPENAI_API_KEY}");
            Some(("auth", mapping(&[("bearer", key)])))
        }
        (None, _) => None,
    }
}

fn headers(parameters: &Map<String, Value>) -> Option<String> {
    let mut headers = Vec::new();
    if let Some(organization) = parameters.get("organization").and_then(yaml_text) {
        headers.push(("openai-organization".to_owned(), organization));
    }
    let extra = parameters.get("extra_headers").and_then(Value::as_object);
    for (name, value) in extra.into_iter().flatten() {
        headers.extend(yaml_text(value).map(|value| (scalar(&name.to_lowercase()), value)));
    }
    let headers: Vec<(&str, String)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    (!headers.is_empty()).then(|| mapping(&headers))
}
