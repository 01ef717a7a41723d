//! An immutable snapshot of the config, ready for serving: names resolved, globs compiled, headers built.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ahash::RandomState;
use http::{HeaderMap, HeaderName};

use super::condition::Condition;
use super::{Health, Key, Prices, RuntimeState, Upstream, UpstreamDiscovery};
use crate::config::{self, Config, ModelNames, ModelOrigin, ServerConfig, UpstreamTimeouts};
use crate::formats::Capabilities;
use crate::model::{ImageSize, NamePattern};

/// The config of a request from its start to its end.
pub struct Snapshot {
    pub server: ServerConfig,
    pub images: config::ImagesConfig,
    pub upstreams: Vec<Arc<Upstream>>,
    /// The models in the order of the file.
    pub models: Vec<Arc<Model>>,
    model_names: ModelNames,
    discovered: Vec<ListedModels>,
    /// The entries of the config whose ids have a `*`.
    patterns: ModelNames,
    pub keys: HashMap<[u8; 32], Arc<Key>, RandomState>,
    pub key_names: HashSet<Arc<str>>,
    /// The keys of the config as they are written, in the order of the file.
    pub config_keys: Vec<config::KeyConfig>,
    /// The config without secrets, and what is seldom intended in it, for people.
    pub shown: Arc<[config::ShownLine]>,
    pub warnings: Vec<config::Problem>,
}

/// Stands for the models that an upstream lists.
struct ListedModels {
    number: usize,
    /// The same with the settings of each entry whose id may match one of the names, by its number.
    by_entry: HashMap<usize, Arc<Model>, RandomState>,
}

/// A model that a client asks for, by its id, an alias, or a name that its id matches.
#[derive(Clone, Copy)]
pub struct AskedModel<'s, 'n> {
    pub model: &'s Arc<Model>,
    pub name: &'n str,
    /// The text that the `*` of the id stands for.
    pub matched: Option<&'n str>,
}

/// A model with its upstreams.
pub struct Model {
    pub settings: config::ModelConfig,
    /// The id, for labels of metrics: names that it matches would be without end.
    pub label: Arc<str>,
    /// The upstreams: those with a condition, then the others, both sorted by priority.
    pub targets: Vec<Target>,
    /// The sizes that its images may have; empty: any.
    pub image_sizes: Vec<ImageSize>,
    /// `None`: the model is free.
    pub prices: Option<Prices>,
    /// The prices as usage records name them.
    pub price_text: Arc<str>,
}

/// One of a model's upstreams.
pub struct Target {
    pub upstream: Arc<Upstream>,
    /// The upstream's own name for the model, as configured: one circuit breaker holds for all names that it matches.
    pub model: Arc<str>,
    sent: SentName,
    pub weight: u32,
    pub priority: u32,
    /// Absent: it serves every request.
    pub when: Option<Condition>,
    /// The timeouts of the upstream, overridden by those of the model.
    pub timeouts: UpstreamTimeouts,
    pub health: Arc<Health>,
    /// The capabilities that the upstream has for all of its models, overridden by those of the model.
    pub capabilities: Arc<Capabilities>,
}

/// The name of a model that an upstream is sent.
enum SentName {
    /// The same for every request.
    Fixed,
    /// The name that the client asked for.
    Asked,
    /// The text that the `*` of the id stands for, put into this.
    Filled(NamePattern),
}

impl Target {
    /// Tells whether it is for a request with these headers.
    pub(super) fn serves(&self, headers: &HeaderMap) -> bool {
        let condition = self.when.as_ref();
        condition.is_none_or(|condition| condition.matches(headers))
    }

    /// The name that the upstream is sent for a model.
    pub fn model_for(&self, asked: &AskedModel<'_, '_>) -> Arc<str> {
        match (&self.sent, asked.matched) {
            (SentName::Asked, _) => asked.name.into(),
            (SentName::Filled(pattern), Some(matched)) => pattern.fill(matched).into(),
            (SentName::Fixed | SentName::Filled(_), _) => self.model.clone(),
        }
    }
}

