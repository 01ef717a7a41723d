//! The JSON response: images as base64 or URLs, and their usage.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

use super::Images;
use super::image_header::{ImageHeader, decode_base64_header};
use super::usage::{ImageUsage, RawImageUsage, decode_usage, encode_usage};
use crate::formats::base64_text;
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{ResponseCodec, ResponseOptions, chat, decode_response_body, missing_content};
use crate::json::{RawJson, from_json};
use crate::model::{
    ApiError, Choice, Finish, Losses, Media, Part, PartKind, Response, Source, Text, truncated,
};

from_json! {
    /// A response of an upstream.
    pub(super) struct RawImageResponse<'a> {
        "created" => pub(super) created: Option<i64>,
        "data" => pub(super) data: Option<Vec<RawImage<'a>>>,
        "usage" => pub(super) usage: Option<RawImageUsage>,
        "error" => pub(super) error: Option<RawJson<'a>>,
    }
}

from_json! {
    /// One image of a response.
    pub(super) struct RawImage<'a> {
        "b64_json" => pub(super) b64_json: Option<RawJson<'a>>,
        "url" => pub(super) url: Option<RawJson<'a>>,
    }
}

impl RawImage<'_> {
    pub(super) const fn is_present(&self) -> bool {
        self.b64_json.is_some() || self.url.is_some()
    }
}

/// The URLs of a response's images, with their ranges in the body, quotes included.
pub fn image_urls(body: &[u8]) -> Vec<(Range<usize>, String)> {
    let response: Option<RawImageResponse<'_>> = decode_response_body(body).ok();
    let images = response.and_then(|response| response.data);
    let urls = images.unwrap_or_default().into_iter();
    let urls = urls.filter_map(|image| image.url);
    let urls = urls.filter_map(|raw| Some((raw.range_in(body), raw.text()?.into_owned())));
    urls.collect()
}

/// Decodes an image of a response or of a stream.
pub(super) fn decode_image<'a>(
    b64_json: Option<RawJson<'a>>,
    url: Option<RawJson<'a>>,
) -> Option<Media<'a>> {
    let (source, mime) = match b64_json.and_then(RawJson::text) {
        Some(data) => {
            let header = decode_base64_header(&data);
            let mime = header.map_or("image/png", |header| header.file_type.mime());
            (Source::Base64(data), mime)
        }
        None => (Source::Url(url.and_then(RawJson::text)?), "image/*"),
    };
    Some(Media {
        mime: mime.into(),
        source,
        name: None,
        detail: None,
    })
}

impl ResponseCodec for Images {
    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        _losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        let response: RawImageResponse<'_> = decode_response_body(body)?;
        let Some(data) = response.data else {
            return Err(match response.error {
                Some(_) => chat::decode_error(200, body),
                None => missing_content(),
            });
        };
        let images: Vec<_> = data
            .into_iter()
            .filter_map(|image| decode_image(image.b64_json, image.url))
            .map(|media| Part {
                kind: PartKind::Media(media),
                at: None,
            })
            .collect();
        if images.is_empty() {
            return Err(missing_content());
        }
        let created = response.created.unwrap_or_default();
        Ok(Response {
            // Responses of this format have no id, but other formats need one.
            id: format!("img{created}x{}", body.len()).into(),
            model: Text::default(),
            created,
            choices: vec![Choice {
                parts: images,
                citations: Vec::new(),
                logprobs: Vec::new(),
                finish: Finish::Stop,
            }],
            usage: response.usage.as_ref().map(decode_usage),
        })
    }

    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        _losses: &mut Losses,
    ) -> Vec<u8> {
        let properties = images(response).next().map(ImageProperties::of);
        let body = ImageResponse {
            created: match response.created {
                0 => options.created_at,
                created => created,
            },
            properties: properties.unwrap_or_default(),
            data: images(response).filter_map(encode_image).collect(),
            usage: response.usage.map(encode_usage),
        };
        to_json_bytes(&body, response.size())
    }

    /// Refuses a response without an image, whatever text it has.
    fn check_response(&self, response: &Response<'_>) -> Result<(), ApiError> {
        if images(response).next().is_some() {
            return Ok(());
        }
        let mut text = String::new();
        let mut filtered = false;
        for choice in &response.choices {
            if let Finish::Filtered(reason) = &choice.finish {
                filtered = true;
                text.push_str(reason.as_deref().unwrap_or_default());
            }
            filtered |= choice.finish == Finish::Refused;
            for part in &choice.parts {
                if let PartKind::Text(part) | PartKind::Refusal(part) = &part.kind {
                    text.push_str(part);
                }
            }
        }
        Err(no_image(filtered, &text))
    }
}

/// A response to a client.
#[derive(Serialize)]
struct ImageResponse<'a> {
    created: i64,
    #[serde(flatten)]
    properties: ImageProperties,
    data: Vec<EncodedImage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ImageUsage>,
}

/// One image of a response or of a stream.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct EncodedImage<'a> {
    b64_json: Option<Cow<'a, str>>,
    url: Option<&'a str>,
}

/// Encodes an image; `None` if the media is no image data.
pub(super) fn encode_image<'a>(media: &'a Media<'_>) -> Option<EncodedImage<'a>> {
    let (b64_json, url) = match &media.source {
        Source::Base64(data) => (Some(base64_text::to_standard(data)), None),
        Source::Url(url) => (None, Some(&**url)),
        Source::File(_) | Source::Plain(_) => return None,
    };
    Some(EncodedImage { b64_json, url })
}

/// The properties of an image that its header shows; unknown ones are left out.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Default)]
pub(super) struct ImageProperties {
    background: Option<&'static str>,
    output_format: Option<&'static str>,
    size: Option<String>,
}

impl ImageProperties {
    pub(super) fn of(media: &Media<'_>) -> ImageProperties {
        let Source::Base64(data) = &media.source else {
            return ImageProperties::default();
        };
        let Some(ImageHeader {
            file_type,
            size,
            opaque,
        }) = decode_base64_header(data)
        else {
            return ImageProperties::default();
        };
        ImageProperties {
            background: opaque.then_some("opaque"),
            output_format: Some(file_type.output_format()),
            size: size.map(|(width, height)| format!("{width}x{height}")),
        }
    }
}

/// The images of a response, of all its choices.
fn images<'a>(response: &'a Response<'_>) -> impl Iterator<Item = &'a Media<'a>> {
    let parts = response.choices.iter().flat_map(|choice| &choice.parts);
    parts.filter_map(|part| match &part.kind {
        PartKind::Media(media) if media.mime.starts_with("image/") => Some(media),
        _ => None,
    })
}

/// The error for a response without an image; `text` is what the model answered instead.
pub(super) fn no_image(filtered: bool, text: &str) -> ApiError {
    let (message, code) = match filtered {
        true => ("the image was refused", "content_policy_violation"),
        false => ("the model answered without an image", "no_image"),
    };
    let text = truncated(text.trim());
    let message = match &*text {
        "" => message.to_owned(),
        text => format!("{message}: {text}"),
    };
    let mut api_error = ApiError::invalid(message).at("prompt");
    api_error.code = Some(code.to_owned());
    api_error
}
