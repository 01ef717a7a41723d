//! `generationConfig`: how the reply is to be made.

use super::field_names::{self, Spellings};
use super::image_config::{ratio_of, scale_of};
use super::setting_rules::{
    ASPECT_RATIOS, ENUM, IMAGE_SIZES, JSON, KINDS, LEVELS, MODALITIES, PLAIN,
};
use super::tools::read_schema;
use crate::json::{Fields, Node};
use crate::model::{
    ApiError, Depth, Effort, ImageOptions, ImageSize, Losses, Output, OutputFormat, Request,
    Sampling, SettingAliases, Text, Thinking,
};

pub(super) fn read<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        request.sampling = read_sampling(&mut fields)?;
        request.output = read_output(&mut fields, &mut request.aliases, losses)?;
        if let Some(node) = field_names::node(&mut fields, field_names::THINKING_CONFIG) {
            request.thinking = node.fields(|fields| read_thinking(fields, losses))?;
        }
        field_names::report(&mut fields, field_names::MEDIA_RESOLUTION, losses);
        fields.finish(losses);
        Ok(())
    })
}

fn read_sampling<'a>(fields: &mut Fields<'a, '_>) -> Result<Sampling<'a>, ApiError> {
    Ok(Sampling {
        max_tokens: value(fields, field_names::MAX_OUTPUT_TOKENS, Node::u64)?,
        temperature: value(fields, &["temperature"], Node::f64)?,
        top_p: value(fields, field_names::TOP_P, Node::f64)?,
        top_k: value(fields, field_names::TOP_K, Node::u64)?,
        seed: fields.i64("seed")?,
        stop: read_stop(fields)?,
        presence_penalty: value(fields, field_names::PRESENCE_PENALTY, Node::f64)?,
        frequency_penalty: value(fields, field_names::FREQUENCY_PENALTY, Node::f64)?,
        choices: small(value(fields, field_names::CANDIDATE_COUNT, Node::u64)?),
        logprobs: value(fields, field_names::RESPONSE_LOGPROBS, Node::bool)?.unwrap_or(false),
        top_logprobs: small(fields.u64("logprobs")?),
    })
}

fn value<'a, 's, T>(
    fields: &'s mut Fields<'a, '_>,
    spellings: Spellings,
    read: impl FnOnce(Node<'a, 's>) -> Result<T, ApiError>,
) -> Result<Option<T>, ApiError> {
    field_names::node(fields, spellings).map(read).transpose()
}

fn small(count: Option<u64>) -> Option<u32> {
    count.map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

fn read_stop<'a>(fields: &mut Fields<'a, '_>) -> Result<Vec<Text<'a>>, ApiError> {
    let stop = field_names::node(fields, field_names::STOP_SEQUENCES).map(field_names::texts);
    Ok(stop.transpose()?.unwrap_or_default())
}

fn read_output<'a>(
    fields: &mut Fields<'a, '_>,
    spelled: &mut SettingAliases,
    losses: &mut Losses,
) -> Result<Output<'a>, ApiError> {
    let shape = read_shape(fields, spelled, losses)?;
    let (images, sound) = read_modalities(fields)?;
    Ok(Output {
        format: shape,
        images,
        audio: sound,
        image_options: ImageOptions {
            size: read_size(fields, losses)?,
            ..ImageOptions::default()
        },
        verbosity: None,
    })
}

fn read_shape<'a>(
    fields: &mut Fields<'a, '_>,
    spelled: &mut SettingAliases,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, ApiError> {
    let kind = field_names::word(fields, field_names::RESPONSE_MIME_TYPE, KINDS);
    let plain = read_schema(
        field_names::node(fields, field_names::RESPONSE_SCHEMA),
        losses,
    )?;
    let exact = field_names::node(fields, field_names::RESPONSE_JSON_SCHEMA);
    let exact = read_schema(exact, losses)?;
    spelled.shape = match (&plain, &exact) {
        (Some(_), _) => None,
        (None, Some(_)) => Some("generationConfig.responseJsonSchema"),
        (None, None) => Some("generationConfig.responseMimeType"),
    };
    let schema = plain.or(exact);
    Ok(match (kind.unwrap_or(PLAIN), schema) {
        (ENUM, Some(schema)) => OutputFormat::Enum(schema),
        (JSON, None) => OutputFormat::Json,
        (_, Some(schema)) => OutputFormat::Schema {
            name: None,
            description: None,
            schema,
            strict: None,
        },
        (_, None) => OutputFormat::Text,
    })
}

/// Whether images and whether sound is wanted; film nobody else can answer with.
fn read_modalities(fields: &mut Fields<'_, '_>) -> Result<(bool, bool), ApiError> {
    let (mut images, mut sound) = (false, false);
    field_names::each(fields, field_names::RESPONSE_MODALITIES, |_, node| {
        match field_names::listed(&node.value, MODALITIES) {
            Some("IMAGE") => images = true,
            Some("AUDIO") => sound = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok((images, sound))
}

/// A shape and a scale; words that nobody knows are reported.
fn read_size(
    fields: &mut Fields<'_, '_>,
    losses: &mut Losses,
) -> Result<Option<ImageSize>, ApiError> {
    let Some(node) = field_names::node(fields, field_names::IMAGE_CONFIG) else {
        return Ok(None);
    };
    node.fields(|mut fields| {
        let ratio = field_names::word(&mut fields, field_names::ASPECT_RATIO, ASPECT_RATIOS);
        let scale = field_names::word(&mut fields, field_names::IMAGE_SIZE, IMAGE_SIZES);
        fields.finish(losses);
        let size = ImageSize::Shape {
            ratio: ratio.and_then(ratio_of),
            scale: scale.and_then(scale_of),
        };
        Ok((ratio.is_some() || scale.is_some()).then_some(size))
    })
}

fn read_thinking(mut fields: Fields<'_, '_>, losses: &mut Losses) -> Result<Thinking, ApiError> {
    let show = value(&mut fields, field_names::INCLUDE_THOUGHTS, Node::bool)?;
    let budget = value(&mut fields, field_names::THINKING_BUDGET, Node::i64)?;
    let level = field_names::word(&mut fields, field_names::THINKING_LEVEL, LEVELS);
    fields.finish(losses);
    let depth = match (budget, level) {
        (Some(-1), _) => Some(Depth::Dynamic),
        (Some(0), _) => Some(Depth::Off),
        (Some(tokens), _) => Some(Depth::Budget(tokens.unsigned_abs())),
        (None, Some("MINIMAL")) => Some(Depth::Effort(Effort::Minimal)),
        (None, Some("LOW")) => Some(Depth::Effort(Effort::Low)),
        (None, Some("MEDIUM")) => Some(Depth::Effort(Effort::Medium)),
        (None, Some(_)) => Some(Depth::Effort(Effort::High)),
        (None, None) => None,
    };
    Ok(Thinking { depth, show })
}
