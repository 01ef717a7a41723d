//! Content parts of the messages of a request: text, refusals, images, audio and files.

use std::borrow::Cow;

use serde::Serialize;

use super::error::unsupported_content;
use super::reader::{one_of, required};
use super::role::MessageRole;
use crate::formats::base64_text;
use crate::formats::media_kind::{MediaKind, lowercase_mime};
use crate::formats::media_url::MediaUrl;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, Detail, FieldLocation, Json, Losses, Media, Part, PartKind, Source, Text,
    split_data_url,
};

/// The media types of images and files that are referenced by URL or id: nothing names their type.
const ANY_IMAGE: &str = "image/*";
const ANY_FILE: &str = "application/*";

/// Decodes `content` that must be present.
pub(super) fn decode_required_content<'a>(
    message: &mut Fields<'a, '_>,
    role: MessageRole,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, ApiError> {
    let content = decode_content(message, role, losses)?;
    message.need("content", content)
}

/// Decodes `content`: a string or an array of parts.
pub(super) fn decode_content<'a>(
    message: &mut Fields<'a, '_>,
    role: MessageRole,
    losses: &mut Losses,
) -> Result<Option<Vec<Part<'a>>>, ApiError> {
    let Some(node) = message.node("content") else {
        return Ok(None);
    };
    if let Json::Str(text) = node.value {
        let kind = PartKind::Text(text);
        return Ok(Some(vec![Part { kind, at: None }]));
    }
    if !matches!(node.value, Json::Array(_)) {
        return Err(node.wrong("a string or an array of parts"));
    }
    let mut parts = Vec::new();
    node.each(|at, node| {
        let kind = node.fields(|part| decode_part(part, role, losses))?;
        parts.push(Part { kind, at: Some(at) });
        Ok(())
    })?;
    Ok(Some(parts))
}

fn decode_part<'a>(
    mut part: Fields<'a, '_>,
    role: MessageRole,
    losses: &mut Losses,
) -> Result<PartKind<'a>, ApiError> {
    let takes_media = role.takes_media();
    let part_type = required(&mut part, "type")?.text()?;
    let kind = match &*part_type {
        "text" => PartKind::Text(required(&mut part, "text")?.text()?),
        "refusal" if role == MessageRole::Assistant => {
            PartKind::Refusal(required(&mut part, "refusal")?.text()?)
        }
        // Not official: Mistral sends its reasoning like this, and clients send it back.
        "thinking" if role == MessageRole::Assistant => {
            part.take("closed");
            decode_thinking(required(&mut part, "thinking")?, losses)?
        }
        "image_url" if takes_media => decode_media(&mut part, "image_url", decode_image, losses)?,
        "input_audio" if takes_media => {
            decode_media(&mut part, "input_audio", decode_audio, losses)?
        }
        "file" if takes_media => decode_media(&mut part, "file", decode_file, losses)?,
        _ => {
            let path = Path::Key(&part.path, "type");
            return Err(path.wrong_text("a part that this role may send", &part_type));
        }
    };
    part.finish(losses);
    Ok(kind)
}

/// Decodes reasoning in the content of a message: a string or an array of text parts.
fn decode_thinking<'a>(node: Node<'a, '_>, losses: &mut Losses) -> Result<PartKind<'a>, ApiError> {
    let mut text = Text::default();
    if let Json::Str(whole) = node.value {
        text = whole;
    } else {
        node.each(|_, node| {
            node.fields(|mut part| {
                part.take("type");
                let more = part.text("text")?.unwrap_or_default();
                match text.is_empty() {
                    true => text = more,
                    false => text.to_mut().push_str(&more),
                }
                part.finish(losses);
                Ok(())
            })
        })?;
    }
    let signature = None;
    Ok(PartKind::Reasoning { text, signature })
}