impl Snapshot {
    /// Builds a snapshot from a valid config and the state so far.
    pub fn build(config: Config, state: &RuntimeState) -> Snapshot {
        let upstreams: HashMap<String, Arc<Upstream>> = config
            .upstreams
            .into_iter()
            .map(|settings| {
                let name = settings.name.clone();
                (name, Arc::new(Upstream::build(settings, state)))
            })
            .collect();
        let (discovered, patterns) = listed_models(&config.models, &upstreams, state);
        let models: Vec<Arc<Model>> = config
            .models
            .into_iter()
            .map(|settings| Arc::new(Model::build(settings, &upstreams, state)))
            .collect();
        let keys: HashMap<[u8; 32], Arc<Key>, _> = config
            .keys
            .iter()
            .cloned()
            .map(|settings| (settings.sha256, Arc::new(Key::of_config(settings, state))))
            .collect();
        Snapshot {
            server: config.server,
            images: config.images,
            upstreams: upstreams.into_values().collect(),
            model_names: ModelNames::new(models.iter().map(|model| &model.settings)),
            discovered,
            patterns,
            models,
            key_names: keys.values().map(|key| key.name.clone()).collect(),
            keys,
            config_keys: config.keys,
            shown: config.shown,
            warnings: config.warnings,
        }
    }
}

impl Snapshot {
    /// Finds the model that serves a name.
    pub fn model<'s, 'n>(&'s self, name: &'n str) -> Option<AskedModel<'s, 'n>> {
        let found = self.model_names.find_exact(name);
        if found.is_none()
            && let Some((_, asked)) = self.find_discovered(name)
        {
            return Some(asked);
        }
        let found = found.or_else(|| self.model_names.find_pattern(name))?;
        Some(AskedModel {
            model: self.models.get(found.number)?,
            name,
            matched: found.matched,
        })
    }

    /// Finds the first model whose upstream lists a name, with its number. Where an id with a `*` matches the name as well, the
    /// prices, limits and settings are those of its entry.
    fn find_discovered<'s, 'n>(&'s self, name: &'n str) -> Option<(usize, AskedModel<'s, 'n>)> {
        self.discovered.iter().find_map(|listed| {
            let own = self.models.get(listed.number)?;
            let discovery = own.discovery()?;
            let matched = name.strip_prefix(discovery.settings.prefix.as_str())?;
            if !discovery.models.contains(matched) {
                return None;
            }
            let entry = self.patterns.find_pattern(name);
            let model = entry.and_then(|entry| listed.by_entry.get(&entry.number));
            let asked = AskedModel {
                model: model.unwrap_or(own),
                name,
                matched: Some(matched),
            };
            Some((listed.number, asked))
        })
    }

    /// The names that upstreams list and that nothing else has, with the models that serve them.
    pub fn discovered(&self) -> impl Iterator<Item = (String, &Arc<Model>)> {
        self.discovered.iter().flat_map(move |listed| {
            let discovery = self.models[listed.number].discovery();
            let names = discovery.map(|discovery| {
                let prefix = discovery.settings.prefix.clone();
                (prefix, discovery.models.list())
            });
            let (prefix, list) = names.unwrap_or_default();
            let names = (0..list.names.len()).map(move |at| format!("{prefix}{}", list.names[at]));
            names.filter_map(move |name| {
                let is_configured = self.model_names.find_exact(&name).is_some();
                let (number, asked) = self.find_discovered(&name)?;
                let model = asked.model;
                (!is_configured && number == listed.number).then_some((name, model))
            })
        })
    }

    /// The headers that conditions of upstreams look at.
    pub fn condition_headers(&self) -> impl Iterator<Item = &HeaderName> {
        let targets = self.models.iter().flat_map(|model| &model.targets);
        targets.filter_map(|target| Some(&target.when.as_ref()?.name))
    }

    /// Finds a key by the hash of the presented secret.
    pub fn key(&self, presented: &[u8; 32]) -> Option<&Arc<Key>> {
        let key = self.keys.get(presented);
        key.filter(|key| key.has_hash(presented))
    }
}

