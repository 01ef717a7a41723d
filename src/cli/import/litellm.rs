//! Reads `config.yaml` of the LiteLLM proxy.

use std::collections::HashSet;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

use super::backend::Backend;
use super::cloud;
use super::config_text::{Entry, ImportedConfig, list, mapping, scalar};
use super::litellm_settings::{
    drop_retries_before_fallbacks, read_general_settings, read_other_settings, read_router_settings,
};
use super::value::{per_million, per_minute, seconds, text, yaml_text};
use crate::config::parse_foreign_yaml;
use crate::formats::Operation;

/// Prices for one token, and ours for a million.
const PRICES: [(&str, &str); 4] = [
    ("input_cost_per_token", "input"),
    ("output_cost_per_token", "output"),
    ("cache_read_input_token_cost", "cached_input"),
    ("cache_creation_input_token_cost", "cache_write"),
];

/// Parameters that the rest of this file and `backend.rs` read.
const KNOWN_PARAMETERS: [&str; 20] = [
    "model",
    "custom_llm_provider",
    "api_base",
    "base_url",
    "api_key",
    "organization",
    "extra_headers",
    "weight",
    "order",
    "rpm",
    "tpm",
    "max_parallel_requests",
    "timeout",
    "stream_timeout",
    "max_retries",
    "max_tokens",
    "drop_params",
    "litellm_credential_name",
    "input_cost_per_second",
    "output_cost_per_second",
];

pub(super) fn import(text: &str) -> Result<ImportedConfig> {
    let root = parse_foreign_yaml(text).map_err(anyhow::Error::msg);
    let root = root.context("not valid YAML")?;
    let root = root.as_object().context("the file must be a mapping")?;
    let empty = Map::new();
    let section = |name: &str| root.get(name).and_then(Value::as_object).unwrap_or(&empty);
    let mut config = ImportedConfig::default();
    let credentials = root.get("credential_list").and_then(Value::as_array);
    let models = root.get("model_list").and_then(Value::as_array);
    let factors = PriceFactors(section("litellm_settings"));
    for (place, entry) in models.into_iter().flatten().enumerate() {
        add_deployment(
            &mut config,
            place,
            entry,
            credentials.map_or(&[], Vec::as_slice),
            &factors,
        );
    }
    read_router_settings(&mut config, section("router_settings"));
    read_general_settings(&mut config, section("general_settings"));
    read_other_settings(&mut config, section("litellm_settings"));
    drop_retries_before_fallbacks(&mut config);
    for name in root.keys() {
        let known = [
            "model_list",
            "credential_list",
            "router_settings",
            "general_settings",
            "litellm_settings",
            "environment_variables",
        ];
        if !known.contains(&name.as_str()) {
            config.leave_out(name, "the gateway has nothing like it");
        }
    }
    if root.contains_key("environment_variables") {
        let reason = "set them in the environment of the gateway";
        config.leave_out("environment_variables", reason);
    }
    Ok(config)
}

/// Discounts and margins of providers, by which prices are multiplied there.
struct PriceFactors<'v>(&'v Map<String, Value>);

impl PriceFactors<'_> {
    fn of(&self, provider: &str) -> f64 {
        let share = |config: &str, name: &str| {
            let value = self.0.get(config)?.get(name)?;
            value.as_f64().or_else(|| value.get("percentage")?.as_f64())
        };
        let discount = share("cost_discount_config", provider).unwrap_or(0.0);
        let margin = share("cost_margin_config", provider);
        let margin = margin.or_else(|| share("cost_margin_config", "global"));
        ((1.0 - discount) * (1.0 + margin.unwrap_or(0.0))).max(0.0)
    }
}

/// One deployment: an upstream of a model. Several of one name are one model.
fn add_deployment(
    config: &mut ImportedConfig,
    place: usize,
    entry: &Value,
    credentials: &[Value],
    factors: &PriceFactors<'_>,
) {
    let path = format!("model_list[{place}]");
    let empty = Map::new();
    let Some(id) = entry.get("model_name").and_then(text) else {
        config.leave_out(&path, "it has no model_name");
        return;
    };
    let parameters = entry.get("litellm_params").and_then(Value::as_object);
    let parameters = with_credentials(parameters.unwrap_or(&empty), credentials);
    let backend = match Backend::of(&parameters) {
        Ok(backend) => backend,
        Err(reason) => {
            config.leave_out(&format!("{path} ({id})"), &reason);
            return;
        }
    };
    let mut settings = backend.settings;
    let limit = parameters.get("max_parallel_requests").and_then(yaml_text);
    settings.extend(limit.map(|limit| ("max_in_flight", limit)));
    let upstream = config.add_upstream(&backend.name, settings);
    let mut target = vec![("name", scalar(&upstream))];
    if backend.model != id {
        target.push(("model", scalar(&backend.model)));
    }
    let number = |name: &str| parameters.get(name).and_then(Value::as_u64);
    let share = number("weight")
        .or_else(|| number("rpm"))
        .or_else(|| number("tpm"));
    target.extend(
        share
            .filter(|share| (1..=1_000_000).contains(share))
            .map(|share| ("weight", share.to_string())),
    );
    let order = number("order").map(|order| order.saturating_sub(1));
    target.extend(
        order
            .filter(|order| *order > 0)
            .map(|order| ("priority", order.to_string())),
    );
    report_parameters(config, &path, &parameters);
    let info = entry.get("model_info").and_then(Value::as_object);
    let target = mapping(&target);
    match config.models.iter_mut().find(|model| model.name == id) {
        Some(model) => model.add_to_list("upstreams", &target),
        None => {
            let factor = factors.of(&backend.provider);
            let model = new_model(id, &target, &parameters, info.unwrap_or(&empty), factor);
            config.models.push(model);
        }
    }
}

