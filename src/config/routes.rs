//! The resolved routes as a table for people: a row for every upstream of every model.

use comfy_table::{Table, presets};

use super::settings::{Config, ModelOrigin, TargetConfig, UpstreamConfig};
use crate::model::Format;

/// ```text
/// | model      | format | upstream             | priority | weight | fallbacks   |
/// |------------|--------|----------------------|----------|--------|-------------|
/// | acme-large | chat   | acme (large-2026-01) | 0        | 3      | other-model |
/// ```
pub fn route_table(config: &Config) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "model",
        "format",
        "upstream",
        "priority",
        "weight",
        "fallbacks",
    ]);
    for model in &config.models {
        for target in &model.upstreams {
            let fallbacks = model.fallbacks.join(", ");
            table.add_row([
                match model.origin {
                    ModelOrigin::Discovered => format!("{} (discovered)", model.id),
                    _ => model.id.clone(),
                },
                formats_of(config, target),
                upstream_of(target),
                target.priority.to_string(),
                target.weight.to_string(),
                fallbacks,
            ]);
        }
    }
    table.trim_fmt()
}

fn formats_of(config: &Config, target: &TargetConfig) -> String {
    let mut upstreams = config.upstreams.iter();
    let upstream = upstreams.find(|upstream| upstream.name == target.name);
    let formats = upstream.into_iter().flat_map(UpstreamConfig::formats);
    formats.map(Format::name).collect::<Vec<_>>().join(", ")
}

fn upstream_of(target: &TargetConfig) -> String {
    let upstream = match &target.model {
        Some(model) => format!("{} ({model})", target.name),
        None => target.name.clone(),
    };
    with_condition(&upstream, target)
}

/// An upstream, and for which requests it is.
pub fn with_condition(upstream: &str, target: &TargetConfig) -> String {
    match &target.when {
        Some(condition) => format!("{upstream} when {condition}"),
        None => upstream.to_owned(),
    }
}
