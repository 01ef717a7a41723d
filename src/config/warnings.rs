//! Warnings for settings that are valid but seldom intended, shown by `check` and at the start.

use std::collections::{HashMap, HashSet};

use super::check::{DeclaredModel, DeclaredNames};
use super::key_globs::KeyGlob;
use super::opened_models::{LeftOutFallbacks, ModelPrices};
use super::problem::{Position, Problems};
use super::settings::{Config, KeyConfig, Limits, ModelConfig, UpstreamConfig};
use super::table::Located;
use crate::model::Format;

/// Adds the warnings that need the whole config. It has no problems, so that every entry has its declared name.
pub fn add_warnings(config: &Config, names: &DeclaredNames, warnings: &mut Problems) {
    absent(config, names, warnings);
    let prices = ModelPrices::of(config);
    let mut left_out = LeftOutFallbacks::default();
    for (entry, name) in config.keys.iter().zip(&names.keys) {
        let messages = key(&prices, entry).into_iter();
        for message in messages.chain(left_out.of_key(&prices, entry)) {
            warnings.add(name.position, message);
        }
    }
    globs(&prices, &names.globs, warnings);
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
    let image_upstreams: HashSet<&str> = config
        .upstreams
        .iter()
        .filter(|upstream| upstream.format == Format::Images)
        .map(|upstream| upstream.name.as_str())
        .collect();
    let embedding_upstreams: HashSet<&str> = config
        .upstreams
        .iter()
        .filter(|upstream| {
            let mut formats = upstream.formats();
            formats.any(|format| format.codec().embedding_codec().is_some())
        })
        .map(|upstream| upstream.name.as_str())
        .collect();
    for (entry, declared) in config.models.iter().zip(&names.models) {
        image_targets(entry, declared, &image_upstreams, warnings);
        embedding_targets(entry, declared, &embedding_upstreams, warnings);
        let position = declared.id.as_ref().map(|id| id.position);
        for message in model(&prices, entry) {
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
fn globs(prices: &ModelPrices<'_>, globs: &[Located<String>], warnings: &mut Problems) {
    let models = &prices.config.models;
    let mut tried: HashMap<&str, bool> = HashMap::new();
    for glob in globs {
        let matches = *tried.entry(&glob.value).or_insert_with(|| {
            let parsed = KeyGlob::parse(&glob.value);
            parsed.is_some_and(|glob| !glob.opened(models, &prices.names).is_empty())
        });
        // Without models there is one warning, not one more for every glob.
        if !matches && !models.is_empty() {
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

/// Warns of a model of embeddings whose upstream has none.
fn embedding_targets(
    model: &ModelConfig,
    declared: &DeclaredModel,
    embedding_upstreams: &HashSet<&str>,
    warnings: &mut Problems,
) {
    if model.model_type != "embedding" {
        return;
    }
    let targets = declared.targets.iter();
    for target in targets.filter(|target| !embedding_upstreams.contains(target.value.name.as_str()))
    {
        let message = format!(
            "models.{}: its upstream {} has no embeddings; use one of the format chat, responses or native",
            model.id, target.value.name
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

fn model(prices: &ModelPrices<'_>, model: &ModelConfig) -> Vec<String> {
    let id = &model.id;
    let mut found = Vec::new();
    for fallback in &model.fallbacks {
        let Some(other) = prices.find(fallback) else {
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
    if model.model_type == "embedding" && !model.fallbacks.is_empty() {
        found.push(format!(
            "models.{id}: its fallbacks answer with vectors of another model, which cannot be compared with its own; \
             remove them, and name several upstreams of the same model instead"
        ));
    }
    found.extend(unreachable(model));
    found.extend(only_conditions(model));
    found.extend(other_measure(model));
    found
}

/// Warns of a model that serves no request but those with a header.
fn only_conditions(model: &ModelConfig) -> Option<String> {
    let mut targets = model.upstreams.iter();
    let all = targets.all(|target| target.when.is_some()) && !model.upstreams.is_empty();
    (all && model.fallbacks.is_empty()).then(|| {
        let id = &model.id;
        format!("models.{id}: every upstream has a condition; other requests are a 404")
    })
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
    if model.upstreams.iter().any(|target| target.when.is_some()) {
        // Other requests have other upstreams.
        return None;
    }
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