/// The `content` of an encoded message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ChatContent<'a> {
    Text(&'a str),
    Parts(Vec<ChatContentPart<'a>>),
}

impl<'a> ChatContent<'a> {
    /// Encodes a single text as a bare string, which more backends accept; `None` without parts.
    pub(super) fn new(parts: Vec<ChatContentPart<'a>>) -> Option<ChatContent<'a>> {
        match parts.as_slice() {
            [] => None,
            [ChatContentPart::Text { text }] => Some(ChatContent::Text(text)),
            _ => Some(ChatContent::Parts(parts)),
        }
    }

    /// The content as parts, to add more of them.
    pub(super) fn into_parts(self) -> Vec<ChatContentPart<'a>> {
        match self {
            ChatContent::Text(text) => vec![ChatContentPart::Text { text }],
            ChatContent::Parts(parts) => parts,
        }
    }
}

/// One part of an encoded `content` array.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ChatImageUrl<'a> },
    InputAudio { input_audio: ChatInputAudio<'a> },
    File { file: ChatFile<'a> },
}

/// Decodes the object under `key` of a part as media.
pub(super) fn decode_media<'a>(
    part: &mut Fields<'a, '_>,
    key: &str,
    decode: impl FnOnce(&mut Fields<'a, '_>) -> Result<Media<'a>, ApiError>,
    losses: &mut Losses,
) -> Result<PartKind<'a>, ApiError> {
    required(part, key)?.fields(|mut fields| {
        let media = decode(&mut fields)?;
        fields.finish(losses);
        Ok(PartKind::Media(media))
    })
}

/// Encodes media as a content part; what the format cannot carry is an error, never left out.
pub(super) fn encode_media<'a>(
    media: &'a Media<'_>,
    location: &FieldLocation,
    losses: &mut Losses,
) -> Result<ChatContentPart<'a>, ApiError> {
    let part = encode_media_part(media, location, losses)?;
    // Images have no file name in this format.
    if matches!(part, ChatContentPart::ImageUrl { .. }) {
        losses.dropped_if_present(media.name_location(location));
    }
    Ok(part)
}

fn encode_media_part<'a>(
    media: &'a Media<'_>,
    location: &FieldLocation,
    losses: &mut Losses,
) -> Result<ChatContentPart<'a>, ApiError> {
    match (&media.source, MediaKind::of_mime(&media.mime)) {
        (Source::Plain(text), _) => {
            losses.approximated(location.clone());
            Ok(ChatContentPart::Text { text })
        }
        (Source::Url(url), MediaKind::Image) => Ok(encode_image(MediaUrl::Url(url), media)),
        (Source::Url(url), MediaKind::Unknown) => match MediaKind::of_url(url) {
            MediaKind::Image => Ok(encode_image(MediaUrl::Url(url), media)),
            MediaKind::Unknown => {
                losses.approximated(location.clone());
                Ok(encode_image(MediaUrl::Url(url), media))
            }
            _ => Err(unsupported_content(
                location,
                "only images can be given as a URL",
            )),
        },
        (Source::Url(_), _) => Err(unsupported_content(
            location,
            "only images can be given as a URL",
        )),
        (Source::Base64(data), MediaKind::Image) => Ok(encode_image(data_url(media, data), media)),
        (Source::Base64(data), MediaKind::Audio) => encode_audio(&media.mime, data, location),
        (Source::Base64(data), MediaKind::File) => {
            let filename = media.name.as_deref().map(Cow::Borrowed);
            Ok(encode_file(ChatFile {
                file_data: Some(data_url(media, data)),
                file_id: None,
                filename: Some(filename.unwrap_or_else(|| {
                    losses.added(location.clone());
                    format!("file.{}", extension(&media.mime)).into()
                })),
            }))
        }
        (Source::File(id), MediaKind::File) => Ok(encode_file(ChatFile {
            file_data: None,
            file_id: Some(id),
            filename: media.name.as_deref().map(Cow::Borrowed),
        })),
        (Source::File(_), _) => Err(unsupported_content(
            location,
            "only documents can be given as a file's id",
        )),
        (Source::Base64(_), MediaKind::Video) => {
            Err(unsupported_content(location, "video cannot be given"))
        }
        (Source::Base64(_), MediaKind::Unknown) => {
            Err(unsupported_content(location, "data needs a media type"))
        }
    }
}

