//! The images and the mask of a request.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::image_header::{ImageHeader, decode_base64_header, decode_header};
use crate::formats::base64_text;
use crate::formats::media_url::MediaUrl;
use crate::json::Node;
use crate::model::{ApiError, ApiErrorKind, Json, Media, Source, Text, split_data_url};

/// The limit of one image, in bytes.
const MAX_BYTES: usize = 50 << 20;
/// The limit of an image's width and height, in pixels.
const MAX_SIDE: u32 = 16_384;

/// An image of a request.
pub(super) struct InputImage<'a> {
    source: InputImageSource<'a>,
    /// `None`: the image is given by reference, and nothing is known of it.
    pub(super) header: Option<ImageHeader>,
}

/// Where the data of an input image is.
pub(super) enum InputImageSource<'a> {
    /// A file of a multipart form.
    File(&'a [u8]),
    /// Base64, a URL or a file id.
    Json(Source<'a>),
}

impl<'a> InputImage<'a> {
    /// Checks an image by its first bytes, whatever file name or type the client gave.
    pub(super) fn new(source: InputImageSource<'a>, key: &str) -> Result<InputImage<'a>, ApiError> {
        let (length, header) = match &source {
            InputImageSource::File(bytes) => (bytes.len(), decode_header(bytes)),
            InputImageSource::Json(Source::Base64(text)) => {
                (text.len() / 4 * 3, decode_base64_header(text))
            }
            // The upstream fetches and checks it.
            InputImageSource::Json(_) => {
                return Ok(InputImage {
                    source,
                    header: None,
                });
            }
        };
        if length > MAX_BYTES {
            let message = format!("{key}: an image is larger than {MAX_BYTES} bytes");
            return Err(ApiError::new(ApiErrorKind::TooLarge, message).at(key));
        }
        let expected = "expected a PNG, JPEG, WebP or GIF file";
        let header = header.ok_or_else(|| invalid_image(key, expected))?;
        let is_wrong =
            |(width, height): (u32, u32)| width.max(height) > MAX_SIDE || width == 0 || height == 0;
        if header.size.is_some_and(is_wrong) {
            let expected = format!("expected sides of 1 to {MAX_SIDE} pixels");
            return Err(invalid_image(key, &expected));
        }
        Ok(InputImage {
            source,
            header: Some(header),
        })
    }

    /// Its length in the body, if it is there.
    pub(super) fn length(&self) -> Option<u64> {
        self.header?;
        match &self.source {
            InputImageSource::File(bytes) => Some(bytes.len() as u64),
            InputImageSource::Json(Source::Base64(data)) => Some(data.len() as u64),
            InputImageSource::Json(_) => None,
        }
    }

    pub(super) fn into_media(self) -> Media<'a> {
        Media {
            mime: self
                .header
                .map_or("", |header| header.file_type.mime())
                .into(),
            source: match self.source {
                InputImageSource::File(bytes) => Source::Base64(STANDARD.encode(bytes).into()),
                InputImageSource::Json(source) => source,
            },
            name: None,
            detail: None,
        }
    }
}

/// The error for an image that is not as `expected`.
pub(super) fn invalid_image(key: &str, expected: &str) -> ApiError {
    let mut api_error = ApiError::invalid(format!("{key}: {expected}")).at(key);
    api_error.code = Some("invalid_image".to_owned());
    api_error
}

/// Decodes an image of a JSON body: a URL, bare or in an object, or a file id.
pub(super) fn decode_json_image<'a>(node: Node<'a, '_>) -> Result<InputImage<'a>, ApiError> {
    let path = node.path.to_string();
    let expected = || invalid_image(&path, "expected an image as a data URL or an https URL");
    let source = match node.value {
        Json::Str(text) => image_source(text).ok_or_else(expected)?,
        Json::Object(_) => node.fields(|mut fields| {
            let (url, file) = (fields.text("image_url")?, fields.text("file_id")?);
            let url = url
                .map(|url| image_source(url).ok_or_else(expected))
                .transpose()?;
            url.or(file.map(Source::File)).ok_or_else(expected)
        })?,
        _ => return Err(expected()),
    };
    InputImage::new(InputImageSource::Json(source), &path)
}

/// The image behind a URL; `None` if the text is neither a data URL nor an https URL.
pub(super) fn image_source(url: Text<'_>) -> Option<Source<'_>> {
    if url.starts_with("https://") {
        return Some(Source::Url(url));
    }
    let data = match url {
        Text::Borrowed(url) => Text::Borrowed(split_data_url(url)?.1),
        Text::Owned(url) => Text::Owned(split_data_url(&url)?.1.to_owned()),
    };
    Some(Source::Base64(match data {
        Text::Borrowed(data) => base64_text::to_standard(data),
        Text::Owned(data) => Text::Owned(base64_text::to_standard(&data).into_owned()),
    }))
}

/// An image of a request to an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct EncodedInputImage<'a> {
    image_url: Option<MediaUrl<'a>>,
    file_id: Option<&'a str>,
}

/// Encodes an image; `None` if the media is a plain text.
pub(super) fn encode_input_image<'a>(media: &'a Media<'_>) -> Option<EncodedInputImage<'a>> {
    let (image_url, file_id) = match &media.source {
        Source::Url(url) => (Some(MediaUrl::Url(url)), None),
        Source::Base64(data) => {
            let mime = match &*media.mime {
                "" | "image/*" => "image/png",
                mime => mime,
            };
            let data: Cow<'_, str> = base64_text::to_standard(data);
            (Some(MediaUrl::Data { mime, data }), None)
        }
        Source::File(id) => (None, Some(&**id)),
        Source::Plain(_) => return None,
    };
    Some(EncodedInputImage { image_url, file_id })
}
