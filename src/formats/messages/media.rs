//! Image and document blocks.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::block_fields::{required_text, unexpected_block};
use super::blocks::{BlockSource, ContentBlock};
use crate::formats::base64_text;
use crate::formats::media_kind::{MediaKind, mime_of_url};
use crate::json::{Fields, Path};
use crate::model::{ApiError, FieldLocation, Json, Losses, Media, PartField, Source, Text};

const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
/// The type of an image that is given by its URL.
const ANY_IMAGE: &str = "image/*";
const PDF: &str = "application/pdf";
const PLAIN_TEXT: &str = "text/plain";

fn media<'a>(mime: impl Into<Text<'a>>, source: Source<'a>) -> Media<'a> {
    Media {
        mime: mime.into(),
        source,
        name: None,
        detail: None,
    }
}

/// Decodes the `source` of an image or a document; `decode` knows the types of source of each.
fn decode_source<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
    decode: impl FnOnce(&str, &mut Fields<'a, '_>, &mut Losses) -> Result<Media<'a>, ApiError>,
) -> Result<Media<'a>, ApiError> {
    let Some(node) = fields.node("source") else {
        return fields.need("source", None);
    };
    node.fields(|mut fields| {
        let kind = required_text(&mut fields, "type")?;
        let media = match kind.as_ref() {
            "file" => {
                let path = Path::Key(&fields.path, "file_id").to_string();
                let message =
                    format!("{path}: the upstream of this model cannot read stored files");
                return Err(ApiError::invalid(message).at(path));
            }
            kind => decode(kind, &mut fields, losses)?,
        };
        fields.finish(losses);
        Ok(media)
    })
}

/// Decodes an `image` block.
pub(super) fn decode_image<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Media<'a>, ApiError> {
    decode_source(fields, losses, |kind, source, _| match kind {
        "base64" => {
            let mime = decode_media_type(source, &IMAGE_TYPES)?;
            Ok(media(mime, Source::Base64(required_text(source, "data")?)))
        }
        "url" => Ok(media(ANY_IMAGE, Source::Url(required_text(source, "url")?))),
        _ => Err(Path::Key(&source.path, "type").wrong("base64, url or file")),
    })
}

/// Decodes a `document` block.
pub(super) fn decode_document<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Media<'a>, ApiError> {
    let mut document = decode_source(fields, losses, |kind, source, losses| match kind {
        "base64" => {
            let mime = decode_media_type(source, &[PDF])?;
            Ok(media(mime, Source::Base64(required_text(source, "data")?)))
        }
        "text" => {
            let mime = decode_media_type(source, &[PLAIN_TEXT])?;
            Ok(media(mime, Source::Plain(required_text(source, "data")?)))
        }
        "content" => {
            let text = decode_document_content(source, losses)?;
            Ok(media(PLAIN_TEXT, Source::Plain(text)))
        }
        "url" => Ok(media(PDF, Source::Url(required_text(source, "url")?))),
        _ => Err(Path::Key(&source.path, "type").wrong("base64, text, content, url or file")),
    })?;
    document.name = fields.text("title")?;
    Ok(document)
}

fn decode_media_type<'a>(
    fields: &mut Fields<'a, '_>,
    known: &[&str],
) -> Result<Text<'a>, ApiError> {
    let mime = required_text(fields, "media_type")?;
    if known.contains(&mime.as_ref()) {
        return Ok(mime);
    }
    Err(Path::Key(&fields.path, "media_type").wrong(&known.join(", ")))
}

/// Decodes a document that is given as text blocks, which only citations tell apart, into one text.
fn decode_document_content<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Text<'a>, ApiError> {
    let Some(node) = fields.node("content") else {
        return fields.need("content", None);
    };
    let location = FieldLocation::Path(node.path.to_string().into());
    let mut texts = Vec::new();
    match node.value {
        Json::Str(text) => texts.push(text),
        Json::Array(_) => node.each(|_, node| {
            node.fields(|mut fields| {
                let kind = required_text(&mut fields, "type")?;
                if kind != "text" {
                    return Err(unexpected_block(&kind, &fields));
                }
                texts.push(required_text(&mut fields, "text")?);
                fields.finish(losses);
                Ok(())
            })
        })?,
        _ => return Err(node.wrong("a string or an array of blocks")),
    }
    let mut texts = texts.into_iter();
    let mut document = texts.next().unwrap_or_default();
    for text in texts {
        losses.approximated(location.clone());
        document.to_mut().push_str("\n\n");
        document.to_mut().push_str(&text);
    }
    Ok(document)
}

