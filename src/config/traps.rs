//! What is allowed but seldom meant: told by `check` and at start, never an error.

use super::settings::{Config, Key, Limits, Model, Upstream};

/// One line each: `keys.dev: has neither limits nor a spending_cap`.
pub fn traps(config: &Config) -> Vec<String> {
    let keys = config.keys.iter().flat_map(key);
    let upstreams = config.upstreams.iter().flat_map(upstream);
    let models = config.models.iter().flat_map(|entry| model(config, entry));
    keys.chain(upstreams).chain(models).collect()
}

fn key(key: &Key) -> Option<String> {
    let name = &key.name;
    match &key.spending_cap {
        Some(_) => Some(format!(
            "keys.{name}: spending_cap is not enforced by this version"
        )),
        None if key.limits == Limits::default() => Some(format!(
            "keys.{name}: has neither limits nor a spending_cap; whoever holds it may spend without end"
        )),
        None => None,
    }
}

fn upstream(upstream: &Upstream) -> Vec<String> {
    let timeouts = &upstream.timeouts;
    [
        ("first_byte", timeouts.first_byte),
        ("idle", timeouts.idle),
    ]
    .into_iter()
    .filter(|(_, timeout)| timeout.is_none() && timeouts.total.is_none())
    .map(|(timeout, _)| {
        let name = &upstream.name;
        format!(
            "upstreams.{name}: timeouts.{timeout} is off and there is no total; an upstream that falls silent is waited for without end"
        )
    })
    .collect()
}

fn model(config: &Config, model: &Model) -> Vec<String> {
    let id = &model.id;
    let mut found = Vec::new();
    for fallback in &model.fallbacks {
        let Some(other) = config.models.iter().find(|other| other.id == *fallback) else {
            continue;
        };
        let missing: Vec<&str> = model
            .features
            .iter()
            .filter(|feature| !other.features.contains(feature))
            .map(String::as_str)
            .collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            found.push(format!(
                "models.{id}: its fallback {fallback} does not list the features: {missing}"
            ));
        }
        if other.model_type != model.model_type {
            found.push(format!(
                "models.{id}: its fallback {fallback} is of type {}, not {}",
                other.model_type, model.model_type
            ));
        }
    }
    found.extend(unreachable(model));
    found
}

/// Upstreams that so few attempts never come to.
fn unreachable(model: &Model) -> Option<String> {
    let attempts = model.retries.attempts?;
    let id = &model.id;
    let lowest = model.upstreams.iter().map(|target| target.priority).min()?;
    let first = model.upstreams.iter();
    let first = first.filter(|target| target.priority == lowest).count();
    let all = model.upstreams.len();
    let names: Vec<&str> = match attempts {
        // Within a priority the weights decide, and every upstream has its turn.
        few if few <= first => model
            .upstreams
            .iter()
            .filter(|target| target.priority != lowest)
            .map(|target| target.name.as_str())
            .chain(model.fallbacks.iter().map(String::as_str))
            .collect(),
        few if few <= all => model.fallbacks.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("models.{id}: with {attempts} attempts these are never reached: {names}")
    })
}
