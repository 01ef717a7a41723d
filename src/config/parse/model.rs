//! One entry of `models`.

use super::upstream::parse_timeout_changes;
use crate::config::capabilities;
use crate::config::check::{DeclaredModel, DeclaredNames};
use crate::config::settings::{
    Balance, HeaderCondition, ModelConfig, ModelOrigin, Pricing, Retries, TargetConfig,
};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable, Located};
use crate::config::tree::YamlKind;
use crate::config::values;

pub fn parse_entry(
    reader: &mut ConfigReader,
    field: ConfigField,
    names: &mut DeclaredNames,
) -> Option<ModelConfig> {
    let mut table = reader.table("a model", field)?;
    let id = reader.required(&mut table, "id", values::model_id);
    let aliases = parse_aliases(reader, &mut table, id.as_ref());
    let provider = reader.optional(&mut table, "provider", values::label);
    let model_type = reader.optional(&mut table, "model_type", values::name);
    let features = reader.items(&mut table, "features", values::label);
    let pricing = table.take("pricing");
    let pricing = pricing.and_then(|field| parse_pricing(reader, field));
    let api_doc_url = table.take("api_doc_url");
    let api_doc_url = api_doc_url.and_then(|field| reader.hidden_url(field, values::document_url));
    let max_output_tokens = reader.optional(&mut table, "max_output_tokens", values::count);
    let max_input_tokens = reader.optional(&mut table, "max_input_tokens", values::count);
    let max_image_tokens = reader.optional(&mut table, "max_image_tokens", values::count);
    let max_audio_minutes = reader.optional(&mut table, "max_audio_minutes", values::count);
    let flags = table.take("capabilities");
    let flags = flags.and_then(|field| reader.table("capabilities", field));
    let flags = flags.map(|table| capabilities::parse(reader, table));
    let targets = parse_targets(reader, &mut table, id.as_ref());
    let fallbacks = parse_fallbacks(reader, &mut table, id.as_ref());
    let balance = table.take("balance");
    let balance = balance.and_then(|field| parse_balance(reader, field));
    let retries = table.take("retries");
    let retries = retries.and_then(|field| parse_retries(reader, field));
    let timeouts = table.take("timeouts");
    let timeouts = timeouts.and_then(|field| parse_timeout_changes(reader, field));
    reader.finish(table);
    let upstreams: Vec<_> = targets.iter().map(|target| target.value.clone()).collect();
    names.models.push(DeclaredModel {
        id: id.clone(),
        aliases: aliases.clone(),
        targets,
        fallbacks: fallbacks.clone(),
    });
    Some(ModelConfig {
        id: id?.value,
        aliases: aliases.into_iter().map(|alias| alias.value).collect(),
        origin: ModelOrigin::Listed,
        provider: provider.unwrap_or_else(|| ModelConfig::DEFAULT_PROVIDER.to_owned()),
        model_type: model_type.unwrap_or_else(|| "chat".to_owned()),
        features: features.into_iter().map(|feature| feature.value).collect(),
        pricing: pricing.unwrap_or_default(),
        api_doc_url: api_doc_url.map(|url| url.value),
        max_output_tokens,
        max_input_tokens,
        max_image_tokens,
        max_audio_minutes,
        capabilities: flags.unwrap_or_default(),
        upstreams,
        fallbacks: fallbacks.into_iter().map(|id| id.value).collect(),
        balance: balance.unwrap_or_default(),
        retries: retries.unwrap_or_default(),
        timeouts: timeouts.unwrap_or_default(),
    })
}

fn parse_pricing(reader: &mut ConfigReader, field: ConfigField) -> Option<Pricing> {
    let mut table = reader.table("pricing", field)?;
    let currency = reader.optional(&mut table, "currency", values::label);
    let mut price = |name| reader.optional(&mut table, name, values::amount);
    let pricing = Pricing {
        currency,
        input: price("input"),
        output: price("output"),
        per_request: price("per_request"),
        per_second: price("per_second"),
        per_audio_minute: price("per_audio_minute"),
        cached_input: price("cached_input"),
        cache_write: price("cache_write"),
        thinking: price("thinking"),
        image_output: price("image_output"),
    };
    reader.finish(table);
    Some(pricing)
}