/// What stands for the models that upstreams list, and the entries whose ids have a `*`.
fn listed_models(
    models: &[config::ModelConfig],
    upstreams: &HashMap<String, Arc<Upstream>>,
    state: &RuntimeState,
) -> (Vec<ListedModels>, ModelNames) {
    let entries = models.iter().enumerate().filter(|(_, model)| {
        let is_pattern = model.is_pattern();
        model.origin == ModelOrigin::Listed && is_pattern
    });
    let mut patterns = ModelNames::default();
    for (number, entry) in entries.clone() {
        patterns.insert(&entry.id, number);
    }
    let discovered = models.iter().enumerate();
    let discovered = discovered.filter(|(_, model)| model.origin == ModelOrigin::Discovered);
    let listed = discovered.map(|(number, model)| {
        let by_entry = entries.clone().filter(|(_, entry)| {
            let prefixes =
                [&model.id, &entry.id].map(|id| id.split('*').next().unwrap_or_default());
            prefixes[0].starts_with(prefixes[1]) || prefixes[1].starts_with(prefixes[0])
        });
        let by_entry = by_entry.map(|(number, entry)| {
            let settings = model.with_settings_of(entry);
            (number, Arc::new(Model::build(settings, upstreams, state)))
        });
        ListedModels {
            number,
            by_entry: by_entry.collect(),
        }
    });
    (listed.collect(), patterns)
}

impl Model {
    /// The list that it stands for.
    fn discovery(&self) -> Option<&UpstreamDiscovery> {
        let target = self.targets.first()?;
        target.upstream.discovery.as_ref()
    }

    fn build(
        settings: config::ModelConfig,
        upstreams: &HashMap<String, Arc<Upstream>>,
        state: &RuntimeState,
    ) -> Model {
        let mut targets: Vec<Target> = settings
            .upstreams
            .iter()
            .filter_map(|target| {
                let upstream = upstreams.get(&target.name)?.clone();
                let when = match &target.when {
                    Some(condition) => Some(Condition::new(condition)?),
                    None => None,
                };
                let model = target.model.as_deref().unwrap_or(&settings.id);
                let pattern = NamePattern::parse(model);
                let sent = match &target.model {
                    None if settings.is_pattern() => SentName::Asked,
                    _ => pattern.map_or(SentName::Fixed, SentName::Filled),
                };
                Some(Target {
                    sent,
                    model: model.into(),
                    weight: target.weight,
                    priority: target.priority,
                    when,
                    timeouts: settings.timeouts.over(upstream.timeouts),
                    health: state.health(&upstream.name, model),
                    capabilities: Arc::new(capabilities(&settings, &upstream.capabilities)),
                    upstream,
                })
            })
            .collect();
        // Those with a condition come first: it says that they suit the request best.
        targets.sort_by_key(|target| (target.when.is_none(), target.priority));
        Model {
            label: settings.id.as_str().into(),
            targets,
            image_sizes: capabilities(&settings, &[]).image_sizes,
            prices: Prices::from_pricing(&settings.pricing),
            price_text: settings.pricing.to_text().into(),
            settings,
        }
    }
}

/// The capabilities of a model at an upstream that has these for all of its models.
fn capabilities(settings: &config::ModelConfig, of_upstream: &[(String, String)]) -> Capabilities {
    let mut capabilities = Capabilities::default();
    for (name, value) in of_upstream.iter().chain(&settings.capabilities) {
        // The config was checked, so that this does not happen; the default stays.
        if let Err(reason) = capabilities.set(name, value) {
            log::warn!("models.{}: {reason}", settings.id);
        }
    }
    capabilities
}

impl ServerConfig {
    /// The settings that differ from those the process started with and need a restart.
    pub(super) fn needs_restart_after(&self, before: &ServerConfig) -> Vec<&'static str> {
        let mut names = Vec::new();
        // The files of a certificate are read again.
        let listeners = |server: &ServerConfig| {
            let listen = server.listen.iter();
            let listen = listen.map(|listen| (listen.addr, listen.tls.is_some()));
            listen.collect::<Vec<_>>()
        };
        if listeners(self) != listeners(before) {
            names.push("server.listen");
        }
        if self.admin != before.admin {
            names.push("server.admin");
        }
        if self.access_log != before.access_log {
            names.push("server.access_log");
        }
        if self.drain_timeout != before.drain_timeout {
            names.push("server.drain_timeout");
        }
        if self.shutdown_delay != before.shutdown_delay {
            names.push("server.shutdown_delay");
        }
        if self.conversations != before.conversations {
            names.push("server.conversations");
        }
        names
    }
}
