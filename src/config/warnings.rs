//! Warnings for settings that are valid but seldom intended, shown by `check` and at the start.

use std::collections::{HashMap, HashSet};

use globset::Glob;

use super::check::{DeclaredModel, DeclaredNames};
use super::problem::{Position, Problems};
use super::settings::{Config, KeyConfig, Limits, ModelConfig, UpstreamConfig};
use super::table::Located;
use crate::model::Format;

/// Adds the warnings that need the whole config. It has no problems, so that every entry has its declared name.
pub fn add_warnings(config: &Config, names: &DeclaredNames, warnings: &mut Problems) {
    absent(config, names, warnings);
    let prices = ModelPrices::of(config);
    for (entry, name) in config.keys.iter().zip(&names.keys) {
        for message in key(&prices, entry) {
            warnings.add(name.position, message);
        }
    }
    globs(config, &names.globs, warnings);
    let used: HashSet<&str> = config
        .models
        .iter()
        .flat_map(|model| &model.upstreams)
        .map(|target| target.name.as_str())
        .collect();
    for (entry, name) in config.upstreams.iter().zip(&names.upstreams) {
        if !used.contains(entry.name.as_str()) {
            let message = format!(
                "upstreams.{}: no model uses it; name it in the upstreams of a model, or remove it",
                entry.name
            );
            warnings.add(name.position, message);
        }
        for message in upstream(entry) {
            warnings.add(name.position, message);
        }
    }
    let by_id: HashMap<&str, &ModelConfig> = prices.models;
    let image_upstreams: HashSet<&str> = config
        .upstreams
        .iter()
        .filter(|upstream| upstream.format == Format::Images)
        .map(|upstream| upstream.name.as_str())
        .collect();
    for (entry, declared) in config.models.iter().zip(&names.models) {
        image_targets(entry, declared, &image_upstreams, warnings);
        let position = declared.id.as_ref().map(|id| id.position);
        for message in model(&by_id, entry) {
            warnings.add(position.unwrap_or(Position::START), message);
        }
    }
}

/// Warns of a config that serves nothing, or nobody.
fn absent(config: &Config, names: &DeclaredNames, warnings: &mut Problems) {
    let position_of = |list: &str| {
        let mut lists = names.lists.iter();
        let found = lists.find(|(name, _)| *name == list);
        found.map_or(Position::START, |(_, position)| *position)
    };
    if config.models.is_empty() {
        let message = "no models: every request for one is a 404; add them under \"models\"";
        warnings.add(position_of("models"), message);
    }
    if let (Some(position), None) = (names.stored_bytes, &config.store) {
        let message = "server.conversations.max_bytes_per_key: does nothing without a store; add a store or remove this";
        warnings.add(position, message);
    }
    if config.keys.is_empty() && config.store.is_none() {
        let message =
            "no keys and no store: every request is a 401; add a key under \"keys\", or a store";
        warnings.add(position_of("keys"), message);
    }
}

/// Warns of globs that match no model. Keys often share their globs, so that each is tried once.
fn globs(config: &Config, globs: &[Located<String>], warnings: &mut Problems) {
    let mut tried: HashMap<&str, bool> = HashMap::new();
    for glob in globs {
        let matches = *tried.entry(&glob.value).or_insert_with(|| {
            let matcher = Glob::new(&glob.value).map(|glob| glob.compile_matcher());
            let mut models = config.models.iter();
            matcher.is_ok_and(|matcher| models.any(|model| matcher.is_match(&model.id)))
        });
        // Without models there is one warning, not one more for every glob.
        if !matches && !config.models.is_empty() {
            let message = format!(
                "the glob {:?} matches no model; mend it or remove it",
                glob.written
            );
            warnings.add(glob.position, message);
        }
    }
}

/// Warns of a model that an upstream of images serves, but whose type is another: what is not a request for an
/// image is refused there.
fn image_targets(
    model: &ModelConfig,
    declared: &DeclaredModel,
    image_upstreams: &HashSet<&str>,
    warnings: &mut Problems,
) {
    if model.is_image_model() {
        return;
    }
    let targets = declared.targets.iter();
    for target in targets.filter(|target| image_upstreams.contains(target.value.name.as_str())) {
        let message = format!(
            "models.{}: its upstream {} generates images only, but model_type is {:?}; write model_type: image",
            model.id, target.value.name, model.model_type
        );
        warnings.add(target.position, message);
    }
}

fn key(prices: &ModelPrices<'_>, key: &KeyConfig) -> Vec<String> {
    let name = &key.name;
    let mut found = match &key.spending_cap {
        Some(_) => prices.capped(key),
        None if key.limits == Limits::default() => vec![format!(
            "keys.{name}: has neither limits nor a spending_cap; whoever holds it may spend without end"
        )],
        None => Vec::new(),
    };
    if key.has_short_secret {
        found.push(format!(
            "keys.{name}: its secret has fewer than 16 characters and can be guessed; `openssl rand -hex 32` makes a better one"
        ));
    }
    found
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

fn model(models: &HashMap<&str, &ModelConfig>, model: &ModelConfig) -> Vec<String> {
    let id = &model.id;
    let mut found = Vec::new();
    for fallback in &model.fallbacks {
        let Some(other) = models.get(fallback.as_str()) else {
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
