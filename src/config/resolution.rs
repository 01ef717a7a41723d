//! What the name of a model resolves to, for people: its entry, and the upstreams in the order in which they are tried.

use std::borrow::Cow;
use std::collections::HashSet;

use comfy_table::{Table, presets};

use super::model_names::ModelNames;
use super::routes::with_condition;
use super::settings::{BaseUrl, Config, ModelConfig, ModelOrigin, TargetConfig, UpstreamConfig};
use super::values::either;
use crate::formats::Operation;
use crate::model::{Format, NamePattern};

/// The most names that are suggested for a misspelt one.
const MAX_SUGGESTIONS: usize = 3;

/// ```text
/// acme/large matches the id acme/*
/// | upstream | sent as | format | path                 | priority | weight | fallback |
/// |----------|---------|--------|----------------------|----------|--------|----------|
/// | acme     | large   | chat   | /v1/chat/completions | 0        | 1      |          |
/// ```
///
/// `Err` says that nothing serves the name.
pub fn resolution(config: &Config, name: &str) -> Result<String, String> {
    let names = ModelNames::new(config.models.iter());
    let found = names.find(name).ok_or_else(|| unknown(config, name))?;
    let entry = entry(&config.models[found.number], name);
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "upstream", "sent as", "format", "path", "priority", "weight", "fallback",
    ]);
    let mut visited = HashSet::new();
    let mut waiting = vec![Cow::Borrowed(name)];
    while let Some(asked) = waiting.pop() {
        let Some(found) = names.find(&asked) else {
            continue;
        };
        if !visited.insert(found.number) {
            continue;
        }
        let model = &config.models[found.number];
        let mut targets: Vec<&TargetConfig> = model.upstreams.iter().collect();
        targets.sort_by_key(|target| (target.when.is_none(), target.priority));
        for target in targets {
            let upstreams = config.upstreams.iter();
            let upstream = upstreams.filter(|upstream| upstream.name == target.name);
            let sent = sent_name(model, target, &asked, found.matched);
            let fallback = if visited.len() > 1 { &*asked } else { "" };
            let sent = (&*sent, model.usual_operation());
            table.add_rows(upstream.flat_map(|upstream| rows(upstream, target, sent, fallback)));
        }
        let fallbacks = model.fallbacks.iter().rev();
        waiting.extend(fallbacks.map(|name| Cow::Owned(fill(name, found.matched))));
    }
    Ok(format!("{entry}\n{}", table.trim_fmt()))
}

/// A row for each format of an upstream, the first of which is for clients of all others.
fn rows(
    upstream: &UpstreamConfig,
    target: &TargetConfig,
    (sent, operation): (&str, Operation),
    fallback: &str,
) -> Vec<[String; 7]> {
    let others = upstream.other_formats.iter();
    let others = others.map(|(format, base_url)| (*format, base_url));
    let formats = [(upstream.format, &upstream.base_url)];
    let row = |(format, base_url): (Format, &BaseUrl)| {
        let path = format.codec().upstream_path(operation, sent);
        [
            with_condition(&upstream.name, target),
            sent.to_owned(),
            format.name().to_owned(),
            format!("{}{path}", base_url.prefix),
            target.priority.to_string(),
            target.weight.to_string(),
            fallback.to_owned(),
        ]
    };
    formats.into_iter().chain(others).map(row).collect()
}

/// Says which entry serves a name, and why.
fn entry(model: &ModelConfig, name: &str) -> String {
    let id = &model.id;
    let upstream = model.upstreams.first();
    let upstream = upstream.map_or("", |target| target.name.as_str());
    match model.origin {
        ModelOrigin::UpstreamPrefix => {
            format!("{name} begins with the name of the upstream {upstream}")
        }
        ModelOrigin::DefaultUpstream => {
            format!("{name} matches nothing else and goes to the upstream {upstream}")
        }
        ModelOrigin::Discovered => format!("{name} is listed by the upstream {upstream}"),
        ModelOrigin::Listed if model.is_pattern() => format!("{name} matches the id {id}"),
        ModelOrigin::Listed if name == id => format!("{name} is an id"),
        ModelOrigin::Listed => format!("{name} is an alias of {id}"),
    }
}

fn sent_name(
    model: &ModelConfig,
    target: &TargetConfig,
    asked: &str,
    matched: Option<&str>,
) -> String {
    match &target.model {
        Some(name) => fill(name, matched),
        None if model.is_pattern() => asked.to_owned(),
        None => model.id.clone(),
    }
}

fn fill(name: &str, matched: Option<&str>) -> String {
    let pattern = NamePattern::parse(name).zip(matched);
    pattern.map_or_else(
        || name.to_owned(),
        |(pattern, matched)| pattern.fill(matched),
    )
}

fn unknown(config: &Config, name: &str) -> String {
    let allowed = (name.chars().count() + 1) / 3;
    let known = config.models.iter().flat_map(ModelConfig::names);
    let near = known.map(|known| (strsim::damerau_levenshtein(name, known), known));
    let mut near: Vec<(usize, &str)> = near.filter(|(distance, _)| *distance <= allowed).collect();
    near.sort_by_key(|(distance, _)| *distance);
    let near: Vec<&str> = near.iter().map(|(_, known)| *known).collect();
    let mut models = config.models.iter();
    let discovers = models.any(|model| model.origin == ModelOrigin::Discovered);
    match &near[..near.len().min(MAX_SUGGESTIONS)] {
        [] if discovers => {
            format!("no model of the config serves {name:?}; an upstream with discover may list it")
        }
        [] => format!("no model serves {name:?}; check without --model lists all of them"),
        near => format!("no model serves {name:?}; did you mean {}?", either(near)),
    }
}
