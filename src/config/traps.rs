//! What is allowed but seldom meant: told by `check` and at start, never an error.

use globset::Glob;

use super::settings::{Config, Key, Limits, Model, Upstream};

/// One line each: `keys.dev: has neither limits nor a spending_cap`.
pub fn traps(config: &Config) -> Vec<String> {
    let keys = config.keys.iter().flat_map(|entry| key(config, entry));
    let upstreams = config.upstreams.iter().flat_map(upstream);
    let models = config.models.iter().flat_map(|entry| model(config, entry));
    keys.chain(upstreams).chain(models).collect()
}

fn key(config: &Config, key: &Key) -> Vec<String> {
    let name = &key.name;
    match &key.spending_cap {
        Some(_) => capped(config, key),
        None if key.limits == Limits::default() => vec![format!(
            "keys.{name}: has neither limits nor a spending_cap; whoever holds it may spend without end"
        )],
        None => Vec::new(),
    }
}

/// What a cap does not see, or sees wrongly.
fn capped(config: &Config, key: &Key) -> Vec<String> {
    let name = &key.name;
    let (free, priced): (Vec<&Model>, Vec<&Model>) = opened_by(config, key)
        .into_iter()
        .partition(|model| model.pricing.is_free());
    let mut found = Vec::new();
    if !free.is_empty() {
        let free: Vec<&str> = free.iter().map(|model| model.id.as_str()).collect();
        let free = free.join(", ");
        found.push(format!(
            "keys.{name}: its spending_cap does not see models without pricing: {free}"
        ));
    }
    let mut currencies: Vec<&str> = priced
        .iter()
        .map(|model| model.pricing.currency())
        .collect();
    currencies.sort_unstable();
    currencies.dedup();
    if currencies.len() > 1 {
        let currencies = currencies.join(", ");
        found.push(format!(
            "keys.{name}: its spending_cap adds up prices of several currencies as if they were one: {currencies}"
        ));
    }
    found
}

/// The models that a key may spend on, those that stand in for others included.
fn opened_by<'c>(config: &'c Config, key: &Key) -> Vec<&'c Model> {
    let globs = key.models.as_ref().map(|globs| {
        let globs = globs.iter().filter_map(|glob| Glob::new(glob).ok());
        globs.map(|glob| glob.compile_matcher()).collect::<Vec<_>>()
    });
    let opens = |id: &str| {
        let globs = globs.as_ref();
        globs.is_none_or(|globs| globs.iter().any(|glob| glob.is_match(id)))
    };
    let mut ids: Vec<&str> = config
        .models
        .iter()
        .map(|model| model.id.as_str())
        .collect();
    ids.retain(|id| opens(id));
    let mut next = 0;
    while let Some(id) = ids.get(next) {
        let model = config.models.iter().find(|model| model.id == *id);
        let fallbacks = model.into_iter().flat_map(|model| &model.fallbacks);
        let more: Vec<&str> = fallbacks
            .map(String::as_str)
            .filter(|id| !ids.contains(id))
            .collect();
        ids.extend(more);
        next += 1;
    }
    let models = config.models.iter();
    models
        .filter(|model| ids.contains(&model.id.as_str()))
        .collect()
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
    found.extend(other_measure(model));
    found
}

/// The label is the user's own words, but prices of tokens are for a million of them.
fn other_measure(model: &Model) -> Option<String> {
    let currency = model.pricing.currency();
    let measure = currency.to_lowercase();
    let agrees = !measure.contains("per ") || measure.contains("1m") || measure.contains("million");
    (!agrees).then(|| {
        let id = &model.id;
        format!("models.{id}: its prices of tokens are taken for 1M tokens, not {currency:?}")
    })
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
