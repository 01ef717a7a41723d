//! Warnings for settings that are valid but seldom intended, shown by `check` and at the start.

use std::collections::{HashMap, HashSet};

use globset::Glob;

use super::settings::{Config, KeyConfig, Limits, ModelConfig, UpstreamConfig};

/// One line each: `keys.dev: has neither limits nor a spending_cap`.
pub fn warnings(config: &Config) -> Vec<String> {
    let prices = ModelPrices::of(config);
    let keys = config.keys.iter().flat_map(|entry| key(&prices, entry));
    let upstreams = config.upstreams.iter().flat_map(upstream);
    let models = config.models.iter().flat_map(|entry| model(config, entry));
    keys.chain(upstreams).chain(models).collect()
}

fn key(prices: &ModelPrices<'_>, key: &KeyConfig) -> Vec<String> {
    let name = &key.name;
    match &key.spending_cap {
        Some(_) => prices.capped(key),
        None if key.limits == Limits::default() => vec![format!(
            "keys.{name}: has neither limits nor a spending_cap; whoever holds it may spend without end"
        )],
        None => Vec::new(),
    }
}

/// The models by id, and whether caps work with all of their prices, so that with thousands of keys and models not every
/// key looks at every model.
struct ModelPrices<'c> {
    config: &'c Config,
    models: HashMap<&'c str, &'c ModelConfig>,
    is_plain: bool,
}

impl<'c> ModelPrices<'c> {
    fn of(config: &'c Config) -> ModelPrices<'c> {
        let models = config.models.iter();
        let currency =
            |model: &'c ModelConfig| (!model.pricing.is_free()).then(|| model.pricing.currency());
        // One currency for all models; `None` stands for free ones.
        let currencies: HashSet<Option<&str>> = models.clone().map(currency).collect();
        ModelPrices {
            config,
            models: models.map(|model| (model.id.as_str(), model)).collect(),
            is_plain: currencies.len() < 2 && !currencies.contains(&None),
        }
    }

    /// Warns of models without prices, and of several currencies, under one cap.
    fn capped(&self, key: &KeyConfig) -> Vec<String> {
        let mut found = Vec::new();
        if self.is_plain {
            return found;
        }
        let name = &key.name;
        let (free, priced): (Vec<&ModelConfig>, Vec<&ModelConfig>) = self
            .opened_by(key)
            .into_iter()
            .partition(|model| model.pricing.is_free());
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

    /// The models that a key may spend on, fallbacks included.
    fn opened_by(&self, key: &KeyConfig) -> Vec<&'c ModelConfig> {
        let globs = key.models.as_ref().map(|globs| {
            let globs = globs.iter().filter_map(|glob| Glob::new(glob).ok());
            globs.map(|glob| glob.compile_matcher()).collect::<Vec<_>>()
        });
        let opens = |id: &str| {
            let globs = globs.as_ref();
            globs.is_none_or(|globs| globs.iter().any(|glob| glob.is_match(id)))
        };
        let ids = self.config.models.iter().map(|model| model.id.as_str());
        let mut waiting: Vec<&str> = ids.filter(|id| opens(id)).collect();
        let mut opened: HashSet<&str> = waiting.iter().copied().collect();
        while let Some(id) = waiting.pop() {
            let model = self.models.get(id);
            for fallback in model.into_iter().flat_map(|model| &model.fallbacks) {
                if opened.insert(fallback) {
                    waiting.push(fallback);
                }
            }
        }
        let models = self.config.models.iter();
        models
            .filter(|model| opened.contains(model.id.as_str()))
            .collect()
    }
}

fn upstream(upstream: &UpstreamConfig) -> Vec<String> {
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

fn model(config: &Config, model: &ModelConfig) -> Vec<String> {
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

/// Warns of a currency label with another unit: token prices are always for a million tokens.
fn other_measure(model: &ModelConfig) -> Option<String> {
    let currency = model.pricing.currency();
    let measure = currency.to_lowercase();
    let agrees = !measure.contains("per ") || measure.contains("1m") || measure.contains("million");
    (!agrees).then(|| {
        let id = &model.id;
        format!("models.{id}: its prices of tokens are taken for 1M tokens, not {currency:?}")
    })
}

/// Warns of upstreams and fallbacks that are never reached with so few attempts.
fn unreachable(model: &ModelConfig) -> Option<String> {
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
