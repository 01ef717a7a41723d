//! The settings of the LiteLLM proxy beside its models: how it routes, retries and limits.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::config_text::{Entry, ImportedConfig, list, mapping, scalar};
use super::value::{seconds, text, yaml_text};

/// Reads `router_settings`.
pub(super) fn read_router_settings(config: &mut ImportedConfig, settings: &Map<String, Value>) {
    for (name, value) in settings {
        let path = format!("router_settings.{name}");
        match name.as_str() {
            "routing_strategy" => set_balance(config, &path, value),
            "num_retries" => {
                let attempts = value
                    .as_u64()
                    .map(|retries| retries.saturating_add(1).min(20));
                let mut retries: Vec<(&str, String)> = Vec::new();
                retries.extend(attempts.map(|attempts| ("attempts", attempts.to_string())));
                let pause = settings.get("retry_after").and_then(seconds);
                retries.extend(pause.map(|pause| ("backoff", pause)));
                set_missing(config, "retries", &retries);
            }
            "retry_after" if settings.contains_key("num_retries") => {}
            "timeout" | "stream_timeout" => {
                let both = [("stream_timeout", "first_byte"), ("timeout", "total")];
                let both = both
                    .iter()
                    .filter_map(|(theirs, ours)| Some((*ours, seconds(settings.get(*theirs)?)?)));
                set_missing(config, "timeouts", &both.collect::<Vec<_>>());
            }
            "allowed_fails" => {
                let failures = value.as_u64().map(|fails| fails.saturating_add(1));
                let open_for = settings.get("cooldown_time").and_then(seconds);
                let mut breaker: Vec<(&str, String)> = Vec::new();
                breaker.extend(failures.map(|failures| ("failures", failures.to_string())));
                breaker.extend(open_for.map(|open_for| ("open_for", open_for)));
                config.set_upstreams("breaker", &mapping(&breaker));
            }
            "cooldown_time" if settings.contains_key("allowed_fails") => {}
            "cooldown_time" => {
                if let Some(open_for) = seconds(value) {
                    config.set_upstreams("breaker", &mapping(&[("open_for", open_for)]));
                }
            }
            "fallbacks" => add_fallbacks(config, &path, value),
            "default_fallbacks" => add_default_fallbacks(config, &path, value),
            "context_window_fallbacks" | "content_policy_fallbacks" => {
                config.leave_out(
                    &path,
                    "fallbacks are for failures of every kind but refusals of a request",
                );
            }
            "model_group_alias" => add_aliases(config, value),
            "redis_host" => {
                let get = |name: &str| settings.get(name).and_then(text);
                let host = text(value).unwrap_or_default();
                let port = get("redis_port").unwrap_or_else(|| "6379".to_owned());
                let password = get("redis_password").map(|password| format!(":{password}@"));
                let password = password.unwrap_or_default();
                config.limits_store = Some(scalar(&format!("redis://{password}{host}:{port}/0")));
            }
            "redis_port" | "redis_password" => {}
            _ => config.leave_out(&path, "the gateway has nothing like it"),
        }
    }
}

/// Sets something for all models that do not set it themselves.
fn set_missing(config: &mut ImportedConfig, key: &'static str, values: &[(&str, String)]) {
    let models = config.models.iter_mut();
    let missing = models.filter(|model| !model.settings.iter().any(|(set, _)| *set == key));
    for model in missing.filter(|_| !values.is_empty()) {
        model.set(key, Some(mapping(values)));
    }
}

/// Fallbacks of all models that have none of their own.
fn add_default_fallbacks(config: &mut ImportedConfig, path: &str, value: &Value) {
    let others = value.as_array().into_iter().flatten().filter_map(text);
    let known: HashSet<String> = config.models.iter().map(|it| it.name.clone()).collect();
    let (found, missing): (Vec<String>, Vec<String>) =
        others.partition(|other| known.contains(other));
    for other in missing {
        config.leave_out(path, &format!("{other} is no model of the list"));
    }
    // A fallback that fell back to another one could lead in a circle.
    let is_other = |name: &String| !found.contains(name);
    let models = config.models.iter_mut();
    for model in models.filter(|model| is_other(&model.name)) {
        // Models of another type do something else.
        let has_own = ["fallbacks", "model_type"];
        let has_own = model.settings.iter().any(|(set, _)| has_own.contains(set));
        if !found.is_empty() && !has_own {
            let found: Vec<String> = found.iter().map(|other| scalar(other)).collect();
            model.set("fallbacks", Some(list(&found)));
        }
    }
}

fn set_balance(config: &mut ImportedConfig, path: &str, value: &Value) {
    match value.as_str() {
        Some("simple-shuffle") => {}
        Some("least-busy") => {
            for model in &mut config.models {
                model.set("balance", Some("least_in_flight".to_owned()));
            }
        }
        _ => config.leave_out(path, "requests are shared by weight, or by those in flight"),
    }
}

