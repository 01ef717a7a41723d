//! One key of one of Bifrost's providers: its secret, its models, and what clouds and local servers need.

use serde_json::{Map, Value, json};

use super::config_text::ImportedConfig;

/// What a key is for, in the words of LiteLLM.
pub(super) struct BifrostKey {
    pub parameters: Map<String, Value>,
    pub models: Vec<BifrostModel>,
}

/// A model, or all whose names a pattern matches.
pub(super) struct BifrostModel {
    /// What clients ask for, behind the name of the provider.
    pub id: String,
    /// The provider's own name.
    pub own_name: String,
    /// Where it is not the one that the key is of.
    pub provider: Option<&'static str>,
}

/// A value of Bifrost, where `env.NAME` and its object for one stand for a variable.
pub(super) fn text(value: &Value) -> Option<String> {
    if let Some(fields) = value.as_object() {
        let of = |name: &str| fields.get(name).and_then(Value::as_str);
        let variable = of("env_var").filter(|_| fields.get("from_env") == Some(&json!(true)));
        return match variable {
            Some(name) => Some(format!("${{{}}}", name.trim_start_matches("env."))),
            None => of("value").map(str::to_owned),
        };
    }
    let text = value.as_str()?;
    Some(match text.strip_prefix("env.") {
        Some(name) => format!("${{{name}}}"),
        None => text.to_owned(),
    })
}

/// The settings of clouds, and LiteLLM's names of them.
const CLOUD_SETTINGS: [(&str, &[(&str, &str)]); 4] = [
    (
        "azure_key_config",
        &[
            ("endpoint", "api_base"),
            ("tenant_id", "tenant_id"),
            ("client_id", "client_id"),
            ("client_secret", "client_secret"),
        ],
    ),
    (
        "vertex_key_config",
        &[
            ("project_id", "vertex_project"),
            ("region", "vertex_location"),
            ("auth_credentials", "vertex_credentials"),
        ],
    ),
    ("bedrock_key_config", AWS_SETTINGS),
    ("bedrock_mantle_key_config", AWS_SETTINGS),
];

const AWS_SETTINGS: &[(&str, &str)] = &[
    ("region", "aws_region_name"),
    ("access_key", "aws_access_key_id"),
    ("secret_key", "aws_secret_access_key"),
    ("session_token", "aws_session_token"),
    ("role_arn", "aws_role_name"),
    ("external_id", "aws_external_id"),
    ("session_name", "aws_session_name"),
    ("role_session_name", "aws_session_name"),
];

/// Local servers, whose address stands in the key.
const SERVER_SETTINGS: [&str; 3] = ["vllm_key_config", "ollama_key_config", "sgl_key_config"];

/// Reads a key.
pub(super) fn read(
    config: &mut ImportedConfig,
    path: &str,
    provider: &str,
    key: &Value,
) -> BifrostKey {
    let mut parameters = Map::new();
    let secret = key.get("value").and_then(text);
    let secret = secret.filter(|secret| !secret.is_empty());
    let has_secret = secret.is_some();
    parameters.extend(secret.map(|secret| ("api_key".to_owned(), json!(secret))));
    let mut own_names = Map::new();
    for (name, value) in key.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let mut clouds = CLOUD_SETTINGS.iter();
        if let Some((_, known)) = clouds.find(|(cloud, _)| cloud == name) {
            read_cloud(config, &path, value, known, &mut parameters, &mut own_names);
            continue;
        }
        match name.as_str() {
            "value" | "models" | "weight" | "id" | "name" | "description" | "enabled" => {}
            "aliases" => own_names.extend(read_aliases(config, &path, value)),
            "blacklisted_models" if value.as_array().is_some_and(Vec::is_empty) => {}
            "blacklisted_models" => {
                config.leave_out(&path, "list the models that the key is for instead");
            }
            "use_for_batch_api" => config.leave_out(&path, "batches are not served"),
            _ if SERVER_SETTINGS.contains(&name.as_str()) => {
                let url = value.get("url").and_then(text);
                parameters.extend(url.map(|url| ("api_base".to_owned(), json!(url))));
                if value.get("model_name").is_some() {
                    let reason = "list it under models of the key";
                    config.leave_out(&format!("{path}.model_name"), reason);
                }
            }
            _ => config.leave_out(&path, "the gateway has nothing like it"),
        }
    }
    if provider == "azure" && !has_secret && !parameters.contains_key("client_secret") {
        // What the environment has: a workload identity, or that of the machine.
        parameters.insert("use_default_identity".to_owned(), json!(true));
    }
    let models = asked_models(provider, key, &own_names);
    BifrostKey { parameters, models }
}

