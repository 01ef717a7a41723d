//! Images, sound and documents as an upstream of this format takes them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::contents::Payload;
use crate::formats::base64_text;
use crate::formats::media_kind::{type_of_address, type_of_name};
use crate::formats::public_address::is_public_https;
use crate::model::{ApiError, FieldLocation, Losses, Media, Source};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    mime_type: &'a str,
    pub(super) data: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileData<'a> {
    mime_type: &'a str,
    file_uri: &'a str,
}

/// Names that mean the same, and the one to use.
const SAME: [(&str, &str); 3] = [
    ("audio/x-wav", "audio/wav"),
    ("audio/wave", "audio/wav"),
    ("audio/mp3", "audio/mpeg"),
];

const PLAIN: &str = "text/plain";
const PDF: &str = "application/pdf";
const JPEG: &str = "image/jpeg";

pub(super) fn write<'a>(
    media: &'a Media<'_>,
    place: &FieldLocation,
    losses: &mut Losses,
) -> Result<Payload<'a>, ApiError> {
    // Files have no names here.
    losses.dropped_if_present(media.name_location(place));
    let refuse = |message: &str| Err(ApiError::invalid(message).at_location(place.clone()));
    let inline = |mime_type, data| Payload::InlineData(InlineData { mime_type, data });
    match &media.source {
        Source::Base64(data) => {
            let named = || media.name.as_deref().and_then(type_of_name);
            match said(&media.mime).or_else(named) {
                Some(mime_type) => Ok(inline(mime_type, base64_text::standard(data))),
                None => refuse("the type of the data must be given for this model"),
            }
        }
        Source::Plain(text) => {
            let mime_type = said(&media.mime).filter(|mime| mime.starts_with("text/"));
            let data = STANDARD.encode(text.as_bytes());
            Ok(inline(mime_type.unwrap_or(PLAIN), data.into()))
        }
        Source::Url(address) if !is_public_https(address) => {
            refuse("for this model, media must be given as data or as a public https URL")
        }
        Source::Url(file_uri) => {
            let mime_type = said(&media.mime).or_else(|| of_address(file_uri, &media.mime));
            if mime_type.is_none() {
                losses.approximated(place.clone());
            }
            Ok(Payload::FileData(FileData {
                mime_type: mime_type.unwrap_or_else(|| likely(&media.mime)),
                file_uri,
            }))
        }
        Source::File(_) => refuse("the upstream of this model cannot read stored files"),
    }
}

/// The type as the client gave it, unless it left it open.
fn said(mime: &str) -> Option<&str> {
    let same = SAME.iter().find(|(other, _)| mime == *other);
    let mime = same.map_or(mime, |(_, usual)| usual);
    (mime.contains('/') && !mime.ends_with('*')).then_some(mime)
}

/// By the end of the path, as far as it agrees with what else is known of the type.
fn of_address(address: &str, mime: &str) -> Option<&'static str> {
    type_of_address(address).filter(|found| mime != "image/*" || found.starts_with("image/"))
}

fn likely(mime: &str) -> &'static str {
    match mime {
        "application/*" => PDF,
        _ => JPEG,
    }
}
