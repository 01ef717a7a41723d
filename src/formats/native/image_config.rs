//! How large an image shall be: here by the name of a shape and of a scale.

use serde::Serialize;

use super::setting_rules::{ASPECT_RATIOS, IMAGE_SIZES};
use crate::model::{FieldLocation, ImageOptions, ImageSetting, ImageSize, Losses, Scale, Setting};

#[derive(Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    aspect_ratio: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_size: Option<&'static str>,
}

/// `16:9`
pub(super) fn ratio_of(name: &str) -> Option<(u32, u32)> {
    let (width, height) = name.split_once(':')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

pub(super) fn scale_of(name: &str) -> Option<Scale> {
    let at = IMAGE_SIZES.iter().position(|known| *known == name)?;
    Scale::ALL.get(at).copied()
}

/// The nearest that there is a name for.
pub(super) fn write(picture: &ImageOptions<'_>, losses: &mut Losses) -> Option<ImageConfig> {
    picture.drop_all_but_size(losses);
    let wanted = picture.size?;
    let ratios = ASPECT_RATIOS.iter().copied();
    let scales = IMAGE_SIZES.iter().copied().zip(Scale::ALL);
    let mut named = Vec::new();
    for aspect_ratio in ratios {
        for (image_size, scale) in scales.clone() {
            let shape = ImageSize::Shape {
                ratio: ratio_of(aspect_ratio),
                scale: Some(scale),
            };
            named.push((shape, (shape, aspect_ratio, image_size)));
        }
    }
    let (shape, aspect_ratio, image_size) = wanted.nearest(&named)?;
    if !shape.is_exactly(wanted) {
        let place = FieldLocation::Setting(Setting::Image(ImageSetting::Size));
        losses.approximated(place);
    }
    Some(ImageConfig {
        aspect_ratio: Some(aspect_ratio),
        // The first is what comes unasked, and not every model lets itself be asked.
        image_size: (image_size != IMAGE_SIZES[0]).then_some(image_size),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_become_the_nearest_shape_and_scale() {
        let written = |text: &str| {
            let picture = ImageOptions {
                size: ImageSize::of_pixels(text),
                ..ImageOptions::default()
            };
            let mut losses = Losses::default();
            let config = write(&picture, &mut losses).expect("a size");
            let config = serde_json::to_string(&config).expect("JSON");
            (config, losses.0.len())
        };
        for (size, config, lost) in [
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
            assert_eq!(written(size), (config.to_owned(), lost), "{size}");
        }
    }
}
