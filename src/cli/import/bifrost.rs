//! Reads `config.json` of Bifrost.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::backend::Backend;
use super::config_text::{Entry, ImportedConfig, list, mapping, scalar};
use super::value::seconds;

/// Weights there are shares of one; here they are whole numbers.
const WEIGHT: f64 = 100.0;

pub(super) fn import(text: &str) -> Result<ImportedConfig> {
    let root: Value = serde_json::from_str(text).context("not valid JSON")?;
    let root = root.as_object().context("the file must be an object")?;
    let mut config = ImportedConfig::default();
    let providers = root.get("providers").and_then(Value::as_object);
    for (name, provider) in providers.into_iter().flatten() {
        let keys = provider.get("keys").and_then(Value::as_array);
        for (place, key) in keys.into_iter().flatten().enumerate() {
            let path = format!("providers.{name}.keys[{place}]");
            add_key(&mut config, &path, name, provider, key);
        }
        if keys.is_none_or(Vec::is_empty) {
            let path = format!("providers.{name}");
            add_key(&mut config, &path, name, provider, &json!({}));
        }
    }
    for name in root.keys() {
        if !["providers", "$schema"].contains(&name.as_str()) {
            config.leave_out(name, "the gateway has nothing like it");
        }
    }
    Ok(config)
}

/// One key of a provider: an upstream for each of its models.
fn add_key(config: &mut ImportedConfig, path: &str, name: &str, provider: &Value, key: &Value) {
    let network = provider.get("network_config").cloned().unwrap_or_default();
    let base_type = provider.pointer("/custom_provider_config/base_provider_type");
    let models = key.get("models").and_then(Value::as_array);
    let models: Vec<&str> = models
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // A key without a list is for all models of its provider.
    let models = match models.is_empty() || models.contains(&"*") {
        true => vec!["*"],
        false => models,
    };
    for refused in [
        "azure_key_config",
        "vertex_key_config",
        "bedrock_key_config",
    ] {
        if key.get(refused).is_some() {
            config.leave_out(
                &format!("{path}.{refused}"),
                "write base_url and auth of the upstream",
            );
            return;
        }
    }
    for model in models {
        let own_name = key
            .pointer(&format!("/aliases/{model}"))
            .and_then(Value::as_str);
        let mut parameters = Map::new();
        parameters.insert("model".to_owned(), json!(own_name.unwrap_or(model)));
        parameters.insert(
            "custom_llm_provider".to_owned(),
            base_type.cloned().unwrap_or_else(|| json!(name)),
        );
        let secret = key
            .get("value")
            .and_then(Value::as_str)
            .filter(|secret| !secret.is_empty());
        let secret = secret.map(|secret| match secret.strip_prefix("env.") {
            Some(name) => format!("${{{name}}}"),
            None => secret.to_owned(),
        });
        parameters.extend(secret.map(|secret| ("api_key".to_owned(), json!(secret))));
        for (theirs, ours) in [("base_url", "api_base"), ("extra_headers", "extra_headers")] {
            let value = network.get(theirs).filter(|value| !value.is_null());
            parameters.extend(value.map(|value| (ours.to_owned(), value.clone())));
        }
        let backend = match Backend::of(&parameters) {
            Ok(backend) => backend,
            Err(reason) => {
                config.leave_out(path, &reason);
                return;
            }
        };
        let upstream = config.add_upstream(name, backend.settings);
        let weight = key.get("weight").and_then(Value::as_f64);
        let weight = weight.map(|weight| (weight * WEIGHT).round().clamp(1.0, 1_000_000.0));
        let mut target = vec![
            ("name", scalar(&upstream)),
            ("model", scalar(&backend.model)),
        ];
        target.extend(weight.map(|weight| ("weight", weight.to_string())));
        add_target(
            config,
            &format!("{name}/{model}"),
            mapping(&target),
            &network,
        );
    }
}

fn add_target(config: &mut ImportedConfig, id: &str, target: String, network: &Value) {
    if let Some(model) = config.models.iter_mut().find(|model| model.name == id) {
        model.add_to_list("upstreams", &target);
        return;
    }
    let mut model = Entry {
        name: id.to_owned(),
        ..Entry::default()
    };
    model.set("upstreams", Some(list(&[target])));
    let retries = network.get("max_retries").and_then(Value::as_u64);
    let attempts = retries
        .filter(|retries| *retries > 0)
        .map(|retries| retries.saturating_add(1).min(20));
    model.set(
        "retries",
        attempts.map(|attempts| format!("{{attempts: {attempts}}}")),
    );
    let timeout = network
        .get("default_request_timeout_in_seconds")
        .and_then(seconds);
    model.set(
        "timeouts",
        timeout.map(|timeout| mapping(&[("total", timeout)])),
    );
    config.models.push(model);
}
