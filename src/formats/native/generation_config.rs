//! `generationConfig`: sampling, the format of the output, and the settings of thinking and images.

use serde::Serialize;

use super::enum_values::{
    APPLICATION_JSON, MAX_STOP_SEQUENCES, MODALITIES, RESPONSE_MIME_TYPES, TEXT_ENUM, TEXT_PLAIN,
};
use super::field_names::{self, FieldNames};
use super::image_config::{self, ImageConfig};
use super::media_resolution::encode_media_resolution;
use super::reference_budget::ReferenceBudget;
use super::schema::{EncodedSchema, encode_schema, report_inexact};
use super::schema_decoder::decode_schema;
use super::thinking_config::{self, ThinkingConfig};
use crate::formats::Capabilities;
use crate::json::{Fields, Node};
use crate::model::{
    ApiError, FieldLocation, Format, ImageOptions, Json, Losses, Output, OutputFormat, Request,
    Sampling, Setting, SettingAliases, Text,
};

/// Decodes `generationConfig` into the settings of a request.
pub(super) fn decode_generation_config<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        request.sampling = decode_sampling(&mut fields)?;
        request.output = decode_output(&mut fields, &mut request.aliases, losses)?;
        if let Some(node) = field_names::take(&mut fields, field_names::THINKING_CONFIG) {
            request.thinking =
                node.fields(|fields| thinking_config::decode_thinking_config(fields, losses))?;
        }
        field_names::report_dropped(&mut fields, field_names::MEDIA_RESOLUTION, losses);
        fields.finish(losses);
        Ok(())
    })
}

/// The `generationConfig` of a request to an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig<'a> {
    max_output_tokens: Option<i64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    seed: Option<i64>,
    presence_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [Text<'a>],
    candidate_count: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    response_logprobs: bool,
    logprobs: Option<u32>,
    response_mime_type: Option<&'static str>,
    response_schema: Option<Json<'a>>,
    response_json_schema: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    response_modalities: Vec<&'static str>,
    thinking_config: Option<ThinkingConfig>,
    image_config: Option<ImageConfig>,
    media_resolution: Option<&'static str>,
}

/// Encodes the settings of a request; `None` if it has none.
pub(super) fn encode_generation_config<'a>(
    request: &'a Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<GenerationConfig<'a>> {
    let mut config = encode_sampling(&request.sampling, losses);
    encode_output_format(&request.output.format, &mut config, losses);
    config.response_modalities = encode_modalities(&request.output);
    if request.output.verbosity.is_some() {
        losses.dropped(FieldLocation::Setting(Setting::Verbosity));
    }
    config.thinking_config =
        thinking_config::encode_thinking_config(request.thinking, capabilities, losses);
    config.image_config = image_config::encode_image_config(&request.output.image_options, losses);
    config.media_resolution = encode_media_resolution(&request.turns, losses);
    (config != GenerationConfig::default()).then_some(config)
}

fn decode_sampling<'a>(fields: &mut Fields<'a, '_>) -> Result<Sampling<'a>, ApiError> {
    Ok(Sampling {
        max_tokens: decode_field(fields, field_names::MAX_OUTPUT_TOKENS, Node::u64)?,
        temperature: decode_field(fields, &["temperature"], Node::f64)?,
        top_p: decode_field(fields, field_names::TOP_P, Node::f64)?,
        top_k: decode_field(fields, field_names::TOP_K, Node::u64)?,
        seed: fields.i64("seed")?,
        stop: decode_stop_sequences(fields)?,
        presence_penalty: decode_field(fields, field_names::PRESENCE_PENALTY, Node::f64)?,
        frequency_penalty: decode_field(fields, field_names::FREQUENCY_PENALTY, Node::f64)?,
        choices: saturate(decode_field(
            fields,
            field_names::CANDIDATE_COUNT,
            Node::u64,
        )?),
        logprobs: decode_field(fields, field_names::RESPONSE_LOGPROBS, Node::bool)?
            .unwrap_or(false),
        top_logprobs: saturate(fields.u64("logprobs")?),
    })
}

fn decode_field<'a, 's, T>(
    fields: &'s mut Fields<'a, '_>,
    names: FieldNames,
    decode: impl FnOnce(Node<'a, 's>) -> Result<T, ApiError>,
) -> Result<Option<T>, ApiError> {
    field_names::take(fields, names).map(decode).transpose()
}

