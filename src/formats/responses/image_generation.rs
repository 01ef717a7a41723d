//! Image generation: the settings of the tool, and the `image_generation_call` items.

use serde::Serialize;

use super::lenient_object::LenientObject;
use crate::formats::tool_rounds::decode_rounds;
use crate::json::{DecodeResult, Fields, FromJson, JsonReader, RawJson};
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

/// Returns the most images of one call of the tool for images: the largest `n` that stands anywhere in a body.
pub(super) fn max_images_per_call(body: &[u8]) -> u64 {
    let mut most = 1;
    let text = str::from_utf8(body).unwrap_or_default();
    // What cannot be read no upstream reads either.
    let _ = find_largest_count(&mut JsonReader::new(text), &mut most);
    most
}

fn find_largest_count(reader: &mut JsonReader<'_>, most: &mut u64) -> DecodeResult {
    match reader.peek() {
        Some(b'{') => reader.object(|reader, key| {
            let is_count =
                key.eq_ignore_ascii_case("n") && !matches!(reader.peek(), Some(b'{' | b'['));
            if !is_count {
                return find_largest_count(reader, most);
            }
            let mut count = RawJson::default();
            count.decode(reader)?;
            *most = decode_rounds(Some(count)).unwrap_or_default().max(*most);
            Ok(())
        }),
        Some(b'[') => reader.array(|reader| find_largest_count(reader, most)),
        _ => reader.skip(),
    }
}

#[cfg(test)]
mod tests {
    use super::max_images_per_call;

    #[test]
    fn a_call_may_make_several_images() {
        for (tool, images) in [
            (r#"{"type":"image_generation"}"#, 1),
            (r#"{"type":"image_generation","n":10}"#, 10),
            (r#"{"type":"image_generation","N":"3","n":2.0}"#, 3),
            (r#"{"type":"image_generation","n":null}"#, 1),
            (
                r#"{"type":"function","parameters":{"properties":{"n":{"type":"integer"}}}}"#,
                1,
            ),
        ] {
            let body = format!(r#"{{"input":[{{"tools":[{tool}]}}]}}"#);
            assert_eq!(max_images_per_call(body.as_bytes()), images, "{tool}");
        }
    }
}
