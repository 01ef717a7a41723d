//! How images are to be made: the settings of the tool that makes them.

use serde::Serialize;

use crate::json::Fields;
use crate::model::{
    ApiError, FieldLocation, ImageOptions, ImageSetting, ImageSize, Losses, Scale, Setting,
};

#[derive(Serialize)]
pub(super) struct Painting<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_format: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_compression: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    background: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moderation: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_images: Option<u64>,
}

/// What comes unasked is not asked for.
pub(super) fn read<'a>(fields: &mut Fields<'a, '_>) -> Result<ImageOptions<'a>, ApiError> {
    let mut word = |key: &str| {
        let word = fields.text(key);
        word.map(|word| word.filter(|word| word != "auto"))
    };
    Ok(ImageOptions {
        size: word("size")?.and_then(|size| ImageSize::of_pixels(&size)),
        quality: word("quality")?,
        file_format: word("output_format")?,
        background: word("background")?,
        moderation: word("moderation")?,
        compression: fields.u64("output_compression")?,
        partial_images: fields.u64("partial_images")?.filter(|count| *count > 0),
        mask: None,
    })
}

pub(super) fn write<'r>(picture: &'r ImageOptions<'_>, losses: &mut Losses) -> Painting<'r> {
    let size = picture.size.map(|size| match size {
        ImageSize::Pixels { width, height } => format!("{width}x{height}"),
        ImageSize::Shape { ratio, .. } => {
            let named = usual(ratio.unwrap_or((1, 1)));
            if !named.is_exactly(size) {
                let setting = Setting::Image(ImageSetting::Size);
                losses.approximated(FieldLocation::Setting(setting));
            }
            match named {
                ImageSize::Pixels { width, height } => format!("{width}x{height}"),
                ImageSize::Shape { .. } => "auto".to_owned(),
            }
        }
    });
    Painting {
        size,
        quality: picture.quality.as_deref(),
        output_format: picture.file_format.as_deref(),
        output_compression: picture.compression,
        background: picture.background.as_deref(),
        moderation: picture.moderation.as_deref(),
        partial_images: picture.partial_images,
    }
}

/// The tool makes three sizes.
const fn usual((width, height): (u32, u32)) -> ImageSize {
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
