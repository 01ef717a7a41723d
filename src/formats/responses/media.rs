//! Media in content: images and files, by value, by URL or by the id of an uploaded file.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::formats::base64_text;
use crate::formats::media_kind::{MediaKind, lowercase_mime};
use crate::json::{Fields, Node};
use crate::model::{ApiError, Detail, FieldLocation, Losses, Media, Source, Text, split_data_url};

/// The media types of an image and of a file whose type the request does not state.
const ANY_IMAGE: &str = "image/*";
const ANY_FILE: &str = "application/*";

/// Decodes an `input_image` part.
pub(super) fn decode_image<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    let detail = fields.node("detail").map(decode_detail).transpose()?;
    let url = fields
        .node("image_url")
        .map(|node| decode_url(node, ANY_IMAGE));
    let (mime, source) = match url.transpose()? {
        Some(found) => found,
        None => {
            let id = fields.text("file_id")?;
            let id = fields.need("image_url", id)?;
            (ANY_IMAGE.into(), Source::File(id))
        }
    };
    Ok(Media {
        mime,
        source,
        name: None,
        detail: detail.flatten(),
    })
}

/// The source of an `input_image` part as it is encoded.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ImageSource<'r> {
    ImageUrl(InputMediaUrl<'r>),
    FileId(&'r str),
}

/// Encodes where an image is.
pub(super) fn encode_image<'r>(media: &'r Media<'_>) -> ImageSource<'r> {
    match &media.source {
        Source::Base64(data) | Source::Plain(data) => ImageSource::ImageUrl(data_url(media, data)),
        Source::Url(url) => ImageSource::ImageUrl(InputMediaUrl::Url(url)),
        Source::File(id) => ImageSource::FileId(id),
    }
}

/// Decodes `detail`; `auto` is the default of every format.
fn decode_detail(node: Node<'_, '_>) -> Result<Option<Detail>, ApiError> {
    let path = node.path;
    Ok(match node.text()?.as_ref() {
        "auto" => None,
        "low" => Some(Detail::Low),
        "high" => Some(Detail::High),
        "original" => Some(Detail::Original),
        other => return Err(path.wrong_text("one of auto, low, high, original", other)),
    })
}

/// Encodes `detail`, which the format requires.
pub(super) const fn encode_detail(detail: Option<Detail>) -> &'static str {
    match detail {
        None | Some(Detail::Auto) => "auto",
        Some(Detail::Low) => "low",
        Some(Detail::High) => "high",
        Some(Detail::Original) => "original",
    }
}

/// Decodes an `input_file` part.
pub(super) fn decode_file<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    let name = fields.text("filename")?;
    let data = fields.node("file_data").map(decode_file_data).transpose()?;
    let url = fields
        .node("file_url")
        .map(|node| decode_url(node, ANY_FILE));
    let (mime, source) = match (data, url.transpose()?) {
        (Some(found), _) | (None, Some(found)) => found,
        (None, None) => {
            let id = fields.text("file_id")?;
            let id = fields.need("file_data", id)?;
            (ANY_FILE.into(), Source::File(id))
        }
    };
    Ok(Media {
        mime,
        source,
        name,
        detail: None,
    })
}

fn decode_file_data<'a>(node: Node<'a, '_>) -> Result<(Text<'a>, Source<'a>), ApiError> {
    let path = node.path;
    split_data_url_text(node.text()?).map_err(|_| path.wrong("a base64 data URL"))
}

/// An `input_file` part as it is encoded.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum FileSource<'r> {
    Data {
        filename: Text<'r>,
        file_data: InputMediaUrl<'r>,
    },
    Url {
        file_url: &'r str,
    },
    Stored {
        file_id: &'r str,
    },
}

/// Encodes an `input_file` part.
pub(super) fn encode_file<'r>(
    media: &'r Media<'_>,
    location: FieldLocation,
    losses: &mut Losses,
) -> FileSource<'r> {
    match &media.source {
        Source::Base64(data) | Source::Plain(data) => FileSource::Data {
            filename: match &media.name {
                Some(name) => Text::Borrowed(name),
                // The format requires a name beside data.
                None => {
                    losses.added(location);
                    format!("file.{}", extension_of(&media.mime)).into()
                }
            },
            file_data: data_url(media, data),
        },
        // Upstreams refuse a name beside a URL or an id: "mutually exclusive parameters".
        Source::Url(text) | Source::File(text) => {
            losses.dropped_if_present(media.name_location(&location));
            match media.source {
                Source::Url(_) => FileSource::Url { file_url: text },
                _ => FileSource::Stored { file_id: text },
            }
        }
    }
}

