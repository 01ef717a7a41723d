//! `inlineData` and `fileData`: images, audio and documents.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::field_names;
use crate::formats::base64_text;
use crate::formats::media_kind::{lowercase_mime, mime_of_filename, mime_of_url};
use crate::formats::public_address::is_public_https;
use crate::json::Fields;
use crate::model::{ApiError, FieldLocation, Losses, Media, Source, Text};

/// MIME types that mean the same, and the one that is sent.
const MIME_ALIASES: [(&str, &str); 3] = [
    ("audio/x-wav", "audio/wav"),
    ("audio/wave", "audio/wav"),
    ("audio/mp3", "audio/mpeg"),
];

const PLAIN: &str = "text/plain";
const PDF: &str = "application/pdf";
const JPEG: &str = "image/jpeg";

/// Decodes `inlineData`.
pub(super) fn decode_inline_data<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Media<'a>, ApiError> {
    let mime = field_names::take_text(&mut fields, field_names::MIME_TYPE)?;
    let mime = lowercase_mime(fields.need("mimeType", mime)?);
    let data = fields.text("data")?.map(to_standard_base64);
    let data = fields.need("data", data)?;
    let name = field_names::take_text(&mut fields, field_names::DISPLAY_NAME)?;
    fields.finish(losses);
    // The other formats take text documents as text, not as base64.
    let text = mime.starts_with("text/").then(|| decode_text(&data));
    let source = match text.flatten() {
        Some(text) => Source::Plain(text.into()),
        None => Source::Base64(data),
    };
    Ok(Media {
        mime,
        source,
        name,
        detail: None,
    })
}

/// Converts base64 of either alphabet to the standard one with padding.
fn to_standard_base64(text: Text<'_>) -> Text<'_> {
    match base64_text::to_standard(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => Cow::Owned(clean),
    }
}

/// Decodes the text of a document; `None` if the bytes are not UTF-8.
fn decode_text(base64: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

/// Decodes `fileData`.
pub(super) fn decode_file_data<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Media<'a>, ApiError> {
    let mime = field_names::take_text(&mut fields, field_names::MIME_TYPE)?;
    let uri = field_names::take_text(&mut fields, field_names::FILE_URI)?;
    let uri = fields.need("fileUri", uri)?;
    let name = field_names::take_text(&mut fields, field_names::DISPLAY_NAME)?;
    fields.finish(losses);
    Ok(Media {
        mime: lowercase_mime(mime.unwrap_or_default()),
        source: Source::Url(uri),
        name,
        detail: None,
    })
}

/// The media of a part, as `inlineData` or `fileData`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum MediaPayload<'a> {
    InlineData(InlineData<'a>),
    FileData(FileData<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    pub(super) mime_type: &'a str,
    pub(super) data: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileData<'a> {
    pub(super) mime_type: &'a str,
    pub(super) file_uri: &'a str,
}

/// Encodes media for an upstream, which needs a MIME type and can fetch only public https URLs.
pub(super) fn encode_media<'a>(
    media: &'a Media<'_>,
    location: &FieldLocation,
    losses: &mut Losses,
) -> Result<MediaPayload<'a>, ApiError> {
    // Upstreams of this format take no file names.
    losses.dropped_if_present(media.name_location(location));
    let refuse = |message: &str| Err(ApiError::invalid(message).at_location(location.clone()));
    let inline = |mime_type, data| MediaPayload::InlineData(InlineData { mime_type, data });
    match &media.source {
        Source::Base64(data) => {
            let by_name = || media.name.as_deref().and_then(mime_of_filename);
            match concrete_mime_type(&media.mime).or_else(by_name) {
                Some(mime_type) => Ok(inline(mime_type, base64_text::to_standard(data))),
                None => refuse("the type of the data must be given for this model"),
            }
        }
        Source::Plain(text) => {
            let mime_type =
                concrete_mime_type(&media.mime).filter(|mime| mime.starts_with("text/"));
            let data = STANDARD.encode(text.as_bytes());
            Ok(inline(mime_type.unwrap_or(PLAIN), data.into()))
        }
        Source::Url(address) if !is_public_https(address) => {
            refuse("for this model, media must be given as data or as a public https URL")
        }
        Source::Url(file_uri) => {
            let by_address = || mime_type_of_address(file_uri, &media.mime);
            let mime_type = concrete_mime_type(&media.mime).or_else(by_address);
            if mime_type.is_none() {
                losses.approximated(location.clone());
            }
            Ok(MediaPayload::FileData(FileData {
                mime_type: mime_type.unwrap_or_else(|| default_mime_type(&media.mime)),
                file_uri,
            }))
        }
        Source::File(_) => refuse("the upstream of this model cannot read stored files"),
    }
}

/// The MIME type that the client sent; `None` for an open one like `image/*`.
fn concrete_mime_type(mime: &str) -> Option<&str> {
    let alias = MIME_ALIASES.iter().find(|(alias, _)| mime == *alias);
    let mime = alias.map_or(mime, |(_, preferred)| preferred);
    (mime.contains('/') && !mime.ends_with('*')).then_some(mime)
}

/// The MIME type by the extension of a URL's path, if it agrees with an open type like `image/*`.
fn mime_type_of_address(address: &str, mime: &str) -> Option<&'static str> {
    mime_of_url(address).filter(|found| mime != "image/*" || found.starts_with("image/"))
}

fn default_mime_type(mime: &str) -> &'static str {
    match mime {
        "application/*" => PDF,
        _ => JPEG,
    }
}
