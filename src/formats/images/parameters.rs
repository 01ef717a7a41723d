//! The parameters of a request, checked against the limits of the format.

use super::image_header::ImageFileType;
use super::input_image::{InputImage, invalid_image};
use super::request_body::ImageRequestBody;
use crate::formats::RequestHead;
use crate::model::{ApiError, ImageSize, Losses, Text, truncated};

const MAX_INPUT_IMAGES: usize = 16;
const MAX_IMAGES: u64 = 10;
const MAX_PROMPT_CHARS: usize = 32_000;
const MAX_PARTIAL_IMAGES: u64 = 3;

/// The parameters of a request.
pub(super) struct ImageParameters<'a> {
    pub(super) prompt: Text<'a>,
    pub(super) n: Option<u64>,
    pub(super) size: Option<ImageSize>,
    pub(super) quality: Option<Text<'a>>,
    pub(super) output_format: Option<Text<'a>>,
    pub(super) output_compression: Option<u64>,
    pub(super) background: Option<Text<'a>>,
    pub(super) moderation: Option<Text<'a>>,
    /// `response_format` is `url`.
    pub(super) as_url: bool,
    pub(super) partial_images: Option<u64>,
    pub(super) user: Option<Text<'a>>,
    pub(super) seed: Option<i64>,
    pub(super) images: Vec<InputImage<'a>>,
    pub(super) mask: Option<InputImage<'a>>,
}

/// Decodes the parameters of a request; fields that the format does not have are reported.
pub(super) fn decode_parameters<'a>(
    head: &RequestHead<'_>,
    body: &'a [u8],
    losses: &mut Losses,
) -> Result<ImageParameters<'a>, ApiError> {
    let mut body = ImageRequestBody::decode(body)?;
    // Routing has read these.
    for key in ["model", "stream", "async"] {
        body.skip(key);
    }
    let parameters = ImageParameters {
        prompt: decode_prompt(&mut body)?,
        n: decode_integer(&mut body, "n", 1, MAX_IMAGES)?,
        size: decode_size(&mut body, head.sizes)?,
        quality: unless_auto(body.text("quality")?),
        output_format: decode_choice(&mut body, "output_format", &["png", "jpeg", "webp"])?,
        output_compression: decode_integer(&mut body, "output_compression", 0, 100)?,
        background: decode_choice(&mut body, "background", &["transparent", "opaque"])?,
        moderation: decode_choice(&mut body, "moderation", &["low"])?,
        as_url: decode_choice(&mut body, "response_format", &["url", "b64_json"])?.as_deref()
            == Some("url"),
        partial_images: decode_integer(&mut body, "partial_images", 0, MAX_PARTIAL_IMAGES)?,
        user: body.text("user")?,
        seed: body.integer("seed")?,
        images: decode_images(&mut body)?,
        mask: body.images("mask")?.into_iter().next(),
    };
    if head.edits && parameters.images.is_empty() {
        return Err(ApiError::invalid("missing required field image").at("image"));
    }
    check_mask(&parameters)?;
    body.finish(losses);
    Ok(parameters)
}

fn decode_prompt<'a>(body: &mut ImageRequestBody<'a>) -> Result<Text<'a>, ApiError> {
    let prompt = body
        .text("prompt")?
        .filter(|words| !words.trim().is_empty());
    let missing = || ApiError::invalid("missing required field prompt").at("prompt");
    let prompt = prompt.ok_or_else(missing)?;
    if prompt.chars().nth(MAX_PROMPT_CHARS).is_some() {
        let message = format!("prompt: expected at most {MAX_PROMPT_CHARS} characters");
        return Err(ApiError::invalid(message).at("prompt"));
    }
    Ok(prompt)
}

/// Decodes `size`; `allowed` are the sizes of the model, empty for any.
fn decode_size(
    body: &mut ImageRequestBody<'_>,
    allowed: &[ImageSize],
) -> Result<Option<ImageSize>, ApiError> {
    let Some(text) = unless_auto(body.text("size")?) else {
        return Ok(None);
    };
    let size = ImageSize::of_pixels(&text);
    if size.is_some_and(|size| allowed.is_empty() || allowed.contains(&size)) {
        return Ok(size);
    }
    let sizes = allowed.iter().map(|size| match size {
        ImageSize::Pixels { width, height } => format!("{width}x{height}, "),
        ImageSize::Shape { .. } => String::new(),
    });
    let sizes: String = match allowed {
        [] => "a width and a height like 1024x1536, ".to_owned(),
        _ => sizes.collect(),
    };
    let text = truncated(&text);
    let message = format!("size: `{text}` is not supported, use {sizes}or auto");
    let mut api_error = ApiError::invalid(message).at("size");
    api_error.code = Some("unsupported_size".to_owned());
    Err(api_error)
}

fn unless_auto(text: Option<Text<'_>>) -> Option<Text<'_>> {
    text.filter(|text| text != "auto" && !text.is_empty())
}

/// Decodes a field that is `auto` or one of `values`.
fn decode_choice<'a>(
    body: &mut ImageRequestBody<'a>,
    key: &'static str,
    values: &[&str],
) -> Result<Option<Text<'a>>, ApiError> {
    let text = unless_auto(body.text(key)?);
    match text {
        Some(text) if !values.contains(&&*text) => {
            let known = values.join(", ");
            let text = truncated(&text);
            let message = format!("{key}: `{text}` is unknown, use one of {known}");
            Err(ApiError::invalid(message).at(key))
        }
        text => Ok(text),
    }
}

/// Decodes an integer from `min` to `max`.
fn decode_integer(
    body: &mut ImageRequestBody<'_>,
    key: &'static str,
    min: u64,
    max: u64,
) -> Result<Option<u64>, ApiError> {
    let Some(number) = body.integer(key)? else {
        return Ok(None);
    };
    let number = u64::try_from(number).ok();
    let number = number.filter(|number| (min..=max).contains(number));
    let wrong = || ApiError::invalid(format!("{key}: expected {min} to {max}")).at(key);
    number.map(Some).ok_or_else(wrong)
}

/// Decodes the input images, which clients send under several names.
fn decode_images<'a>(body: &mut ImageRequestBody<'a>) -> Result<Vec<InputImage<'a>>, ApiError> {
    let mut images = Vec::new();
    for key in ["image", "image[]", "images"] {
        images.extend(body.images(key)?);
    }
    if images.len() > MAX_INPUT_IMAGES {
        let message = format!("image: expected at most {MAX_INPUT_IMAGES} images");
        return Err(ApiError::invalid(message).at("image"));
    }
    Ok(images)
}

fn check_mask(parameters: &ImageParameters<'_>) -> Result<(), ApiError> {
    let Some(mask) = parameters.mask.as_ref().and_then(|mask| mask.header) else {
        return Ok(());
    };
    if mask.file_type != ImageFileType::Png {
        return Err(invalid_image("mask", "expected a PNG"));
    }
    let first = parameters.images.first().and_then(|image| image.header);
    match (mask.size, first.and_then(|first| first.size)) {
        (Some(mask), Some(first)) if mask != first => Err(invalid_image(
            "mask",
            "expected the size of the first image",
        )),
        _ => Ok(()),
    }
}
