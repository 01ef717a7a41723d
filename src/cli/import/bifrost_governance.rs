//! The virtual keys of Bifrost, with their budgets and rate limits.

use serde_json::Value;

use super::bifrost_key::text;
use super::config_text::{Entry, ImportedConfig, list, mapping, scalar};

const NOTHING_LIKE_IT: &str = "the gateway has nothing like it";

/// Budgets and rate limits, by their ids.
struct BifrostLimits<'v> {
    budgets: &'v [Value],
    rate_limits: &'v [Value],
}

impl BifrostLimits<'_> {
    fn rate_limit(&self, id: &Value) -> Option<&Value> {
        let mut limits = self.rate_limits.iter();
        limits.find(|limit| limit.get("id") == Some(id))
    }

    /// The budget of a key: the one that it names, or the one that names it.
    fn budget(&self, key: &Value) -> Option<&Value> {
        let named = key.get("budget_id").filter(|id| id.is_string());
        let (id, mut budgets) = (key.get("id"), self.budgets.iter());
        budgets.find(|budget| {
            let owner = budget.get("virtual_key_id").filter(|id| id.is_string());
            (named.is_some() && budget.get("id") == named) || (owner.is_some() && owner == id)
        })
    }
}

/// Reads what stands under `governance`.
pub(super) fn read(config: &mut ImportedConfig, governance: &Value) {
    let of = |name: &str| {
        let list = governance.get(name).and_then(Value::as_array);
        list.map_or(&[][..], Vec::as_slice)
    };
    let limits = BifrostLimits {
        budgets: of("budgets"),
        rate_limits: of("rate_limits"),
    };
    for (place, key) in of("virtual_keys").iter().enumerate() {
        let path = format!("governance.virtual_keys[{place}]");
        add_key(config, &path, key, &limits);
    }
    for (place, budget) in limits.budgets.iter().enumerate() {
        let mut keys = of("virtual_keys").iter();
        if !keys.any(|key| limits.budget(key) == Some(budget)) {
            let path = format!("governance.budgets[{place}]");
            config.leave_out(&path, "only keys have spending caps");
        }
    }
    for (name, value) in governance.as_object().into_iter().flatten() {
        let is_read = ["virtual_keys", "budgets", "rate_limits"].contains(&name.as_str());
        if !is_read && !value.as_array().is_some_and(Vec::is_empty) {
            config.leave_out(&format!("governance.{name}"), NOTHING_LIKE_IT);
        }
    }
}

fn add_key(config: &mut ImportedConfig, path: &str, key: &Value, limits: &BifrostLimits<'_>) {
    if key.get("is_active") == Some(&Value::Bool(false)) {
        config.leave_out(path, "it is not active");
        return;
    }
    let of = |name: &str| key.get(name).and_then(text).filter(|it| !it.is_empty());
    let Some(name) = of("name").or_else(|| of("id")) else {
        config.leave_out(path, "it has no name");
        return;
    };
    let Some(secret) = of("value") else {
        let reason = "its value is in a database; give it a secret of its own";
        config.leave_out(&format!("{path} ({name})"), reason);
        return;
    };
    let models = models_of(config, path, key);
    if models.is_empty() {
        let reason = "it may use no model of any provider";
        config.leave_out(&format!("{path} ({name})"), reason);
        return;
    }
    let mut entry = Entry {
        name,
        ..Entry::default()
    };
    entry.set("secret", Some(scalar(&secret)));
    let models: Vec<String> = models.iter().map(|model| scalar(model)).collect();
    entry.set("models", Some(list(&models)));
    if let Some(limit) = key
        .get("rate_limit_id")
        .and_then(|id| limits.rate_limit(id))
    {
        entry.set("limits", rate_limits(config, path, limit));
    }
    if let Some(budget) = limits.budget(key) {
        set_cap(config, path, budget, &mut entry);
    }
    let read = [
        "id",
        "name",
        "value",
        "is_active",
        "description",
        "provider_configs",
        "rate_limit_id",
        "budget_id",
    ];
    for field in key
        .as_object()
        .into_iter()
        .flatten()
        .map(|(field, _)| field)
    {
        if !read.contains(&field.as_str()) {
            config.leave_out(&format!("{path}.{field}"), NOTHING_LIKE_IT);
        }
    }
    config.keys.push(entry);
}

/// The globs of the models that a key may use.
fn models_of(config: &mut ImportedConfig, path: &str, key: &Value) -> Vec<String> {
    let mut globs = Vec::new();
    let providers = key.get("provider_configs").and_then(Value::as_array);
    for (place, allowed) in providers.into_iter().flatten().enumerate() {
        let path = format!("{path}.provider_configs[{place}]");
        let Some(provider) = allowed.get("provider").and_then(Value::as_str) else {
            continue;
        };
        let models = allowed.get("allowed_models").and_then(Value::as_array);
        let models = models.into_iter().flatten().filter_map(Value::as_str);
        globs.extend(models.map(|model| format!("{provider}/{model}")));
        let keys = allowed.get("key_ids").and_then(Value::as_array);
        let is_pinned = keys.is_some_and(|keys| !keys.is_empty() && keys != &["*"]);
        if is_pinned {
            let reason = "a key is for models here, whichever upstream serves them";
            config.leave_out(&format!("{path}.key_ids"), reason);
        }
        if allowed.get("rate_limit_id").is_some_and(|id| !id.is_null()) {
            let reason = "a key has one limit for all models";
            config.leave_out(&format!("{path}.rate_limit_id"), reason);
        }
    }
    globs
}

/// Limits for a minute; others have no counterpart.
fn rate_limits(config: &mut ImportedConfig, path: &str, limit: &Value) -> Option<String> {
    let mut found = Vec::new();
    for (what, ours) in [
        ("request", "requests_per_minute"),
        ("token", "tokens_per_minute"),
    ] {
        let most = limit.get(format!("{what}_max_limit"));
        let Some(most) = most.and_then(Value::as_u64) else {
            continue;
        };
        let window = limit.get(format!("{what}_reset_duration"));
        match window.and_then(Value::as_str) {
            Some("1m" | "60s") => found.push((ours, most.to_string())),
            window => {
                let window = window.unwrap_or_default();
                let reason = format!("{most} {what}s in {window}: limits are for a minute here");
                config.leave_out(&format!("{path}.rate_limit_id"), &reason);
            }
        }
    }
    (!found.is_empty()).then(|| mapping(&found))
}

fn set_cap(config: &mut ImportedConfig, path: &str, budget: &Value, entry: &mut Entry) {
    let most = budget.get("max_limit").and_then(Value::as_f64);
    entry.set("spending_cap", most.map(|most| most.to_string()));
    match budget.get("reset_duration").and_then(Value::as_str) {
        Some("1d" | "24h") => entry.set("reset", Some("daily".to_owned())),
        Some("1M") => entry.set("reset", Some("monthly".to_owned())),
        other => {
            let window = other.unwrap_or_default();
            let reason = format!(
                "a cap is reset daily, monthly or never, not after {window}: it is never reset"
            );
            config.leave_out(&format!("{path} (budget)"), &reason);
        }
    }
}
