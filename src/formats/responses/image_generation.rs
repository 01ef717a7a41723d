//! Image generation: the settings of the tool, and the `image_generation_call` items.

use serde::Serialize;

use super::lenient_object::LenientObject;
use crate::json::Fields;
use crate::model::{
    ApiError, FieldLocation, ImageOptions, ImageSetting, ImageSize, Losses, Media, PartKind, Scale,
    Setting, Source,
};

/// Decodes the settings of the tool; `auto` is the default of every format.
pub(super) fn decode<'a>(fields: &mut Fields<'a, '_>) -> Result<ImageOptions<'a>, ApiError> {
    let mut text = |key: &str| {
        let value = fields.text(key);
        value.map(|value| value.filter(|value| value != "auto"))
    };
    Ok(ImageOptions {
        size: text("size")?.and_then(|size| ImageSize::of_pixels(&size)),
        quality: text("quality")?,
        file_format: text("output_format")?,
        background: text("background")?,
        moderation: text("moderation")?,
        compression: fields.u64("output_compression")?,
        partial_images: fields.u64("partial_images")?.filter(|count| *count > 0),
        mask: None,
    })
}

/// The settings of the tool as they are encoded.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ImageGenerationSettings<'r> {
    size: Option<String>,
    quality: Option<&'r str>,
    output_format: Option<&'r str>,
    output_compression: Option<u64>,
    background: Option<&'r str>,
    moderation: Option<&'r str>,
    partial_images: Option<u64>,
}

/// Encodes the settings of the tool.
pub(super) fn encode<'r>(
    options: &'r ImageOptions<'_>,
    losses: &mut Losses,
) -> ImageGenerationSettings<'r> {
    let size = options.size.map(|size| match size {
        ImageSize::Pixels { width, height } => format!("{width}x{height}"),
        ImageSize::Shape { ratio, .. } => {
            let nearest = nearest_size(ratio.unwrap_or((1, 1)));
            if !nearest.is_exactly(size) {
                let setting = Setting::Image(ImageSetting::Size);
                losses.approximated(FieldLocation::Setting(setting));
            }
            match nearest {
                ImageSize::Pixels { width, height } => format!("{width}x{height}"),
                ImageSize::Shape { .. } => "auto".to_owned(),
            }
        }
    });
    ImageGenerationSettings {
        size,
        quality: options.quality.as_deref(),
        output_format: options.file_format.as_deref(),
        output_compression: options.compression,
        background: options.background.as_deref(),
        moderation: options.moderation.as_deref(),
        partial_images: options.partial_images,
    }
}

/// Picks the size nearest to a ratio: the tool makes three.
const fn nearest_size((width, height): (u32, u32)) -> ImageSize {
    let side = Scale::One.side();
    let long = side / 2 * 3;
    let (width, height) = if width > height {
        (long, side)
    } else if width < height {
        (side, long)
    } else {
        (side, side)
    };
    ImageSize::Pixels { width, height }
}

/// Decodes an `image_generation_call` of a request's history; `None`: it comes without the image.
pub(super) fn decode_input_call<'a>(
    fields: &mut Fields<'a, '_>,
) -> Result<Option<PartKind<'a>>, ApiError> {
    let data = fields.text("result")?;
    let format = fields.text("output_format")?;
    Ok(data.map(|data| {
        PartKind::Media(Media {
            mime: format!("image/{}", format.as_deref().unwrap_or("png")).into(),
            source: Source::Base64(data),
            name: None,
            detail: None,
        })
    }))
}

/// Decodes an `image_generation_call` of a response; `None`: it comes without an image.
pub(super) fn decode_output_call<'a>(item: &mut LenientObject<'a>) -> Option<Media<'a>> {
    let data = item.text("result");
    if data.is_empty() {
        return None;
    }
    let format = item.text("output_format");
    Some(Media {
        mime: match format.as_ref() {
            "" => "image/png".into(),
            format => format!("image/{format}").into(),
        },
        source: Source::Base64(data),
        name: None,
        detail: None,
    })
}

/// The data of an image that an `image_generation_call` can hold: the format takes images by value only.
pub(super) fn image_data<'m>(media: &'m Media<'_>) -> Option<&'m str> {
    match &media.source {
        Source::Base64(data) if media.mime.starts_with("image/") => Some(data),
        _ => None,
    }
}
