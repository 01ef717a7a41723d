//! `generationConfig.imageConfig`: the aspect ratio and the size of generated images.

use serde::Serialize;

use super::enum_values::{ASPECT_RATIOS, IMAGE_SIZES};
use super::field_names;
use crate::json::Fields;
use crate::model::{
    ApiError, FieldLocation, ImageOptions, ImageSetting, ImageSize, Losses, Scale, Setting,
};

/// Takes `imageConfig` out of a `generationConfig` and decodes it.
pub(super) fn decode_image_config(
    fields: &mut Fields<'_, '_>,
    losses: &mut Losses,
) -> Result<Option<ImageSize>, ApiError> {
    let Some(node) = field_names::take(fields, field_names::IMAGE_CONFIG) else {
        return Ok(None);
    };
    node.fields(|mut fields| {
        let ratio = field_names::take_enum(&mut fields, field_names::ASPECT_RATIO, ASPECT_RATIOS);
        let scale = field_names::take_enum(&mut fields, field_names::IMAGE_SIZE, IMAGE_SIZES);
        fields.finish(losses);
        let size = ImageSize::Shape {
            ratio: ratio.and_then(decode_aspect_ratio),
            scale: scale.and_then(decode_image_size),
        };
        Ok((ratio.is_some() || scale.is_some()).then_some(size))
    })
}

/// The `imageConfig` of a request to an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageConfig {
    aspect_ratio: Option<&'static str>,
    image_size: Option<&'static str>,
}

/// Encodes the requested size as the nearest pair of aspect ratio and image size.
pub(super) fn encode_image_config(
    options: &ImageOptions<'_>,
    losses: &mut Losses,
) -> Option<ImageConfig> {
    options.drop_all_but_size(losses);
    let requested = options.size?;
    let ratios = ASPECT_RATIOS.iter().copied();
    let scales = IMAGE_SIZES.iter().copied().zip(Scale::ALL);
    let mut candidates = Vec::new();
    for aspect_ratio in ratios {
        for (image_size, scale) in scales.clone() {
            let shape = ImageSize::Shape {
                ratio: decode_aspect_ratio(aspect_ratio),
                scale: Some(scale),
            };
            candidates.push((shape, (shape, aspect_ratio, image_size)));
        }
    }
    let (shape, aspect_ratio, image_size) = requested.nearest(&candidates)?;
    if !shape.is_exactly(requested) {
        let location = FieldLocation::Setting(Setting::Image(ImageSetting::Size));
        losses.approximated(location);
    }
    Some(ImageConfig {
        aspect_ratio: Some(aspect_ratio),
        // The first size is the default, and some models refuse the field.
        image_size: (image_size != IMAGE_SIZES[0]).then_some(image_size),
    })
}

/// Decodes a ratio like `16:9`.
fn decode_aspect_ratio(name: &str) -> Option<(u32, u32)> {
    let (width, height) = name.split_once(':')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

fn decode_image_size(name: &str) -> Option<Scale> {
    let index = IMAGE_SIZES.iter().position(|known| *known == name)?;
    Scale::ALL.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_become_the_nearest_aspect_ratio_and_image_size() {
        let encoded = |text: &str| {
            let options = ImageOptions {
                size: ImageSize::of_pixels(text),
                ..ImageOptions::default()
            };
            let mut losses = Losses::default();
            let config = encode_image_config(&options, &mut losses).expect("a size");
            let config = serde_json::to_string(&config).expect("JSON");
            (config, losses.0.len())
        };
        for (size, config, losses) in [
            ("1024x1024", r#"{"aspectRatio":"1:1"}"#, 0),
            ("2048x2048", r#"{"aspectRatio":"1:1","imageSize":"2K"}"#, 0),
            ("4096x4096", r#"{"aspectRatio":"1:1","imageSize":"4K"}"#, 0),
            ("512x512", r#"{"aspectRatio":"1:1"}"#, 1),
            ("1536x1024", r#"{"aspectRatio":"3:2"}"#, 1),
            ("1024x1536", r#"{"aspectRatio":"2:3"}"#, 1),
            ("1920x1080", r#"{"aspectRatio":"16:9"}"#, 1),
            ("3840x2160", r#"{"aspectRatio":"16:9","imageSize":"2K"}"#, 1),
            ("100x1000", r#"{"aspectRatio":"1:8"}"#, 1),
        ] {
            assert_eq!(encoded(size), (config.to_owned(), losses), "{size}");
        }
    }
}
