//! Models that need no entry: `UPSTREAM/MODEL` for every upstream, those that an upstream lists, and names that nothing
//! else matches.

use super::check::DeclaredNames;
use super::problem::Problems;
use super::settings::{Config, ModelConfig, ModelOrigin, TargetConfig, UpstreamConfig};
use crate::model::Format;

/// Adds the models that the settings of the server ask for. A config without `models` serves all of its upstreams.
pub fn add_upstream_models(config: &mut Config, names: &DeclaredNames, warnings: &mut Problems) {
    let has_list = names.lists.iter().any(|(name, _)| *name == "models");
    let mut models = Vec::new();
    if config.server.upstream_prefixes.unwrap_or(!has_list) {
        for (upstream, name) in config.upstreams.iter().zip(&names.upstreams) {
            if upstream.name.contains('*') {
                let message = format!(
                    "upstreams.{}: a name with a * is no prefix of models; rename it",
                    upstream.name
                );
                warnings.add(name.position, message);
                continue;
            }
            let id = format!("{}/*", upstream.name);
            let target = Some("*".to_owned());
            models.push(model(id, target, upstream, ModelOrigin::UpstreamPrefix));
        }
    }
    if let Some(upstream) = default_upstream(config, has_list) {
        let id = "*".to_owned();
        if let Some(name) = &names.default_upstream
            && config.models.iter().any(|model| model.id == id)
        {
            let message = "server.default_upstream: the id \"*\" matches every name, so that this is never used; remove one of them";
            warnings.add(name.position, message);
        }
        models.push(model(id, None, upstream, ModelOrigin::DefaultUpstream));
    }
    // The entries of the file win.
    models.retain(|model| config.models.iter().all(|listed| listed.id != model.id));
    config.models.extend(models);
    for upstream in &config.upstreams {
        if let Some(discovery) = &upstream.discover {
            let id = format!("{}*", discovery.prefix);
            let target = Some("*".to_owned());
            let model = model(id, target, upstream, ModelOrigin::Discovered);
            config.models.push(model);
        }
    }
}

impl ModelConfig {
    /// What an upstream lists, with the prices, limits and settings of the entry whose id matches it. Where it goes does not
    /// change.
    pub fn with_settings_of(&self, entry: &ModelConfig) -> ModelConfig {
        let mut features = self.features.clone();
        let further = entry.features.iter();
        features.extend(
            further
                .filter(|name| !self.features.contains(name))
                .cloned(),
        );
        ModelConfig {
            id: self.id.clone(),
            aliases: Vec::new(),
            origin: self.origin,
            upstreams: self.upstreams.clone(),
            fallbacks: Vec::new(),
            features,
            // An upstream of images has no others.
            model_type: match self.is_image_model() {
                true => self.model_type.clone(),
                false => entry.model_type.clone(),
            },
            ..entry.clone()
        }
    }
}

/// The upstream for names that nothing matches: the one that is named, or in a config without `models` the only one.
fn default_upstream(config: &Config, has_list: bool) -> Option<&UpstreamConfig> {
    let mut upstreams = config.upstreams.iter();
    match (&config.server.default_upstream, &config.upstreams[..]) {
        (Some(name), _) => upstreams.find(|upstream| upstream.name == *name),
        (None, [only]) if !has_list && only.format != Format::Images => Some(only),
        _ => None,
    }
}

fn model(
    id: String,
    target: Option<String>,
    upstream: &UpstreamConfig,
    origin: ModelOrigin,
) -> ModelConfig {
    let model_type = match upstream.format {
        Format::Images => "image",
        _ => "chat",
    };
    let target = TargetConfig {
        name: upstream.name.clone(),
        model: target,
        weight: 1,
        priority: 0,
        when: None,
    };
    // What an upstream of several formats generates is known when it is asked.
    let has_images = upstream.formats().any(|format| format == Format::Images);
    let image_output = "image_output".to_owned();
    ModelConfig {
        features: has_images.then_some(image_output).into_iter().collect(),
        ..ModelConfig::new(id, model_type, vec![target], origin)
    }
}