/// The prices of a model, times the factor of its provider.
fn prices_of(
    parameters: &Map<String, Value>,
    info: &Map<String, Value>,
    factor: f64,
) -> Vec<(&'static str, String)> {
    let both = |name: &str| parameters.get(name).or_else(|| info.get(name));
    let mut prices: Vec<(&'static str, String)> = Vec::new();
    for (theirs, ours) in PRICES {
        let price = both(theirs).and_then(|price| per_million(price, factor));
        prices.extend(price.map(|price| (ours, price)));
    }
    if info.get("mode").and_then(Value::as_str) == Some("audio_transcription") {
        let minute = both("input_cost_per_second").or_else(|| both("output_cost_per_second"));
        let minute = minute.and_then(|price| per_minute(price, factor));
        prices.extend(minute.map(|price| ("per_audio_minute", price)));
    } else {
        let per_second = both("output_cost_per_second").or_else(|| both("input_cost_per_second"));
        prices.extend(per_second.and_then(text).map(|price| ("per_second", price)));
    }
    prices
}

fn new_model(
    id: String,
    target: &str,
    parameters: &Map<String, Value>,
    info: &Map<String, Value>,
    factor: f64,
) -> Entry {
    let mut model = Entry {
        name: id,
        ..Entry::default()
    };
    let mode = info.get("mode").and_then(Value::as_str);
    if mode == Some("image_generation") {
        model.set("model_type", Some("image".to_owned()));
    } else if mode.is_some_and(|mode| ["audio_transcription", "audio_speech"].contains(&mode)) {
        model.set("model_type", Some("audio".to_owned()));
    } else if let Some(same) = mode.filter(|mode| Operation::MODEL_TYPES.contains(mode)) {
        // Text completions are asked for as conversations there too.
        let model_type = (same != "completion").then(|| same.to_owned());
        model.set("model_type", model_type);
    } else if let Some(mode) =
        mode.filter(|mode| !["chat", "completion", "responses"].contains(mode))
    {
        model.comments.push(format!(
            "model_info.mode is {mode}, which the gateway does not serve"
        ));
    }
    let prices = prices_of(parameters, info, factor);
    if !prices.is_empty() {
        model.set("pricing", Some(mapping(&prices)));
    }
    let features = [
        ("supports_function_calling", "tools"),
        ("supports_vision", "vision"),
        ("supports_reasoning", "thinking"),
    ];
    let features: Vec<String> = features
        .iter()
        .filter(|(theirs, _)| info.get(*theirs) == Some(&Value::Bool(true)))
        .map(|(_, ours)| (*ours).to_owned())
        .collect();
    if !features.is_empty() {
        model.set("features", Some(list(&features)));
    }
    model.set(
        "max_output_tokens",
        parameters.get("max_tokens").and_then(yaml_text),
    );
    model.set("upstreams", Some(list(&[target.to_owned()])));
    let retries = parameters.get("max_retries").and_then(Value::as_u64);
    let attempts = retries.map(|retries| retries.saturating_add(1).min(20));
    model.set(
        "retries",
        attempts.map(|attempts| format!("{{attempts: {attempts}}}")),
    );
    let timeouts: Vec<(&str, String)> = [("stream_timeout", "first_byte"), ("timeout", "total")]
        .iter()
        .filter_map(|(theirs, ours)| Some((*ours, seconds(parameters.get(*theirs)?)?)))
        .collect();
    if !timeouts.is_empty() {
        model.set("timeouts", Some(mapping(&timeouts)));
    }
    model
}

/// The parameters with those of the credentials that they name.
fn with_credentials(parameters: &Map<String, Value>, credentials: &[Value]) -> Map<String, Value> {
    let mut all = parameters.clone();
    if let Some(name) = parameters.get("litellm_credential_name") {
        let mut credentials = credentials.iter();
        let named = credentials.find(|entry| entry.get("credential_name") == Some(name));
        let values = named.and_then(|entry| entry.get("credential_values"));
        for (key, value) in values.and_then(Value::as_object).into_iter().flatten() {
            all.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    all
}

fn report_parameters(config: &mut ImportedConfig, path: &str, parameters: &Map<String, Value>) {
    let prices: HashSet<&str> = PRICES.iter().map(|(theirs, _)| *theirs).collect();
    for name in parameters.keys() {
        let path = format!("{path}.litellm_params.{name}");
        match name.as_str() {
            "rpm" | "tpm" => config.leave_out(
                &path,
                "keys have limits here, not upstreams; it became the weight",
            ),
            "api_version" => {
                config.leave_out(&path, "not needed: the upstream is asked at /openai/v1")
            }
            name if KNOWN_PARAMETERS.contains(&name) || prices.contains(name) => {}
            name if cloud::PARAMETERS.contains(&name) => {}
            name if name.starts_with("aws_") || name.starts_with("vertex_") => {
                config.leave_out(&path, "see the auth of upstreams for what the gateway has");
            }
            _ => config.leave_out(
                &path,
                "clients send it themselves; the gateway sets no defaults",
            ),
        }
    }
}