/// Decodes a URL. A data URL states the media type; of any other URL it is `kind`.
fn decode_url<'a>(
    node: Node<'a, '_>,
    kind: &'static str,
) -> Result<(Text<'a>, Source<'a>), ApiError> {
    let path = node.path;
    match split_data_url_text(node.text()?) {
        Ok(found) => Ok(found),
        Err(url) if url.starts_with("data:") => Err(path.wrong("a URL, or a base64 data URL")),
        Err(url) => Ok((kind.into(), Source::Url(url))),
    }
}

/// Splits a base64 data URL into media type and data; `Err` returns the text that is none.
fn split_data_url_text(text: Text<'_>) -> Result<(Text<'_>, Source<'_>), Text<'_>> {
    match text {
        Text::Borrowed(borrowed) => match split_data_url(borrowed) {
            Some((mime, data)) => Ok((lowercase_mime(mime.into()), Source::Base64(data.into()))),
            None => Err(text),
        },
        Text::Owned(owned) => match split_data_url(&owned) {
            Some((mime, data)) => Ok((
                mime.to_ascii_lowercase().into(),
                Source::Base64(data.to_owned().into()),
            )),
            None => Err(Text::Owned(owned)),
        },
    }
}

/// A URL as it is encoded; a data URL is written part by part, without a copy of the data.
pub(super) enum InputMediaUrl<'r> {
    Url(&'r str),
    Data { mime: &'r str, base64: Text<'r> },
}

impl fmt::Display for InputMediaUrl<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputMediaUrl::Url(url) => out.write_str(url),
            InputMediaUrl::Data { mime, base64 } => {
                out.write_str("data:")?;
                out.write_str(mime)?;
                out.write_str(";base64,")?;
                out.write_str(base64)
            }
        }
    }
}

impl Serialize for InputMediaUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn data_url<'r>(media: &'r Media<'_>, data: &'r str) -> InputMediaUrl<'r> {
    InputMediaUrl::Data {
        mime: &media.mime,
        base64: base64_text::to_standard(data),
    }
}

/// What media are in this format, which has neither audio nor video.
pub(super) enum InputMediaKind {
    Image,
    File,
    Unsupported,
}

/// Finds out what media are in this format.
pub(super) fn kind_of(
    media: &Media<'_>,
    location: &FieldLocation,
    losses: &mut Losses,
) -> InputMediaKind {
    let found = match (MediaKind::of_mime(&media.mime), &media.source) {
        // Formats that name no media type for a URL mean an image or a document.
        (MediaKind::Unknown, Source::Url(url)) => match MediaKind::of_url(url) {
            MediaKind::Unknown => {
                losses.approximated(location.clone());
                MediaKind::Image
            }
            found => found,
        },
        (found, _) => found,
    };
    match found {
        MediaKind::Image => InputMediaKind::Image,
        MediaKind::File => InputMediaKind::File,
        MediaKind::Audio | MediaKind::Video | MediaKind::Unknown => InputMediaKind::Unsupported,
    }
}

/// File name extensions of media types whose subtype is not the extension.
const EXTENSIONS: [(&str, &str); 7] = [
    ("text/plain", "txt"),
    ("text/markdown", "md"),
    ("application/msword", "doc"),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "pptx",
    ),
    ("application/octet-stream", "bin"),
];

/// The file name extension of a media type.
fn extension_of(mime: &str) -> &str {
    let known = EXTENSIONS.iter().find(|(known, _)| *known == mime);
    let subtype = mime.split_once('/').map_or("", |(_, subtype)| subtype);
    let plain = !subtype.is_empty() && subtype.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match known {
        Some((_, extension)) => extension,
        None if plain => subtype,
        None => "bin",
    }
}
