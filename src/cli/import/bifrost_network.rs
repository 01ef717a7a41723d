//! What all keys of one of Bifrost's providers share: network, concurrency, proxy.

use serde_json::{Map, Value, json};

use super::bifrost_key::text;
use super::config_text::{ImportedConfig, mapping, scalar};
use super::value::seconds;

const NOTHING_LIKE_IT: &str = "the gateway has nothing like it";

/// What all keys of a provider have in common.
pub(super) struct ProviderSettings {
    /// In the words of LiteLLM, which `backend.rs` reads.
    pub parameters: Map<String, Value>,
    /// Settings of each upstream.
    pub upstream: Vec<(&'static str, String)>,
    /// Settings of each model.
    pub model: Vec<(&'static str, String)>,
}

/// Reads the settings of a provider beside its keys.
pub(super) fn read(config: &mut ImportedConfig, path: &str, provider: &Value) -> ProviderSettings {
    let mut settings = ProviderSettings {
        parameters: Map::new(),
        upstream: Vec::new(),
        model: Vec::new(),
    };
    for (name, value) in provider.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match name.as_str() {
            "keys" => {}
            "network_config" => read_network(config, &path, value, &mut settings),
            "concurrency_and_buffer_size" => read_concurrency(value, &mut settings),
            "proxy_config" => read_proxy(config, &path, value, &mut settings),
            "custom_provider_config" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    match name.as_str() {
                        "base_provider_type" => {
                            let kind = ("custom_llm_provider".to_owned(), value.clone());
                            settings.parameters.extend([kind]);
                        }
                        _ => config.leave_out(&format!("{path}.{name}"), NOTHING_LIKE_IT),
                    }
                }
            }
            _ => config.leave_out(&path, NOTHING_LIKE_IT),
        }
    }
    settings
}

fn read_network(
    config: &mut ImportedConfig,
    path: &str,
    network: &Value,
    settings: &mut ProviderSettings,
) {
    let (mut retries, mut timeouts) = (Vec::new(), Vec::new());
    for (name, value) in network.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match name.as_str() {
            _ if value.is_null() => {}
            "base_url" => {
                let base = text(value).filter(|base| !base.is_empty());
                let base = base.map(|base| ("api_base".to_owned(), json!(base)));
                settings.parameters.extend(base);
            }
            "extra_headers" => {
                let headers = ("extra_headers".to_owned(), value.clone());
                settings.parameters.extend([headers]);
            }
            "max_retries" => {
                let count = value.as_u64().filter(|count| *count > 0);
                let attempts = count.map(|count| count.saturating_add(1).min(20));
                retries.extend(attempts.map(|attempts| ("attempts", attempts.to_string())));
            }
            "retry_backoff_initial" | "retry_backoff_initial_ms" => {
                let pause = value.as_u64().filter(|pause| *pause > 0);
                retries.extend(pause.map(|pause| ("backoff", format!("{pause}ms"))));
            }
            "retry_backoff_max" | "retry_backoff_max_ms" => {
                config.leave_out(
                    &path,
                    "the pause is doubled each time, without another limit",
                );
            }
            "default_request_timeout_in_seconds" => {
                timeouts.extend(seconds(value).map(|time| ("total", time)));
            }
            "stream_idle_timeout_in_seconds" => {
                timeouts.extend(seconds(value).map(|time| ("idle", time)));
            }
            "insecure_skip_verify" => {
                let reason = "certificates are always verified; tls.ca of the upstream trusts your own authority";
                config.leave_out(&path, reason);
            }
            "ca_cert_pem" => {
                config.leave_out(
                    &path,
                    "write it to a file, and name that as tls.ca of the upstream",
                );
            }
            _ => config.leave_out(&path, NOTHING_LIKE_IT),
        }
    }
    for (key, values) in [("retries", retries), ("timeouts", timeouts)] {
        if !values.is_empty() {
            settings.model.push((key, mapping(&values)));
        }
    }
}

fn read_concurrency(value: &Value, settings: &mut ProviderSettings) {
    for (theirs, ours) in [("concurrency", "max_in_flight"), ("buffer_size", "queue")] {
        let limit = value.get(theirs).and_then(Value::as_u64);
        let limit = limit.filter(|limit| *limit > 0);
        settings
            .upstream
            .extend(limit.map(|limit| (ours, limit.to_string())));
    }
}

/// A proxy of the config; that of the environment is used anyway.
fn read_proxy(
    config: &mut ImportedConfig,
    path: &str,
    value: &Value,
    settings: &mut ProviderSettings,
) {
    let get = |name: &str| value.get(name).and_then(text).filter(|it| !it.is_empty());
    match (get("type").as_deref(), get("url"), get("username")) {
        (Some("http"), Some(url), None) => settings.upstream.push(("proxy", scalar(&url))),
        (Some("http"), Some(url), Some(user)) => {
            let password = get("password").unwrap_or_default();
            let with_user = url.replacen("://", &format!("://{user}:{password}@"), 1);
            settings.upstream.push(("proxy", scalar(&with_user)));
        }
        (Some("none"), ..) => settings.upstream.push(("proxy", "none".to_owned())),
        (Some("environment") | None, ..) => {}
        _ => config.leave_out(path, "proxies are spoken to with HTTP alone"),
    }
}