fn saturate(count: Option<u64>) -> Option<u32> {
    count.map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

fn decode_stop_sequences<'a>(fields: &mut Fields<'a, '_>) -> Result<Vec<Text<'a>>, ApiError> {
    let node = field_names::take(fields, field_names::STOP_SEQUENCES);
    let stop = node.map(field_names::decode_texts);
    Ok(stop.transpose()?.unwrap_or_default())
}

fn encode_sampling<'a>(sampling: &'a Sampling<'_>, losses: &mut Losses) -> GenerationConfig<'a> {
    let stop = &sampling.stop[..];
    if stop.len() > MAX_STOP_SEQUENCES {
        losses.approximated(FieldLocation::Setting(Setting::Stop));
    }
    let mut fit = |setting, number: Option<i64>| {
        number.map(|number| Format::Native.fit_integer(setting, number, losses))
    };
    let signed = |count: Option<u64>| count.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    GenerationConfig {
        // A limit of 0 only fills the cache in other formats; here it becomes 1.
        max_output_tokens: fit(Setting::MaxTokens, signed(sampling.max_tokens)),
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: fit(Setting::TopK, signed(sampling.top_k)),
        seed: fit(Setting::Seed, sampling.seed),
        presence_penalty: sampling.presence_penalty,
        frequency_penalty: sampling.frequency_penalty,
        stop_sequences: &stop[..stop.len().min(MAX_STOP_SEQUENCES)],
        candidate_count: sampling.choices,
        response_logprobs: sampling.logprobs,
        logprobs: sampling.top_logprobs.filter(|_| sampling.logprobs),
        ..GenerationConfig::default()
    }
}

fn decode_output<'a>(
    fields: &mut Fields<'a, '_>,
    aliases: &mut SettingAliases,
    losses: &mut Losses,
) -> Result<Output<'a>, ApiError> {
    let format = decode_output_format(fields, aliases, losses)?;
    let (images, audio) = decode_modalities(fields)?;
    Ok(Output {
        image_limit: None,
        format,
        images,
        audio,
        image_options: ImageOptions {
            size: image_config::decode_image_config(fields, losses)?,
            ..ImageOptions::default()
        },
        verbosity: None,
    })
}

/// Decodes `responseMimeType` and the schema beside it.
fn decode_output_format<'a>(
    fields: &mut Fields<'a, '_>,
    aliases: &mut SettingAliases,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, ApiError> {
    let mime_type =
        field_names::take_enum(fields, field_names::RESPONSE_MIME_TYPE, RESPONSE_MIME_TYPES);
    let node = field_names::take(fields, field_names::RESPONSE_SCHEMA);
    let schema = decode_schema(node, losses)?;
    let node = field_names::take(fields, field_names::RESPONSE_JSON_SCHEMA);
    let json_schema = decode_schema(node, losses)?;
    aliases.shape = match (&schema, &json_schema) {
        (Some(_), _) => None,
        (None, Some(_)) => Some("generationConfig.responseJsonSchema"),
        (None, None) => Some("generationConfig.responseMimeType"),
    };
    let schema = schema.or(json_schema);
    Ok(match (mime_type.unwrap_or(TEXT_PLAIN), schema) {
        (TEXT_ENUM, Some(schema)) => OutputFormat::Enum(schema),
        (APPLICATION_JSON, None) => OutputFormat::Json,
        (_, Some(schema)) => OutputFormat::Schema {
            name: None,
            description: None,
            schema,
            strict: None,
        },
        (_, None) => OutputFormat::Text,
    })
}

fn encode_output_format<'a>(
    format: &'a OutputFormat<'_>,
    config: &mut GenerationConfig<'a>,
    losses: &mut Losses,
) {
    let location = FieldLocation::Setting(Setting::OutputFormat);
    let (mime_type, schema) = match format {
        OutputFormat::Text => return,
        OutputFormat::Json => (APPLICATION_JSON, None),
        OutputFormat::Schema {
            name,
            description,
            schema,
            ..
        } => {
            if name.is_some() {
                losses.dropped(FieldLocation::Setting(Setting::OutputName));
            }
            if description.is_some() {
                losses.dropped(FieldLocation::Setting(Setting::OutputDescription));
            }
            (APPLICATION_JSON, Some(schema))
        }
        OutputFormat::Enum(schema) => (TEXT_ENUM, Some(schema)),
    };
    config.response_mime_type = Some(mime_type);
    let mut budget = ReferenceBudget::default();
    match schema.map(|schema| encode_schema(schema, &mut budget)) {
        None => {}
        Some(EncodedSchema::JsonSchema { schema, exact }) => {
            config.response_json_schema = Some(schema);
            report_inexact(exact, location, losses);
        }
        Some(EncodedSchema::Native { schema, exact }) => {
            config.response_schema = Some(schema);
            report_inexact(exact, location, losses);
        }
    }
}

/// Decodes `responseModalities`: whether images and whether audio are requested.
fn decode_modalities(fields: &mut Fields<'_, '_>) -> Result<(bool, bool), ApiError> {
    let (mut images, mut audio) = (false, false);
    field_names::for_each(fields, field_names::RESPONSE_MODALITIES, |_, node| {
        match field_names::enum_value(&node.value, MODALITIES) {
            Some("IMAGE") => images = true,
            Some("AUDIO") => audio = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok((images, audio))
}

fn encode_modalities(output: &Output<'_>) -> Vec<&'static str> {
    let mut modalities = Vec::new();
    if output.images || output.audio {
        modalities.push("TEXT");
    }
    if output.images {
        modalities.push("IMAGE");
    }
    if output.audio {
        modalities.push("AUDIO");
    }
    modalities
}