/// What a MIME type becomes in this format.
enum MessagesMediaKind {
    /// An image; `Some` with the `media_type` if it may be sent as base64.
    Image(Option<&'static str>),
    Pdf,
    Text,
    /// The client gave no type.
    Unknown,
}

fn kind_of(mime: &str) -> Option<MessagesMediaKind> {
    use MessagesMediaKind::{Image, Pdf, Text, Unknown};
    let essence = mime.split(';').next().unwrap_or(mime).trim();
    Some(match essence.to_ascii_lowercase().as_str() {
        "image/jpeg" | "image/jpg" => Image(Some("image/jpeg")),
        "image/png" => Image(Some("image/png")),
        "image/gif" => Image(Some("image/gif")),
        "image/webp" => Image(Some("image/webp")),
        PDF => Pdf,
        "application/json" => Text,
        "" | "application/*" => Unknown,
        other if other.starts_with("image/") => Image(None),
        other if other.starts_with("text/") => Text,
        _ => return None,
    })
}

/// Encodes media as an image or a document block.
pub(super) fn encode_media<'a>(
    media: &'a Media<'_>,
    location: &FieldLocation,
    losses: &mut Losses,
) -> Result<ContentBlock<'a>, ApiError> {
    if media.detail.is_some() {
        losses.dropped(location.field(PartField::Detail));
    }
    let block = encode_media_block(media, location, losses)?;
    // Only documents have a title.
    if matches!(block, ContentBlock::Image { .. }) {
        losses.dropped_if_present(media.name_location(location));
    }
    Ok(block)
}

fn encode_media_block<'a>(
    media: &'a Media<'_>,
    location: &FieldLocation,
    losses: &mut Losses,
) -> Result<ContentBlock<'a>, ApiError> {
    use MessagesMediaKind as Kind;
    let title = media.name.as_deref();
    let document = |source| ContentBlock::Document { source, title };
    let refuse = |message: &str| Err(ApiError::invalid(message).at_location(location.clone()));
    match (kind_of(&media.mime), &media.source) {
        (_, Source::File(_)) => refuse("the upstream of this model cannot read stored files"),
        (_, Source::Plain(text)) => Ok(document(text_source(Cow::Borrowed(text)))),
        (Some(Kind::Image(Some(media_type))), Source::Base64(data)) => Ok(ContentBlock::Image {
            source: base64_source(media_type, data),
        }),
        (Some(Kind::Pdf), Source::Base64(data)) => Ok(document(base64_source(PDF, data))),
        (Some(Kind::Text), Source::Base64(data)) => match decode_base64_text(data) {
            Some(text) => Ok(document(text_source(Cow::Owned(text)))),
            None => refuse("a text document must be UTF-8"),
        },
        (Some(Kind::Image(_)), Source::Url(url)) => Ok(ContentBlock::Image {
            source: BlockSource::Url { url },
        }),
        (Some(Kind::Pdf), Source::Url(url)) => Ok(document(BlockSource::Url { url })),
        (Some(Kind::Unknown), Source::Url(url)) => encode_untyped_url(url, media, location, losses),
        (_, Source::Base64(_) | Source::Url(_)) => {
            let mime = &media.mime;
            refuse(&format!(
                "the upstream of this model does not take {mime}: only JPEG, PNG, GIF and WebP \
                 images, PDF and text"
            ))
        }
    }
}

/// Encodes a URL without a type by its file extension. Without a known extension, an image part is
/// taken for an image and a file part for a PDF.
fn encode_untyped_url<'a>(
    url: &'a str,
    media: &'a Media<'_>,
    location: &FieldLocation,
    losses: &mut Losses,
) -> Result<ContentBlock<'a>, ApiError> {
    let is_file = !media.mime.is_empty();
    let known = mime_of_url(url);
    let is_image = match (MediaKind::of_url(url), known) {
        (MediaKind::Image, _) => true,
        (_, Some(PDF)) => false,
        (MediaKind::Unknown, _) => !is_file,
        (MediaKind::File, None) if is_file => false,
        _ => {
            let message = "the upstream of this model takes only images and PDF by their address";
            return Err(ApiError::invalid(message).at_location(location.clone()));
        }
    };
    if known.is_none() {
        losses.approximated(location.clone());
    }
    let source = BlockSource::Url { url };
    Ok(if is_image {
        ContentBlock::Image { source }
    } else {
        let title = media.name.as_deref();
        ContentBlock::Document { source, title }
    })
}

fn text_source(data: Cow<'_, str>) -> BlockSource<'_> {
    BlockSource::Text {
        media_type: PLAIN_TEXT,
        data,
    }
}

fn base64_source<'a>(media_type: &'static str, data: &'a str) -> BlockSource<'a> {
    BlockSource::Base64 {
        media_type,
        data: base64_text::to_standard(data),
    }
}

fn decode_base64_text(data: &str) -> Option<String> {
    let bytes = STANDARD.decode(&*base64_text::to_standard(data)).ok()?;
    String::from_utf8(bytes).ok()
}
