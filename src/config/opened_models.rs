//! Which models a key of the config can use, for warnings: under its spending cap, and of the fallbacks of others.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::key_globs::KeyGlob;
use super::model_names::ModelNames;
use super::settings::{Config, KeyConfig, ModelConfig};

/// The models by name, and whether caps work with all of their prices, so that with thousands of keys and models not every
/// key looks at every model.
pub struct ModelPrices<'c> {
    pub config: &'c Config,
    pub names: ModelNames,
    is_plain: bool,
}

impl<'c> ModelPrices<'c> {
    pub fn of(config: &'c Config) -> ModelPrices<'c> {
        let models = config.models.iter();
        let currency =
            |model: &'c ModelConfig| (!model.pricing.is_free()).then(|| model.pricing.currency());
        // One currency for all models; `None` stands for free ones.
        let currencies: HashSet<Option<&str>> = models.clone().map(currency).collect();
        ModelPrices {
            config,
            names: ModelNames::new(models),
            is_plain: currencies.len() < 2 && !currencies.contains(&None),
        }
    }

    /// Warns of models without prices, and of several currencies, under one cap.
    pub fn capped(&self, key: &KeyConfig) -> Vec<String> {
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

    /// The model that a fallback names.
    pub fn find(&self, name: &str) -> Option<&'c ModelConfig> {
        let found = self.names.find(name)?;
        self.config.models.get(found.number)
    }

    /// The models that a key may spend on, fallbacks included, in the order of the file.
    fn opened_by(&self, key: &KeyConfig) -> Vec<&'c ModelConfig> {
        let models = &self.config.models;
        let opened = match &key.models {
            None => (0..models.len()).collect(),
            Some(globs) => self.follow(globs, |_, _| {}),
        };
        opened.into_iter().map(|number| &models[number]).collect()
    }

    /// Follows the fallbacks that a key with these globs may use, and calls back with each that it may not, and its model.
    fn follow(
        &self,
        globs: &[String],
        mut left_out: impl FnMut(&'c str, &'c str),
    ) -> BTreeSet<usize> {
        let models = &self.config.models;
        let globs: Vec<KeyGlob> = globs
            .iter()
            .filter_map(|glob| KeyGlob::parse(glob))
            .collect();
        let opened = globs
            .iter()
            .flat_map(|glob| glob.opened(models, &self.names));
        let mut opened: BTreeSet<usize> = opened.collect();
        let mut waiting: Vec<usize> = opened.iter().copied().collect();
        while let Some(number) = waiting.pop() {
            let model = &models[number];
            for name in &model.fallbacks {
                if !globs.iter().any(|glob| glob.may_match(name)) {
                    left_out(name, &model.id);
                } else if let Some(found) = self.names.find(name)
                    && opened.insert(found.number)
                {
                    waiting.push(found.number);
                }
            }
        }
        opened
    }
}

/// The fallbacks that keys may not use, by their globs: keys often share these.
#[derive(Default)]
pub struct LeftOutFallbacks<'c>(HashMap<&'c [String], Option<String>>);

impl<'c> LeftOutFallbacks<'c> {
    /// Warns of fallbacks of the key's models that its globs leave out.
    pub fn of_key(&mut self, prices: &ModelPrices<'c>, key: &'c KeyConfig) -> Option<String> {
        let globs = key.models.as_deref()?;
        let listed = self.0.entry(globs).or_insert_with(|| {
            let mut left_out = BTreeSet::new();
            prices.follow(globs, |name, model| {
                left_out.insert((name, model));
            });
            let listed = left_out
                .iter()
                .map(|(name, model)| format!("{name} (of {model})"));
            let listed: Vec<String> = listed.collect();
            (!listed.is_empty()).then(|| listed.join(", "))
        });
        let (name, listed) = (&key.name, listed.as_ref()?);
        Some(format!(
            "keys.{name}: its models leave out fallbacks of models that it may use, and its requests do not go there: {listed}; \
             add them to its models, or leave it so"
        ))
    }
}
