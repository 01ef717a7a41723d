//! Content blocks of a request, and the media among them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::response::Input;
use crate::formats::base64_text;
use crate::formats::media_kind::{MediaKind, type_of_address};
use crate::model::{self, ApiError, FieldLocation, Losses, Media, PartField};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 {
        media_type: &'a str,
        data: Cow<'a, str>,
    },
    Text {
        media_type: &'static str,
        data: Cow<'a, str>,
    },
    Url {
        url: &'a str,
    },
}

/// One text is a string, anything else a list.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

impl<'a> Content<'a> {
    /// `None`: there is nothing.
    pub(super) fn of(blocks: Vec<Block<'a>>) -> Option<Content<'a>> {
        match blocks.as_slice() {
            [] => None,
            [Block::Text { text }] => Some(Content::Text(text)),
            _ => Some(Content::Blocks(blocks)),
        }
    }
}

const PDF: &str = "application/pdf";
const PLAIN: &str = "text/plain";

/// What a type of media is to this format.
enum Kind {
    /// Of a type that goes on the wire as it is, or else is only pointed at.
    Image(Option<&'static str>),
    Pdf,
    Text,
    /// The client did not say.
    Any,
}

fn kind_of(mime: &str) -> Option<Kind> {
    let essence = mime.split(';').next().unwrap_or(mime).trim();
    Some(match essence.to_ascii_lowercase().as_str() {
        "image/jpeg" | "image/jpg" => Kind::Image(Some("image/jpeg")),
        "image/png" => Kind::Image(Some("image/png")),
        "image/gif" => Kind::Image(Some("image/gif")),
        "image/webp" => Kind::Image(Some("image/webp")),
        PDF => Kind::Pdf,
        "application/json" => Kind::Text,
        "" | "application/*" => Kind::Any,
        other if other.starts_with("image/") => Kind::Image(None),
        other if other.starts_with("text/") => Kind::Text,
        _ => return None,
    })
}

pub(super) fn media<'a>(
    media: &'a Media<'_>,
    place: &FieldLocation,
    losses: &mut Losses,
) -> Result<Block<'a>, ApiError> {
    if media.detail.is_some() {
        losses.dropped(place.field(PartField::Detail));
    }
    let block = block_of(media, place, losses)?;
    // Only documents have names.
    if matches!(block, Block::Image { .. }) {
        losses.dropped_if_present(media.name_location(place));
    }
    Ok(block)
}

fn block_of<'a>(
    media: &'a Media<'_>,
    place: &FieldLocation,
    losses: &mut Losses,
) -> Result<Block<'a>, ApiError> {
    let title = media.name.as_deref();
    let document = |source| Block::Document { source, title };
    let refuse = |what: &str| Err(ApiError::invalid(what).at_location(place.clone()));
    match (kind_of(&media.mime), &media.source) {
        (_, model::Source::File(_)) => {
            refuse("the upstream of this model cannot read stored files")
        }
        (_, model::Source::Plain(text)) => Ok(document(plain(Cow::Borrowed(text)))),
        (Some(Kind::Image(Some(media_type))), model::Source::Base64(data)) => Ok(Block::Image {
            source: base64(media_type, data),
        }),
        (Some(Kind::Pdf), model::Source::Base64(data)) => Ok(document(base64(PDF, data))),
        (Some(Kind::Text), model::Source::Base64(data)) => match decoded(data) {
            Some(text) => Ok(document(plain(Cow::Owned(text)))),
            None => refuse("a text document must be UTF-8"),
        },
        (Some(Kind::Image(_)), model::Source::Url(url)) => Ok(Block::Image {
            source: Source::Url { url },
        }),
        (Some(Kind::Pdf), model::Source::Url(url)) => Ok(document(Source::Url { url })),
        (Some(Kind::Any), model::Source::Url(url)) => pointed_at(url, media, place, losses),
        (_, model::Source::Base64(_) | model::Source::Url(_)) => {
            let mime = &media.mime;
            refuse(&format!(
                "the upstream of this model does not take {mime}: only JPEG, PNG, GIF and WebP \
                 images, PDF and text"
            ))
        }
    }
}

/// Nothing but the address says what it is; where that does not either, it is taken for what such
/// parts mostly hold.
fn pointed_at<'a>(
    url: &'a str,
    media: &'a Media<'_>,
    place: &FieldLocation,
    losses: &mut Losses,
) -> Result<Block<'a>, ApiError> {
    let is_file = !media.mime.is_empty();
    let known = type_of_address(url);
    let is_image = match (MediaKind::of_address(url), known) {
        (MediaKind::Image, _) => true,
        (_, Some(PDF)) => false,
        (MediaKind::Unknown, _) => !is_file,
        (MediaKind::File, None) if is_file => false,
        _ => {
            let message = "the upstream of this model takes only images and PDF by their address";
            return Err(ApiError::invalid(message).at_location(place.clone()));
        }
    };
    if known.is_none() {
        losses.approximated(place.clone());
    }
    let source = Source::Url { url };
    Ok(if is_image {
        Block::Image { source }
    } else {
        let title = media.name.as_deref();
        Block::Document { source, title }
    })
}

fn plain(data: Cow<'_, str>) -> Source<'_> {
    Source::Text {
        media_type: PLAIN,
        data,
    }
}

fn base64<'a>(media_type: &'static str, data: &'a str) -> Source<'a> {
    Source::Base64 {
        media_type,
        data: base64_text::standard(data),
    }
}

fn decoded(data: &str) -> Option<String> {
    let bytes = STANDARD.decode(&*base64_text::standard(data)).ok()?;
    String::from_utf8(bytes).ok()
}
