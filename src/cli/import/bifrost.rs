//! Reads `config.json` of Bifrost.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::backend::Backend;
use super::bifrost_governance;
use super::bifrost_key;
use super::bifrost_network::{self, ProviderSettings};
use super::config_text::{Entry, ImportedConfig, list, mapping, scalar};

/// Weights there are shares of one; here they are whole numbers.
const WEIGHT: f64 = 100.0;

const NOTHING_LIKE_IT: &str = "the gateway has nothing like it";

pub(super) fn import(text: &str) -> Result<ImportedConfig> {
    let root: Value = serde_json::from_str(text).context("not valid JSON")?;
    let root = root.as_object().context("the file must be an object")?;
    let mut config = ImportedConfig::default();
    let providers = root.get("providers").and_then(Value::as_object);
    for (name, provider) in providers.into_iter().flatten() {
        let settings = bifrost_network::read(&mut config, &format!("providers.{name}"), provider);
        let keys = provider.get("keys").and_then(Value::as_array);
        for (place, key) in keys.into_iter().flatten().enumerate() {
            let path = format!("providers.{name}.keys[{place}]");
            add_key(&mut config, &path, name, &settings, key);
        }
        if keys.is_none_or(Vec::is_empty) {
            let path = format!("providers.{name}");
            add_key(&mut config, &path, name, &settings, &json!({}));
        }
    }
    for (name, value) in root {
        match name.as_str() {
            "providers" | "$schema" => {}
            "governance" => bifrost_governance::read(&mut config, value),
            "client" => read_client(&mut config, value),
            _ => config.leave_out(name, NOTHING_LIKE_IT),
        }
    }
    Ok(config)
}

fn read_client(config: &mut ImportedConfig, client: &Value) {
    for (name, value) in client.as_object().into_iter().flatten() {
        match (name.as_str(), value.as_u64()) {
            ("max_request_body_size_mb", Some(size @ 1..)) => {
                config.server.push(("body_limit", format!("{size}MiB")));
            }
            _ => config.leave_out(&format!("client.{name}"), NOTHING_LIKE_IT),
        }
    }
}

/// One key of a provider: an upstream for each of its models.
fn add_key(
    config: &mut ImportedConfig,
    path: &str,
    name: &str,
    settings: &ProviderSettings,
    key: &Value,
) {
    if key.get("enabled") == Some(&Value::Bool(false)) {
        config.leave_out(path, "it is not enabled");
        return;
    }
    let asked = bifrost_key::read(config, path, name, key);
    for model in &asked.models {
        let mut parameters = settings.parameters.clone();
        parameters.extend(asked.parameters.clone());
        parameters
            .entry("custom_llm_provider")
            .or_insert_with(|| json!(model.provider.unwrap_or(name)));
        parameters.insert("model".to_owned(), json!(model.own_name));
        let backend = match Backend::of(&parameters) {
            Ok(backend) => backend,
            Err(reason) => {
                config.leave_out(&format!("{path} ({})", model.id), &reason);
                continue;
            }
        };
        let mut upstream = backend.settings;
        upstream.extend(settings.upstream.iter().cloned());
        let upstream = config.add_upstream(name, upstream);
        let weight = key.get("weight").and_then(Value::as_f64);
        let weight = weight.map(|weight| (weight * WEIGHT).round().clamp(1.0, 1_000_000.0));
        let mut target = vec![
            ("name", scalar(&upstream)),
            ("model", scalar(&backend.model)),
        ];
        target.extend(weight.map(|weight| ("weight", weight.to_string())));
        let id = format!("{name}/{}", model.id);
        add_target(config, &id, mapping(&target), settings);
    }
}

/// The type of a model that is no model of conversations, which there only its name tells.
fn model_type(id: &str) -> Option<&'static str> {
    let types = [
        ("embed", "embedding"),
        ("rerank", "rerank"),
        ("whisper", "audio"),
        ("transcribe", "audio"),
        ("tts", "audio"),
    ];
    let found = types.into_iter().find(|(word, _)| id.contains(word));
    found.map(|(_, kind)| kind)
}

fn add_target(config: &mut ImportedConfig, id: &str, target: String, settings: &ProviderSettings) {
    if let Some(model) = config.models.iter_mut().find(|model| model.name == id) {
        model.add_to_list("upstreams", &target);
        return;
    }
    let mut model = Entry {
        name: id.to_owned(),
        ..Entry::default()
    };
    let kind = model_type(id).map(str::to_owned);
    model.set("model_type", kind);
    if id.contains('*') {
        // There, a key is for models of all types.
        model.set("features", Some("[embedding, audio]".to_owned()));
    }
    model.set("upstreams", Some(list(&[target])));
    model.settings.extend(settings.model.iter().cloned());
    config.models.push(model);
}
