//! The parts of a message or of a tool's output, for an upstream of this format.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::formats::base64_text;
use crate::formats::media_kind::MediaKind;
use crate::model::{ApiError, Detail, FieldLocation, Losses, Media, Source, Text};

/// A string where one text is all there is.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'r> {
    Text(&'r str),
    Parts(Vec<Part<'r>>),
}

impl<'r> Content<'r> {
    pub(super) fn of(parts: Vec<Part<'r>>) -> Content<'r> {
        match parts.as_slice() {
            [] => Content::Text(""),
            [Part::InputText { text } | Part::OutputText { text, .. }] => Content::Text(text),
            _ => Content::Parts(parts),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'r> {
    InputText {
        text: &'r str,
    },
    OutputText {
        text: &'r str,
        annotations: [(); 0],
    },
    Refusal {
        refusal: &'r str,
    },
    InputImage {
        #[serde(flatten)]
        image: Image<'r>,
        detail: &'static str,
    },
    InputFile(File<'r>),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Image<'r> {
    ImageUrl(Address<'r>),
    FileId(&'r str),
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum File<'r> {
    Data {
        filename: Text<'r>,
        file_data: Address<'r>,
    },
    Url {
        file_url: &'r str,
    },
    Stored {
        file_id: &'r str,
    },
}

/// Data are written behind their type without being copied together first.
pub(super) enum Address<'r> {
    Url(&'r str),
    Data { mime: &'r str, base64: Text<'r> },
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Url(url) => out.write_str(url),
            Address::Data { mime, base64 } => {
                out.write_str("data:")?;
                out.write_str(mime)?;
                out.write_str(";base64,")?;
                out.write_str(base64)
            }
        }
    }
}

impl Serialize for Address<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What media are to this format; it hears and sees nothing that moves.
enum Kind {
    Image,
    File,
    Neither,
}

fn kind_of(media: &Media<'_>, place: &FieldLocation, losses: &mut Losses) -> Kind {
    let found = match (MediaKind::of_type(&media.mime), &media.source) {
        // Only images and documents may be pointed at without saying what they are.
        (MediaKind::Unknown, Source::Url(url)) => match MediaKind::of_address(url) {
            MediaKind::Unknown => {
                losses.approximated(place.clone());
                MediaKind::Image
            }
            found => found,
        },
        (found, _) => found,
    };
    match found {
        MediaKind::Image => Kind::Image,
        MediaKind::File => Kind::File,
        MediaKind::Audio | MediaKind::Video | MediaKind::Unknown => Kind::Neither,
    }
}

pub(super) fn write_media<'r>(
    media: &'r Media<'_>,
    place: FieldLocation,
    losses: &mut Losses,
) -> Result<Part<'r>, ApiError> {
    if let Source::Plain(text) = &media.source {
        losses.approximated(place);
        return Ok(Part::InputText { text });
    }
    match kind_of(media, &place, losses) {
        Kind::Image => {
            losses.dropped_if_present(media.name_location(&place));
            Ok(write_image(media))
        }
        Kind::File => Ok(Part::InputFile(write_file(media, place, losses))),
        Kind::Neither => {
            let kind = match media.mime.as_ref() {
                "" => "this kind",
                mime => mime,
            };
            let message = format!("the upstream of this model takes no media of {kind}");
            Err(ApiError::invalid(message).at_location(place))
        }
    }
}

fn write_image<'r>(media: &'r Media<'_>) -> Part<'r> {
    Part::InputImage {
        image: match &media.source {
            Source::Base64(data) | Source::Plain(data) => Image::ImageUrl(data_url(media, data)),
            Source::Url(url) => Image::ImageUrl(Address::Url(url)),
            Source::File(id) => Image::FileId(id),
        },
        detail: match media.detail {
            None | Some(Detail::Auto) => "auto",
            Some(Detail::Low) => "low",
            Some(Detail::High) => "high",
            Some(Detail::Original) => "original",
        },
    }
}

fn write_file<'r>(media: &'r Media<'_>, place: FieldLocation, losses: &mut Losses) -> File<'r> {
    match &media.source {
        Source::Base64(data) | Source::Plain(data) => File::Data {
            filename: match &media.name {
                Some(name) => Text::Borrowed(name),
                // The format takes no data without a name.
                None => {
                    losses.added(place);
                    format!("file.{}", extension_of(&media.mime)).into()
                }
            },
            file_data: data_url(media, data),
        },
        // A name beside an address or an id is refused: "mutually exclusive parameters".
        Source::Url(address) | Source::File(address) => {
            losses.dropped_if_present(media.name_location(&place));
            match media.source {
                Source::Url(_) => File::Url { file_url: address },
                _ => File::Stored { file_id: address },
            }
        }
    }
}

fn data_url<'r>(media: &'r Media<'_>, data: &'r str) -> Address<'r> {
    Address::Data {
        mime: &media.mime,
        base64: base64_text::standard(data),
    }
}

/// Types whose usual ending is not their second half.
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

fn extension_of(mime: &str) -> &str {
    let known = EXTENSIONS.iter().find(|(known, _)| *known == mime);
    let half = mime.split_once('/').map_or("", |(_, half)| half);
    let plain = !half.is_empty() && half.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match known {
        Some((_, extension)) => extension,
        None if plain => half,
        None => "bin",
    }
}

#[cfg(test)]
#[path = "tests/content_out.rs"]
mod tests;
