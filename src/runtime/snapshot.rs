//! One state of the config, immutable and ready: names looked up, globs compiled, headers built.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ahash::RandomState;

use super::{Health, Key, Prices, RuntimeState, Upstream};
use crate::config::{self, Config, ServerConfig, UpstreamTimeouts};
use crate::formats::Capabilities;

pub struct Snapshot {
    pub server: ServerConfig,
    pub images: config::ImagesConfig,
    pub upstreams: Vec<Arc<Upstream>>,
    pub models: HashMap<String, Arc<Model>, RandomState>,
    /// In the order of the file, for lists.
    pub ordered_models: Vec<Arc<Model>>,
    pub keys: HashMap<[u8; 32], Arc<Key>, RandomState>,
    pub key_names: HashSet<Arc<str>>,
}

pub struct Model {
    pub settings: config::ModelConfig,
    /// The id as label values want it.
    pub label: Arc<str>,
    /// By priority.
    pub targets: Vec<Target>,
    /// What its upstreams take.
    pub capabilities: Capabilities,
    /// `None`: it costs nothing.
    pub prices: Option<Prices>,
}

/// One of a model's upstreams.
pub struct Target {
    pub upstream: Arc<Upstream>,
    /// The upstream's own name for the model.
    pub model: Arc<str>,
    pub weight: u32,
    pub priority: u32,
    /// The upstream's, but for what the model says otherwise.
    pub timeouts: UpstreamTimeouts,
    pub health: Arc<Health>,
}

impl Snapshot {
    /// From a config that has passed its checks, and what has been going on so far.
    pub fn build(config: Config, live: &RuntimeState) -> Snapshot {
        let upstreams: HashMap<String, Arc<Upstream>> = config
            .upstreams
            .into_iter()
            .map(|settings| {
                let name = settings.name.clone();
                (name, Arc::new(Upstream::build(settings, live)))
            })
            .collect();
        let listed: Vec<Arc<Model>> = config
            .models
            .into_iter()
            .map(|settings| Arc::new(Model::build(settings, &upstreams, live)))
            .collect();
        let keys: HashMap<[u8; 32], Arc<Key>, _> = config
            .keys
            .into_iter()
            .map(|settings| (settings.sha256, Arc::new(Key::build(settings, live))))
            .collect();
        Snapshot {
            server: config.server,
            images: config.images,
            upstreams: upstreams.into_values().collect(),
            models: listed
                .iter()
                .map(|model| (model.settings.id.clone(), model.clone()))
                .collect(),
            ordered_models: listed,
            key_names: keys.values().map(|key| key.name.clone()).collect(),
            keys,
        }
    }
}

impl Model {
    fn build(
        settings: config::ModelConfig,
        upstreams: &HashMap<String, Arc<Upstream>>,
        live: &RuntimeState,
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
                    health: live.health(&upstream.name, model),
                    upstream,
                })
            })
            .collect();
        targets.sort_by_key(|target| target.priority);
        let mut capabilities = Capabilities::default();
        for (name, value) in &settings.capabilities {
            // The config was checked; what it could not mean is left at its default.
            if let Err(reason) = capabilities.set(name, value) {
                log::warn!("models.{}: {reason}", settings.id);
            }
        }
        Model {
            label: settings.id.as_str().into(),
            targets,
            capabilities,
            prices: Prices::from_pricing(&settings.pricing),
            settings,
        }
    }
}

impl ServerConfig {
    /// The settings that a running process cannot change, where they differ from those it runs on.
    pub(super) fn needs_restart_after(&self, before: &ServerConfig) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.listen != before.listen {
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