fn read_cloud(
    config: &mut ImportedConfig,
    path: &str,
    value: &Value,
    known: &[(&str, &str)],
    parameters: &mut Map<String, Value>,
    own_names: &mut Map<String, Value>,
) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if let Some((_, parameter)) = known.iter().find(|(theirs, _)| theirs == name) {
            let value = text(value).filter(|value| !value.is_empty());
            parameters.extend(value.map(|value| ((*parameter).to_owned(), json!(value))));
            if name == "auth_credentials" {
                let reason = "it must be the path of the file, or its JSON; base64 is not taken";
                config.leave_out(&path, reason);
            }
            continue;
        }
        match name.as_str() {
            // The older place of aliases.
            "deployments" => own_names.extend(read_aliases(config, &path, value)),
            "scopes" => {
                let scopes = value.as_array().into_iter().flatten().filter_map(text);
                let scopes: Vec<String> = scopes.collect();
                if let [scope] = &scopes[..] {
                    parameters.insert("azure_scope".to_owned(), json!(scope));
                } else if !scopes.is_empty() {
                    config.leave_out(&path, "an upstream has one scope");
                }
            }
            "api_version" => {
                config.leave_out(&path, "not needed: the upstream is asked at /openai/v1");
            }
            "project_number" => config.leave_out(&path, "project_id suffices"),
            "arn" => config.leave_out(
                &path,
                "write the ARN of a profile as the model of its upstream",
            ),
            "batch_s3_config" => config.leave_out(&path, "batches are not served"),
            _ => config.leave_out(&path, "see the auth of upstreams for what the gateway has"),
        }
    }
}

/// Names of models, and the provider's own: texts, or objects with more about the model.
fn read_aliases(config: &mut ImportedConfig, path: &str, value: &Value) -> Map<String, Value> {
    let mut own_names = Map::new();
    for (alias, own) in value.as_object().into_iter().flatten() {
        let name = own.as_str().or_else(|| own.get("model_id")?.as_str());
        match name {
            Some(name) => {
                own_names.insert(alias.clone(), json!(name));
            }
            None => config.leave_out(&format!("{path}.{alias}"), "it names no model_id"),
        }
        let fields = own.as_object().into_iter().flatten();
        for (field, _) in fields.filter(|(field, _)| *field != "model_id") {
            let path = format!("{path}.{alias}.{field}");
            config.leave_out(&path, "the gateway has nothing like it");
        }
    }
    own_names
}

/// The models that a key is for: those that it lists and those that it has other names for. A key without a list is for
/// all, which on clouds are served by several presets.
fn asked_models(provider: &str, key: &Value, own_names: &Map<String, Value>) -> Vec<BifrostModel> {
    let listed = key.get("models").and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(Value::as_str);
    let listed: Vec<&str> = listed.collect();
    let own_name = |id: &str| {
        let own = own_names.get(id).and_then(Value::as_str);
        own.unwrap_or(id).to_owned()
    };
    let aliases = own_names.keys().map(String::as_str);
    let mut ids: Vec<&str> = listed.iter().copied().filter(|id| *id != "*").collect();
    ids.extend(aliases.filter(|alias| !listed.contains(alias)));
    let mut models: Vec<BifrostModel> = ids
        .into_iter()
        .map(|id| BifrostModel {
            id: id.to_owned(),
            own_name: own_name(id),
            provider: provider_of(provider, &own_name(id)),
        })
        .collect();
    if listed.is_empty() || listed.contains(&"*") {
        let patterns: &[&str] = match provider {
            "vertex" => &["gemini-*", "claude-*", "google/*"],
            "bedrock" => &["*", "openai.*"],
            "bedrock_mantle" => &["*", "anthropic.*"],
            _ => &["*"],
        };
        models.extend(patterns.iter().map(|pattern| BifrostModel {
            id: (*pattern).to_owned(),
            own_name: (*pattern).to_owned(),
            provider: provider_of(provider, pattern),
        }));
    }
    models
}

/// LiteLLM's name of the provider, where it depends on the model or is another one.
fn provider_of(provider: &str, model: &str) -> Option<&'static str> {
    match provider {
        "azure" if model.starts_with("claude") => Some("azure_ai"),
        "vertex" => Some("vertex_ai"),
        _ => None,
    }
}
