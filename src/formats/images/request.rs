//! Requests for images.

use std::borrow::Cow;

use serde::Serialize;

use super::Images;
use super::input_image::{EncodedInputImage, encode_input_image};
use super::parameters::{ImageParameters, decode_parameters};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::settings::{LABELS, SAMPLING};
use crate::formats::{RequestCodec, RequestHead, UpstreamTarget};
use crate::model::{
    ApiError, FieldLocation, Format, ImageOptions, ImageSetting, ImageSize, Labels, Losses, Media,
    Output, Part, PartKind, Request, Role, Sampling, Setting, Turn,
};

impl RequestCodec for Images {
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        let parameters = decode_parameters(head, body, losses)?;
        if parameters.as_url {
            // Only upstreams of this format can store a file behind a URL.
            losses.dropped(FieldLocation::Path("response_format".into()));
        }
        Ok(request_of(parameters))
    }

    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        if !request.output.images {
            return Err(images_only());
        }
        if request.output.audio {
            let message = "the upstream of this model generates images only";
            return Err(
                ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Audio))
            );
        }
        let (prompt, images) = encode_turns(&request.turns, losses)?;
        if prompt.trim().is_empty() {
            let location = FieldLocation::Turn { turn: Some(0) };
            return Err(
                ApiError::invalid("an image model needs a text that describes the image")
                    .at_location(location),
            );
        }
        let options = &request.output.image_options;
        report_unsupported(request, losses);
        let body = ImageRequest {
            model: target.model,
            prompt,
            mask: options.mask.as_ref().and_then(encode_input_image),
            images,
            n: request.sampling.choices,
            size: encode_size(options, target, losses),
            quality: options.quality.as_deref(),
            output_format: options.file_format.as_deref(),
            output_compression: options.compression,
            background: options.background.as_deref(),
            moderation: options.moderation.as_deref(),
            user: request.labels.user.as_deref(),
            stream: target.stream.then_some(true),
            partial_images: options.partial_images.filter(|_| target.stream),
        };
        Ok(to_json_bytes(&body, request.size()))
    }
}

/// The request of the model: one turn with the prompt, then the input images.
fn request_of(parameters: ImageParameters<'_>) -> Request<'_> {
    let prompt = PartKind::Text(parameters.prompt);
    let images = parameters.images.into_iter();
    let images = images.map(|image| PartKind::Media(image.into_media()));
    let parts = (0..).zip(std::iter::once(prompt).chain(images));
    let parts = parts.map(|(at, kind)| Part { kind, at: Some(at) });
    Request {
        turns: vec![Turn {
            role: Role::User,
            parts: parts.collect(),
            at: Some(0),
        }],
        output: Output {
            images: true,
            image_options: ImageOptions {
                size: parameters.size,
                quality: parameters.quality,
                file_format: parameters.output_format,
                compression: parameters.output_compression,
                background: parameters.background,
                moderation: parameters.moderation,
                mask: parameters.mask.map(|mask| mask.into_media()),
                partial_images: parameters.partial_images.filter(|count| *count > 0),
            },
            ..Output::default()
        },
        sampling: Sampling {
            // One image is the default.
            choices: parameters
                .n
                .filter(|count| *count > 1)
                .map(|count| count as u32),
            seed: parameters.seed,
            ..Sampling::default()
        },
        labels: Labels {
            user: parameters.user,
            ..Labels::default()
        },
        ..Request::default()
    }
}

/// The sizes of a model whose configuration lists none.
const DEFAULT_SIZES: [ImageSize; 3] = [pixels(1024, 1024), pixels(1536, 1024), pixels(1024, 1536)];

const fn pixels(width: u32, height: u32) -> ImageSize {
    ImageSize::Pixels { width, height }
}

/// A request body for an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct ImageRequest<'a> {
    model: &'a str,
    prompt: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<EncodedInputImage<'a>>,
    mask: Option<EncodedInputImage<'a>>,
    n: Option<u32>,
    size: Option<String>,
    quality: Option<&'a str>,
    output_format: Option<&'a str>,
    output_compression: Option<u64>,
    background: Option<&'a str>,
    moderation: Option<&'a str>,
    user: Option<&'a str>,
    stream: Option<bool>,
    partial_images: Option<u64>,
}

/// The error for a request that asks an image model for text.
fn images_only() -> ApiError {
    let message = "this model generates images only: request image output";
    let mut api_error =
        ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Images));
    api_error.code = Some("invalid_model".to_owned());
    api_error
}

/// Encodes all turns as one prompt and the input images: the format has no turns.
fn encode_turns<'a>(
    turns: &'a [Turn<'_>],
    losses: &mut Losses,
) -> Result<(Cow<'a, str>, Vec<EncodedInputImage<'a>>), ApiError> {
    let mut texts: Vec<&'a str> = Vec::new();
    let mut images = Vec::new();
    for turn in turns {
        for part in &turn.parts {
            let location = FieldLocation::Part {
                turn: turn.at,
                part: part.at,
            };
            match &part.kind {
                PartKind::Text(text) | PartKind::Refusal(text) => texts.push(text),
                PartKind::Media(media) => {
                    let image = Some(media)
                        .filter(|media| is_image(media))
                        .and_then(encode_input_image);
                    let message = "an image model accepts only images as input media";
                    images.push(
                        image.ok_or_else(|| ApiError::invalid(message).at_location(location))?,
                    );
                }
                PartKind::Reasoning { .. } => losses.dropped(location),
                PartKind::Call(_) | PartKind::Result(_) => {
                    let message = "an image model does not accept tool calls";
                    return Err(ApiError::invalid(message).at_location(location));
                }
            }
        }
    }
    for turn in turns.iter().rev().skip(1) {
        losses.approximated(FieldLocation::Turn { turn: turn.at });
    }
    Ok(match texts[..] {
        [only] => (only.into(), images),
        _ => (texts.join("\n\n").into(), images),
    })
}

fn is_image(media: &Media<'_>) -> bool {
    media.mime.is_empty() || media.mime.starts_with("image/")
}

/// Encodes `size`: an aspect ratio becomes the nearest size that the model makes.
fn encode_size(
    options: &ImageOptions<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let requested = options.size?;
    let sizes = match &target.capabilities.image_sizes[..] {
        [] => &DEFAULT_SIZES[..],
        sizes => sizes,
    };
    let size = match requested {
        ImageSize::Pixels { .. } => requested,
        ImageSize::Shape { .. } => {
            let among: Vec<_> = sizes.iter().map(|size| (*size, *size)).collect();
            requested.nearest(&among)?
        }
    };
    if !size.is_exactly(requested) {
        let location = FieldLocation::Setting(Setting::Image(ImageSetting::Size));
        losses.approximated(location);
    }
    match size {
        ImageSize::Pixels { width, height } => Some(format!("{width}x{height}")),
        ImageSize::Shape { .. } => None,
    }
}

/// Reports the settings that the format does not have.
fn report_unsupported(request: &Request<'_>, losses: &mut Losses) {
    const WITHOUT_FIELD: [Setting; 6] = [
        Setting::Thinking,
        Setting::ToolChoice,
        Setting::OutputFormat,
        Setting::Verbosity,
        Setting::Search,
        Setting::CodeExecution,
    ];
    Format::Images.report_dropped(&SAMPLING, request, losses);
    Format::Images.report_dropped(&WITHOUT_FIELD, request, losses);
    Format::Images.report_dropped(&LABELS, request, losses);
    for tool in &request.tools {
        losses.dropped(FieldLocation::Tool { tool: tool.at });
    }
}