fn data_url<'a>(media: &'a Media<'_>, data: &'a str) -> MediaUrl<'a> {
    MediaUrl::Data {
        mime: &media.mime,
        data: base64_text::to_standard(data),
    }
}

/// Splits a data URL into media type and data, borrowed if the URL was.
fn decode_data_url(url: Text<'_>) -> Option<(Text<'_>, Text<'_>)> {
    match url {
        Text::Borrowed(url) => {
            split_data_url(url).map(|(mime, data)| (lowercase_mime(mime.into()), data.into()))
        }
        Text::Owned(url) => split_data_url(&url)
            .map(|(mime, data)| (mime.to_ascii_lowercase().into(), data.to_owned().into())),
    }
}

/// Decodes an `image_url` object.
pub(super) fn decode_image<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    /// `auto` is the default of every format.
    const DETAILS: [(&str, Option<Detail>); 4] = [
        ("auto", None),
        ("low", Some(Detail::Low)),
        ("high", Some(Detail::High)),
        ("original", Some(Detail::Original)),
    ];
    let url = required(fields, "url")?;
    let path = url.path;
    let url = url.text()?;
    let (mime, source) = if url.starts_with("https://") || url.starts_with("http://") {
        (ANY_IMAGE.into(), Source::Url(url))
    } else {
        let (mime, data) = decode_data_url(url)
            .ok_or_else(|| path.wrong("an http(s) URL or a base64 data URL"))?;
        (mime, Source::Base64(data))
    };
    let detail = match fields.node("detail") {
        Some(node) => one_of(node, &DETAILS)?,
        None => None,
    };
    Ok(Media {
        mime,
        source,
        name: None,
        detail,
    })
}

#[derive(Debug, Serialize)]
pub(super) struct ChatImageUrl<'a> {
    url: MediaUrl<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'static str>,
}

fn encode_image<'a>(url: MediaUrl<'a>, media: &Media<'_>) -> ChatContentPart<'a> {
    let detail = media.detail.map(|detail| match detail {
        Detail::Auto => "auto",
        Detail::Low => "low",
        Detail::High => "high",
        Detail::Original => "original",
    });
    let image_url = ChatImageUrl { url, detail };
    ChatContentPart::ImageUrl { image_url }
}

fn decode_audio<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    let data = required(fields, "data")?.text()?;
    let formats = [("wav", "audio/wav"), ("mp3", "audio/mpeg")];
    let mime = one_of(required(fields, "format")?, &formats)?;
    Ok(Media {
        mime: mime.into(),
        source: Source::Base64(data),
        name: None,
        detail: None,
    })
}

#[derive(Debug, Serialize)]
pub(super) struct ChatInputAudio<'a> {
    data: Cow<'a, str>,
    format: &'static str,
}

fn encode_audio<'a>(
    mime: &str,
    data: &'a str,
    location: &FieldLocation,
) -> Result<ChatContentPart<'a>, ApiError> {
    let format = match mime.split(';').next().unwrap_or(mime).trim() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        _ => return Err(unsupported_content(location, "audio must be wav or mp3")),
    };
    let data = base64_text::to_standard(data);
    let input_audio = ChatInputAudio { data, format };
    Ok(ChatContentPart::InputAudio { input_audio })
}

fn decode_file<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    let (mime, source) = if let Some(id) = fields.text("file_id")? {
        (ANY_FILE.into(), Source::File(id))
    } else {
        let data = required(fields, "file_data")?;
        let path = data.path;
        let (mime, data) =
            decode_data_url(data.text()?).ok_or_else(|| path.wrong("a base64 data URL"))?;
        (mime, Source::Base64(data))
    };
    Ok(Media {
        mime,
        source,
        name: fields.text("filename")?,
        detail: None,
    })
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct ChatFile<'a> {
    file_data: Option<MediaUrl<'a>>,
    file_id: Option<&'a str>,
    filename: Option<Cow<'a, str>>,
}

const fn encode_file(file: ChatFile<'_>) -> ChatContentPart<'_> {
    ChatContentPart::File { file }
}

/// The file name extension of a media type.
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
