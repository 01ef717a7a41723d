//! Images, sound and files as content parts of a message.

use std::borrow::Cow;

use serde::Serialize;

use super::paths::refuse;
use crate::formats::address::Address;
use crate::formats::base64_text;
use crate::formats::media_kind::MediaKind;
use crate::model::{ApiError, Detail, FieldLocation, Losses, Media, Source};

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Image<'a> },
    InputAudio { input_audio: Audio<'a> },
    File { file: File<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Image<'a> {
    url: Address<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Audio<'a> {
    data: Cow<'a, str>,
    format: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Address<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<Cow<'a, str>>,
}

/// A part of a user's message; what this format cannot say is refused, never left out.
pub(super) fn encode<'a>(
    media: &'a Media<'_>,
    place: &FieldLocation,
    losses: &mut Losses,
) -> Result<ContentPart<'a>, ApiError> {
    let part = part_of(media, place, losses)?;
    // Only files have names.
    if matches!(part, ContentPart::ImageUrl { .. }) {
        losses.dropped_if_present(media.name_location(place));
    }
    Ok(part)
}

fn part_of<'a>(
    media: &'a Media<'_>,
    place: &FieldLocation,
    losses: &mut Losses,
) -> Result<ContentPart<'a>, ApiError> {
    match (&media.source, MediaKind::of_type(&media.mime)) {
        (Source::Plain(text), _) => {
            losses.approximated(place.clone());
            Ok(ContentPart::Text { text })
        }
        (Source::Url(url), MediaKind::Image) => Ok(image(Address::Url(url), media)),
        (Source::Url(url), MediaKind::Unknown) => match MediaKind::of_address(url) {
            MediaKind::Image => Ok(image(Address::Url(url), media)),
            MediaKind::Unknown => {
                losses.approximated(place.clone());
                Ok(image(Address::Url(url), media))
            }
            _ => Err(refuse(place, "only pictures can be given as a URL")),
        },
        (Source::Url(_), _) => Err(refuse(place, "only pictures can be given as a URL")),
        (Source::Base64(data), MediaKind::Image) => Ok(image(inline(media, data), media)),
        (Source::Base64(data), MediaKind::Audio) => audio(&media.mime, data, place),
        (Source::Base64(data), MediaKind::File) => {
            let filename = media.name.as_deref().map(Cow::Borrowed);
            Ok(file(File {
                file_data: Some(inline(media, data)),
                file_id: None,
                filename: Some(filename.unwrap_or_else(|| {
                    losses.added(place.clone());
                    format!("file.{}", extension(&media.mime)).into()
                })),
            }))
        }
        (Source::File(id), MediaKind::File) => Ok(file(File {
            file_data: None,
            file_id: Some(id),
            filename: media.name.as_deref().map(Cow::Borrowed),
        })),
        (Source::File(_), _) => Err(refuse(place, "only documents can be given as a file's id")),
        (Source::Base64(_), MediaKind::Video) => Err(refuse(place, "video cannot be given")),
        (Source::Base64(_), MediaKind::Unknown) => Err(refuse(place, "data needs a media type")),
    }
}

fn inline<'a>(media: &'a Media<'_>, data: &'a str) -> Address<'a> {
    Address::Data {
        mime: &media.mime,
        data: base64_text::standard(data),
    }
}

fn image<'a>(url: Address<'a>, media: &Media<'_>) -> ContentPart<'a> {
    let detail = media.detail.map(|detail| match detail {
        Detail::Auto => "auto",
        Detail::Low => "low",
        Detail::High => "high",
        Detail::Original => "original",
    });
    let image_url = Image { url, detail };
    ContentPart::ImageUrl { image_url }
}

const fn file(file: File<'_>) -> ContentPart<'_> {
    ContentPart::File { file }
}

fn audio<'a>(
    mime: &str,
    data: &'a str,
    place: &FieldLocation,
) -> Result<ContentPart<'a>, ApiError> {
    let format = match mime.split(';').next().unwrap_or(mime).trim() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        _ => return Err(refuse(place, "sound must be wav or mp3")),
    };
    let data = base64_text::standard(data);
    let input_audio = Audio { data, format };
    Ok(ContentPart::InputAudio { input_audio })
}

/// The usual ending of a file of this type.
fn extension(mime: &str) -> &'static str {
    match mime.split(';').next().unwrap_or(mime).trim() {
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/xml" | "text/xml" => "xml",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/markdown" => "md",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        mime if mime.starts_with("text/") => "txt",
        _ => "bin",
    }
}