/// `weighted`, `least_in_flight`, `key`, or `{header: NAME}`.
fn parse_balance(reader: &mut ConfigReader, field: ConfigField) -> Option<Balance> {
    if let YamlKind::Map(_) = field.node.kind {
        let mut table = reader.table("balance", field)?;
        let name = reader.required(&mut table, "header", values::header_name);
        reader.finish(table);
        return Some(Balance::Header(name?.value));
    }
    let words = ["weighted", "least_in_flight", "key"];
    let parse = |text: &str| match text {
        "weighted" => Ok(Balance::Weighted),
        "least_in_flight" => Ok(Balance::LeastInFlight),
        "key" => Ok(Balance::Key),
        _ => Err(format!("{}, or {{header: NAME}}", values::either(&words))),
    };
    reader.value(field, parse).map(|balance| balance.value)
}

fn parse_retries(reader: &mut ConfigReader, field: ConfigField) -> Option<Retries> {
    let mut table = reader.table("retries", field)?;
    let attempts = reader.optional(&mut table, "attempts", values::attempts);
    let mut duration = |name| reader.optional(&mut table, name, values::duration);
    let retries = Retries {
        attempts,
        per_attempt_timeout: duration("per_attempt_timeout"),
        total_timeout: duration("total_timeout"),
        backoff: reader
            .optional(&mut table, "backoff", values::duration_or_zero)
            .unwrap_or(Retries::default().backoff),
    };
    reader.finish(table);
    Some(retries)
}

/// Further names of the model. An id with a `*` matches names itself.
fn parse_aliases(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    id: Option<&Located<String>>,
) -> Vec<Located<String>> {
    let aliases = reader.items(table, "aliases", values::alias);
    if let (Some(id), Some(alias)) = (id.filter(|id| id.value.contains('*')), aliases.first()) {
        let message = format!(
            "aliases go with an id without a *, not with {:?}; make {:?} a model of its own",
            id.written, alias.written
        );
        reader.problems.add(alias.position, message);
    }
    aliases
}

/// The names of other models. A `*` stands for the same text as that of the id.
fn parse_fallbacks(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    id: Option<&Located<String>>,
) -> Vec<Located<String>> {
    let fallbacks = reader.items(table, "fallbacks", values::model_id);
    for fallback in &fallbacks {
        check_star(reader, "fallback", fallback, id);
    }
    fallbacks
}

/// Reports a `*` that stands for nothing, because the id has none.
fn check_star(
    reader: &mut ConfigReader,
    what: &str,
    name: &Located<String>,
    id: Option<&Located<String>>,
) {
    if let Some(id) = id.filter(|id| !id.value.contains('*'))
        && name.value.contains('*')
    {
        let message = format!(
            "{what} {:?} has a *, but the id {:?} has none; write a whole name, or a * in the id",
            name.written, id.written
        );
        reader.problems.add(name.position, message);
    }
}

fn parse_targets(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    id: Option<&Located<String>>,
) -> Vec<Located<TargetConfig>> {
    let Some(field) = reader.required_field(table, "upstreams") else {
        return Vec::new();
    };
    let mut targets = Vec::new();
    for field in reader.filled_list(field) {
        let Some(mut table) = reader.table("an upstream of a model", field) else {
            continue;
        };
        let name = reader.required(&mut table, "name", values::name);
        let model = table.take("model").map(|field| {
            let model = reader.value(field, values::upstream_model);
            if let Some(model) = &model {
                check_star(reader, "model", model, id);
            }
            model.map(|model| model.value).unwrap_or_default()
        });
        let weight = reader.optional(&mut table, "weight", values::weight);
        let priority = reader.optional(&mut table, "priority", values::priority);
        let when = table.take("when");
        let when = when.map(|field| parse_condition(reader, field));
        reader.finish(table);
        // Without its condition it would serve requests that it must not.
        if let Some(None) = when {
            continue;
        }
        targets.extend(name.map(|name| Located {
            value: TargetConfig {
                name: name.value,
                model,
                weight: weight.unwrap_or(1),
                priority: priority.unwrap_or(0),
                when: when.flatten(),
            },
            written: name.written,
            position: name.position,
        }));
    }
    targets
}

/// `{header: {name: NAME, value: GLOB}}`.
fn parse_condition(reader: &mut ConfigReader, field: ConfigField) -> Option<HeaderCondition> {
    let mut table = reader.table("when", field)?;
    let header = reader.required_field(&mut table, "header");
    let header = header.and_then(|field| {
        let mut header = reader.table("header", field)?;
        let name = reader.required(&mut header, "name", values::condition_header);
        let value = reader.required(&mut header, "value", values::glob);
        reader.finish(header);
        Some((name?.value, value?.value))
    });
    reader.finish(table);
    let (name, value) = header?;
    Some(HeaderCondition { name, value })
}
