//! Requests to an upstream of this format, from clients of others.

use std::borrow::Cow;

use serde::Serialize;

use crate::formats::address::Address;
use crate::formats::base64_text;
use crate::formats::written::written;
use crate::formats::{Operation, UpstreamTarget};
use crate::model::{
    ApiError, Depth, FieldLocation, ImageOptions, ImageSetting, ImageSize, Losses, Media,
    OutputFormat, PartKind, Request, Sampling, Setting, Source, Turn,
};

/// Where a model does not say which sizes it makes.
const USUAL_SIZES: [ImageSize; 3] = [pixels(1024, 1024), pixels(1536, 1024), pixels(1024, 1536)];

const fn pixels(width: u32, height: u32) -> ImageSize {
    ImageSize::Pixels { width, height }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    prompt: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Given<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<Given<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_format: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_compression: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    background: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moderation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_images: Option<u64>,
}

#[derive(Serialize)]
struct Given<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<Address<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
}

pub(super) fn encode(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    if !request.output.images {
        return Err(only_pictures());
    }
    if request.output.audio {
        let message = "the upstream of this model answers with pictures only";
        return Err(ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Audio)));
    }
    let (prompt, images) = said(&request.turns, losses)?;
    if prompt.trim().is_empty() {
        let place = FieldLocation::Turn { turn: Some(0) };
        return Err(ApiError::invalid("a picture needs words that describe it").at_location(place));
    }
    let picture = &request.output.image_options;
    report(request, losses);
    let body = Body {
        model: target.model,
        prompt,
        mask: picture.mask.as_ref().and_then(given),
        images,
        n: request.sampling.choices,
        size: size(picture, target, losses),
        quality: picture.quality.as_deref(),
        output_format: picture.file_format.as_deref(),
        output_compression: picture.compression,
        background: picture.background.as_deref(),
        moderation: picture.moderation.as_deref(),
        user: request.labels.user.as_deref(),
        stream: target.stream.then_some(true),
        partial_images: picture.partial_images.filter(|_| target.stream),
    };
    Ok(written(&body, request.size()))
}

pub(super) fn operation_of(request: &Request<'_>) -> Operation {
    let mut parts = request.turns.iter().flat_map(|turn| &turn.parts);
    match parts.any(|part| matches!(part.kind, PartKind::Media(_))) {
        true => Operation::Edit,
        false => Operation::Generate,
    }
}

/// For those who ask a model that draws as if it spoke.
fn only_pictures() -> ApiError {
    let message = "this model answers with pictures only: ask for them";
    let mut api_error =
        ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Images));
    api_error.code = Some("invalid_model".to_owned());
    api_error
}

/// All words in their order, and all images: the format knows no turns.
fn said<'a>(
    turns: &'a [Turn<'_>],
    losses: &mut Losses,
) -> Result<(Cow<'a, str>, Vec<Given<'a>>), ApiError> {
    let mut words: Vec<&'a str> = Vec::new();
    let mut images = Vec::new();
    for turn in turns {
        for part in &turn.parts {
            let place = FieldLocation::Part {
                turn: turn.at,
                part: part.at,
            };
            match &part.kind {
                PartKind::Text(text) | PartKind::Refusal(text) => words.push(text),
                PartKind::Media(media) => {
                    let found = Some(media)
                        .filter(|media| is_picture(media))
                        .and_then(given);
                    let message = "only pictures can be made into pictures";
                    images
                        .push(found.ok_or_else(|| ApiError::invalid(message).at_location(place))?);
                }
                PartKind::Reasoning { .. } => losses.dropped(place),
                PartKind::Call(_) | PartKind::Result(_) => {
                    let message = "a model that makes pictures calls no tools";
                    return Err(ApiError::invalid(message).at_location(place));
                }
            }
        }
    }
    for turn in turns.iter().rev().skip(1) {
        losses.approximated(FieldLocation::Turn { turn: turn.at });
    }
    Ok(match words[..] {
        [only] => (only.into(), images),
        _ => (words.join("\n\n").into(), images),
    })
}

fn is_picture(media: &Media<'_>) -> bool {
    media.mime.is_empty() || media.mime.starts_with("image/")
}

fn given<'a>(media: &'a Media<'_>) -> Option<Given<'a>> {
    let (image_url, file_id) = match &media.source {
        Source::Url(url) => (Some(Address::Url(url)), None),
        Source::Base64(data) => {
            let mime = match &*media.mime {
                "" | "image/*" => "image/png",
                mime => mime,
            };
            let data = base64_text::standard(data);
            (Some(Address::Data { mime, data }), None)
        }
        Source::File(id) => (None, Some(&**id)),
        Source::Plain(_) => return None,
    };
    Some(Given { image_url, file_id })
}

fn size(
    picture: &ImageOptions<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let wanted = picture.size?;
    let sizes = match &target.capabilities.image_sizes[..] {
        [] => &USUAL_SIZES[..],
        sizes => sizes,
    };
    let found = match wanted {
        ImageSize::Pixels { .. } => wanted,
        ImageSize::Shape { .. } => {
            let among: Vec<_> = sizes.iter().map(|size| (*size, *size)).collect();
            wanted.nearest(&among)?
        }
    };
    if !found.is_exactly(wanted) {
        let place = FieldLocation::Setting(Setting::Image(ImageSetting::Size));
        losses.approximated(place);
    }
    match found {
        ImageSize::Pixels { width, height } => Some(format!("{width}x{height}")),
        ImageSize::Shape { .. } => None,
    }
}

/// Nothing of how words are to be made has a meaning here.
fn report(request: &Request<'_>, losses: &mut Losses) {
    let sampling = &request.sampling;
    let Sampling {
        max_tokens,
        temperature,
        top_p,
        top_k,
        seed,
        ..
    } = sampling;
    let labels = &request.labels;
    let thinks = !matches!(
        request.thinking.depth,
        None | Some(Depth::Off | Depth::Dynamic)
    );
    let chooses = request.tool_choice.is_some();
    let is_shaped = !matches!(request.output.format, OutputFormat::Text);
    for (given, setting) in [
        (max_tokens.is_some(), Setting::MaxTokens),
        (temperature.is_some(), Setting::Temperature),
        (top_p.is_some(), Setting::TopP),
        (top_k.is_some(), Setting::TopK),
        (seed.is_some(), Setting::Seed),
        (!sampling.stop.is_empty(), Setting::Stop),
        (
            sampling.presence_penalty.is_some(),
            Setting::PresencePenalty,
        ),
        (
            sampling.frequency_penalty.is_some(),
            Setting::FrequencyPenalty,
        ),
        (sampling.logprobs, Setting::Logprobs),
        (thinks, Setting::Thinking),
        (chooses, Setting::ToolChoice),
        (is_shaped, Setting::OutputFormat),
        (request.output.verbosity.is_some(), Setting::Verbosity),
        (request.search.is_some(), Setting::Search),
        (request.code_execution, Setting::CodeExecution),
        (labels.cache_key.is_some(), Setting::CacheKey),
        (labels.service_tier.is_some(), Setting::ServiceTier),
        (labels.metadata.is_some(), Setting::Metadata),
    ] {
        if given {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
    for tool in &request.tools {
        losses.dropped(FieldLocation::Tool { tool: tool.at });
    }
}