/// `[{a: [b, c]}]`; ids that the import does not know are left out.
fn add_fallbacks(config: &mut ImportedConfig, path: &str, value: &Value) {
    let known: HashSet<String> = config
        .models
        .iter()
        .map(|model| model.name.clone())
        .collect();
    let entries = value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object);
    for (id, others) in entries.flatten() {
        let others = others.as_array().into_iter().flatten().filter_map(text);
        let (found, missing): (Vec<String>, Vec<String>) =
            others.partition(|other| known.contains(other));
        for other in missing {
            config.leave_out(path, &format!("{other} is no model of the list"));
        }
        let found: Vec<String> = found.iter().map(|other| scalar(other)).collect();
        match config.models.iter_mut().find(|model| model.name == *id) {
            Some(model) if !found.is_empty() => model.set("fallbacks", Some(list(&found))),
            Some(_) => {}
            None => config.leave_out(path, &format!("{id} is no model of the list")),
        }
    }
}

/// Attempts count fallbacks too here: a limit for one model would keep its fallbacks from being reached.
pub(super) fn drop_retries_before_fallbacks(config: &mut ImportedConfig) {
    let mut dropped = Vec::new();
    for model in &mut config.models {
        let has = |key: &str| model.settings.iter().any(|(setting, _)| *setting == key);
        if has("fallbacks") && has("retries") {
            model.settings.retain(|(setting, _)| *setting != "retries");
            dropped.push(model.name.clone());
        }
    }
    for id in dropped {
        let reason =
            "each upstream is tried once, then the fallbacks; models[].retries counts both";
        config.leave_out(&format!("retries of {id}"), reason);
    }
}

/// Further names of models.
fn add_aliases(config: &mut ImportedConfig, value: &Value) {
    for (alias, of) in value.as_object().into_iter().flatten() {
        let of = of.get("model").unwrap_or(of);
        let mut models = config.models.iter_mut();
        match models.find(|model| Some(model.name.as_str()) == of.as_str()) {
            Some(model) => model.add_to_list("aliases", &scalar(alias)),
            None => config.leave_out(
                &format!("router_settings.model_group_alias.{alias}"),
                "its model is not in the list",
            ),
        }
    }
}

/// Reads `general_settings`.
pub(super) fn read_general_settings(config: &mut ImportedConfig, settings: &Map<String, Value>) {
    for (name, value) in settings {
        let path = format!("general_settings.{name}");
        match name.as_str() {
            "master_key" => {
                let mut key = Entry {
                    name: "master".to_owned(),
                    ..Entry::default()
                };
                key.comments.push(
                    "A key like any other: it opens all models, and administers nothing."
                        .to_owned(),
                );
                key.set("secret", yaml_text(value));
                config.keys.push(key);
            }
            "max_parallel_requests" | "global_max_parallel_requests" => {
                config
                    .server
                    .extend(yaml_text(value).map(|limit| ("max_in_flight", limit)));
            }
            "max_request_size_mb" => {
                let size = value.as_u64().filter(|size| *size > 0);
                config
                    .server
                    .extend(size.map(|size| ("body_limit", format!("{size}MiB"))));
            }
            "database_url" => {
                let reason = "its tables are other ones; create keys with `omniglot key create` in a store of your own";
                config.leave_out(&path, reason);
            }
            _ => config.leave_out(&path, "the gateway has nothing like it"),
        }
    }
}

/// Reads `litellm_settings`.
pub(super) fn read_other_settings(config: &mut ImportedConfig, settings: &Map<String, Value>) {
    for (name, value) in settings {
        let path = format!("litellm_settings.{name}");
        match name.as_str() {
            "drop_params" => {
                if value == &Value::Bool(false) {
                    let reason = "what an upstream cannot express is reported; server.on_unsupported: reject refuses it";
                    config.leave_out(&path, reason);
                }
            }
            "fallbacks" => add_fallbacks(config, &path, value),
            "default_fallbacks" => add_default_fallbacks(config, &path, value),
            "cost_discount_config" | "cost_margin_config" => {
                let reason = "it is in the prices that the file has; those of other models are not known here";
                config.leave_out(&path, reason);
            }
            "num_retries" | "request_timeout" | "set_verbose" | "json_logs" => {
                config.leave_out(&path, "set it per model, or in the environment (RUST_LOG)");
            }
            "callbacks" | "success_callback" | "failure_callback" => {
                config.leave_out(
                    &path,
                    "the gateway has metrics, an access log and usage records instead",
                );
            }
            "cache" | "cache_params" => config.leave_out(&path, "responses are not cached"),
            _ => config.leave_out(&path, "the gateway has nothing like it"),
        }
    }
}
