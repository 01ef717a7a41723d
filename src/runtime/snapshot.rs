//! An immutable snapshot of the config, ready for serving: names resolved, globs compiled, headers built.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ahash::RandomState;

use super::{Health, Key, Prices, RuntimeState, Upstream};
use crate::config::{self, Config, ServerConfig, UpstreamTimeouts};
use crate::formats::Capabilities;
use crate::model::ImageSize;

/// The config of a request from its start to its end.
pub struct Snapshot {
    pub server: ServerConfig,
    pub images: config::ImagesConfig,
    pub upstreams: Vec<Arc<Upstream>>,
    pub models: HashMap<String, Arc<Model>, RandomState>,
    /// The models in the order of the file, for lists.
    pub ordered_models: Vec<Arc<Model>>,
    pub keys: HashMap<[u8; 32], Arc<Key>, RandomState>,
    pub key_names: HashSet<Arc<str>>,
}

/// A model with its upstreams.
pub struct Model {
    pub settings: config::ModelConfig,
    /// The id, for labels of metrics.
    pub label: Arc<str>,
    /// The upstreams, sorted by priority.
    pub targets: Vec<Target>,
    /// The sizes that its images may have; empty: any.
    pub image_sizes: Vec<ImageSize>,
    /// `None`: the model is free.
    pub prices: Option<Prices>,
}

/// One of a model's upstreams.
pub struct Target {
    pub upstream: Arc<Upstream>,
    /// The upstream's own name for the model.
    pub model: Arc<str>,
    pub weight: u32,
    pub priority: u32,
    /// The timeouts of the upstream, overridden by those of the model.
    pub timeouts: UpstreamTimeouts,
    pub health: Arc<Health>,
    /// The capabilities that the upstream has for all of its models, overridden by those of the model.
    pub capabilities: Arc<Capabilities>,
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
        let ordered_models: Vec<Arc<Model>> = config
            .models
            .into_iter()
            .map(|settings| Arc::new(Model::build(settings, &upstreams, state)))
            .collect();
        let keys: HashMap<[u8; 32], Arc<Key>, _> = config
            .keys
            .into_iter()
            .map(|settings| (settings.sha256, Arc::new(Key::of_config(settings, state))))
            .collect();
        Snapshot {
            server: config.server,
            images: config.images,
            upstreams: upstreams.into_values().collect(),
            models: ordered_models
                .iter()
                .map(|model| (model.settings.id.clone(), model.clone()))
                .collect(),
            ordered_models,
            key_names: keys.values().map(|key| key.name.clone()).collect(),
            keys,
        }
    }
}

impl Snapshot {
    /// Finds a key by the hash of the presented secret.
    pub fn key(&self, presented: &[u8; 32]) -> Option<&Arc<Key>> {
        let key = self.keys.get(presented);
        key.filter(|key| key.has_hash(presented))
    }
}

impl Model {
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
                let model = target.model.as_deref().unwrap_or(&settings.id);
                Some(Target {
                    model: model.into(),
                    weight: target.weight,
                    priority: target.priority,
                    timeouts: settings.timeouts.over(upstream.timeouts),
                    health: state.health(&upstream.name, model),
                    capabilities: Arc::new(capabilities(&settings, &upstream.capabilities)),
                    upstream,
                })
            })
            .collect();
        targets.sort_by_key(|target| target.priority);
        Model {
            label: settings.id.as_str().into(),
            targets,
            image_sizes: capabilities(&settings, &[]).image_sizes,
            prices: Prices::from_pricing(&settings.pricing),
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
        if self.conversations != before.conversations {
            names.push("server.conversations");
        }
        names
    }
}
