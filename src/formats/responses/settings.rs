//! Settings of a response: output limit, sampling parameters, and the `text` object.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::schema;
use crate::formats::Capabilities;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, FieldLocation, Json, Losses, Output, OutputFormat, Sampling, Setting, Text,
};

/// The smallest `max_output_tokens` that the format accepts.
pub(super) const MIN_OUTPUT_TOKENS: u64 = 16;

/// Decodes the output limit and the sampling parameters.
pub(super) fn decode_sampling(
    fields: &mut Fields<'_, '_>,
    sampling: &mut Sampling<'_>,
) -> Result<(), ApiError> {
    sampling.max_tokens = fields.u64("max_output_tokens")?;
    if sampling
        .max_tokens
        .is_some_and(|tokens| tokens < MIN_OUTPUT_TOKENS)
    {
        return Err(Path::Key(&fields.path, "max_output_tokens").wrong("an integer of at least 16"));
    }
    sampling.temperature = number_within(fields, "temperature", 0.0..=2.0)?;
    sampling.top_p = number_within(fields, "top_p", 0.0..=1.0)?;
    let top = fields.u64("top_logprobs")?;
    sampling.top_logprobs = match top.map(u32::try_from) {
        None => None,
        Some(Ok(top @ 0..=20)) => Some(top),
        Some(_) => return Err(Path::Key(&fields.path, "top_logprobs").wrong("at most 20")),
    };
    sampling.logprobs = sampling.top_logprobs.is_some_and(|top| top > 0);
    Ok(())
}

/// Decodes a number that must be within a range.
fn number_within(
    fields: &mut Fields<'_, '_>,
    key: &str,
    range: RangeInclusive<f64>,
) -> Result<Option<f64>, ApiError> {
    let number = fields.f64(key)?;
    match number {
        Some(number) if !range.contains(&number) => {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            Err(Path::Key(&fields.path, key).wrong(&expected))
        }
        _ => Ok(number),
    }
}

/// Encodes `temperature` and `top_p`, for models that take them.
pub(super) fn encode_sampling(
    sampling: &Sampling<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> (Option<f64>, Option<f64>) {
    let mut encode = |value: Option<f64>, setting| {
        if value.is_some() && !capabilities.sampling {
            losses.dropped(FieldLocation::Setting(setting));
        }
        value.filter(|_| capabilities.sampling)
    };
    let temperature = encode(sampling.temperature, Setting::Temperature);
    (temperature, encode(sampling.top_p, Setting::TopP))
}

/// Encodes `max_output_tokens`, raised to the minimum.
pub(super) fn encode_max_output_tokens(
    sampling: &Sampling<'_>,
    losses: &mut Losses,
) -> Option<u64> {
    let tokens = sampling.max_tokens?;
    if tokens < MIN_OUTPUT_TOKENS {
        losses.approximated(FieldLocation::Setting(Setting::MaxTokens));
    }
    Some(tokens.max(MIN_OUTPUT_TOKENS))
}

/// Reports the sampling parameters that this format does not have.
pub(super) fn report_unsupported(sampling: &Sampling<'_>, losses: &mut Losses) {
    let unsupported = [
        (sampling.top_k.is_some(), Setting::TopK),
        (sampling.seed.is_some(), Setting::Seed),
        (!sampling.stop.is_empty(), Setting::Stop),
        (
            sampling.presence_penalty.is_some(),
            Setting::PresencePenalty,
        ),
        (
            sampling.frequency_penalty.is_some(),
            Setting::FrequencyPenalty,
        ),
        (
            sampling.choices.is_some_and(|choices| choices > 1),
            Setting::Choices,
        ),
    ];
    for (is_set, setting) in unsupported {
        if is_set {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
}

/// Decodes the `text` object: the output format and the verbosity.
pub(super) fn decode_text<'a>(
    fields: &mut Fields<'a, '_>,
    output: &mut Output<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let Some(node) = fields.node("text") else {
        return Ok(());
    };
    node.fields(|mut fields| {
        if let Some(format) = fields.node("format") {
            output.format = decode_text_format(format, losses)?;
        }
        output.verbosity = fields.text("verbosity")?;
        if !matches!(
            output.verbosity.as_deref(),
            None | Some("low" | "medium" | "high")
        ) {
            return Err(Path::Key(&fields.path, "verbosity").wrong("one of low, medium, high"));
        }
        fields.finish(losses);
        Ok(())
    })
}

/// Decodes `text.format`.
fn decode_text_format<'a>(
    node: Node<'a, '_>,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        let shape = match fields.need("type", kind)?.as_ref() {
            "text" => OutputFormat::Text,
            "json_object" => OutputFormat::Json,
            "json_schema" => {
                let name = fields.text("name")?;
                let schema = fields.take("schema");
                let schema = fields.need("schema", schema)?;
                if !schema.is_object() {
                    return Err(Path::Key(&fields.path, "schema").wrong("an object"));
                }
                OutputFormat::Schema {
                    name: Some(fields.need("name", name)?),
                    description: fields.text("description")?,
                    schema,
                    strict: fields.bool("strict")?,
                }
            }
            other => {
                let path = Path::Key(&fields.path, "type");
                return Err(path.wrong_text("one of text, json_object, json_schema", other));
            }
        };
        fields.finish(losses);
        Ok(shape)
    })
}

/// The `text` object as it is encoded.
#[derive(Serialize)]
pub(super) struct TextSettings<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<TextFormat<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'r str>,
}

/// `text.format` as it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat<'r> {
    JsonObject,
    JsonSchema {
        name: &'r str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'r str>,
        schema: &'r Json<'r>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// The name of a schema that has none: the format requires one.
const SCHEMA_NAME: &str = "response";

/// Encodes the `text` object.
pub(super) fn encode_text<'r>(
    output: &'r Output<'_>,
    losses: &mut Losses,
) -> Option<TextSettings<'r>> {
    let format = match &output.format {
        OutputFormat::Text => None,
        OutputFormat::Json => Some(TextFormat::JsonObject),
        OutputFormat::Schema {
            name,
            description,
            schema,
            strict,
        } => {
            if name.is_none() {
                losses.added(FieldLocation::Setting(Setting::OutputFormat));
            }
            Some(TextFormat::JsonSchema {
                name: name.as_deref().unwrap_or(SCHEMA_NAME),
                description: description.as_deref(),
                schema,
                strict: encode_strict(schema, *strict, name, losses),
            })
        }
        // The format has no bare values: the model returns a JSON string, quotes included.
        OutputFormat::Enum(schema) => {
            losses.approximated(FieldLocation::Setting(Setting::OutputFormat));
            losses.added(FieldLocation::Setting(Setting::OutputFormat));
            Some(TextFormat::JsonSchema {
                name: SCHEMA_NAME,
                description: None,
                schema,
                strict: Some(false),
            })
        }
    };
    let verbosity = output.verbosity.as_deref();
    (format.is_some() || verbosity.is_some()).then_some(TextSettings { format, verbosity })
}

/// Encodes `strict`. Only a schema that meets the rules may be strict. A schema without a name comes from a format
/// that has no `strict` either: it is strict wherever it can be.
fn encode_strict(
    schema: &Json<'_>,
    requested: Option<bool>,
    name: &Option<Text<'_>>,
    losses: &mut Losses,
) -> Option<bool> {
    match requested {
        Some(true) => {
            let fits = schema::is_strict(schema);
            if !fits {
                losses.approximated(FieldLocation::Setting(Setting::OutputFormat));
            }
            Some(fits)
        }
        None if name.is_none() => Some(schema::is_strict(schema)),
        requested => requested,
    }
}
