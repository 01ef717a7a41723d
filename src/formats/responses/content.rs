//! The parts of a message or of a tool's output.

use crate::formats::media_kind::small_letters;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, Detail, FieldLocation, Json, Losses, Media, Part, PartKind, Source, Text,
    split_data_url,
};

/// The wire says that it is an image, or a file, but not which.
const ANY_IMAGE: &str = "image/*";
const ANY_FILE: &str = "application/*";

/// A bare string, or a list of parts.
pub(super) fn read<'a>(node: Node<'a, '_>, losses: &mut Losses) -> Result<Vec<Part<'a>>, ApiError> {
    match node.value {
        Json::Str(text) => Ok(vec![Part {
            kind: PartKind::Text(text),
            at: None,
        }]),
        Json::Array(_) => {
            let mut parts = Vec::new();
            node.each(|at, node| {
                let kind = node.fields(|fields| read_part(fields, losses))?;
                let at = Some(at);
                parts.push(Part { kind, at });
                Ok(())
            })?;
            Ok(parts)
        }
        _ => Err(node.path.wrong("a string or an array of parts")),
    }
}

fn read_part<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<PartKind<'a>, ApiError> {
    let kind = fields.text("type")?;
    let part = match fields.need("type", kind)?.as_ref() {
        "input_text" | "output_text" | "text" => {
            let text = fields.text("text")?;
            drop_unless_empty(&mut fields, "annotations", losses);
            drop_unless_empty(&mut fields, "logprobs", losses);
            PartKind::Text(fields.need("text", text)?)
        }
        "refusal" => {
            let text = fields.text("refusal")?;
            PartKind::Refusal(fields.need("refusal", text)?)
        }
        "input_image" => PartKind::Media(read_image(&mut fields)?),
        "input_file" => PartKind::Media(read_file(&mut fields)?),
        other => {
            let path = &fields.path;
            let message = format!("{path}: parts of type {other} have no counterpart");
            return Err(ApiError::invalid(message).at(path.to_string()));
        }
    };
    fields.finish(losses);
    Ok(part)
}

/// Every reply carries these lists, mostly empty; only their content is a loss.
fn drop_unless_empty(fields: &mut Fields<'_, '_>, key: &str, losses: &mut Losses) {
    if let Some(Json::Array(items)) = fields.take(key)
        && !items.is_empty()
    {
        let path = Path::Key(&fields.path, key).to_string();
        losses.dropped(FieldLocation::Path(path.into()));
    }
}

fn read_image<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    let detail = fields.node("detail").map(read_detail).transpose()?;
    let url = fields
        .node("image_url")
        .map(|node| address(node, ANY_IMAGE));
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

/// `auto` is what every format does unasked.
fn read_detail(node: Node<'_, '_>) -> Result<Option<Detail>, ApiError> {
    let path = node.path;
    Ok(match node.text()?.as_ref() {
        "auto" => None,
        "low" => Some(Detail::Low),
        "high" => Some(Detail::High),
        "original" => Some(Detail::Original),
        _ => return Err(path.wrong("one of auto, low, high, original")),
    })
}

fn read_file<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    let name = fields.text("filename")?;
    let data = fields.node("file_data").map(read_data).transpose()?;
    let url = fields.node("file_url").map(|node| address(node, ANY_FILE));
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

fn read_data<'a>(node: Node<'a, '_>) -> Result<(Text<'a>, Source<'a>), ApiError> {
    let path = node.path;
    data_url(node.text()?).map_err(|_| path.wrong("a base64 data URL"))
}

/// Where media are; a data URL says what they are as well.
fn address<'a>(node: Node<'a, '_>, kind: &'static str) -> Result<(Text<'a>, Source<'a>), ApiError> {
    let path = node.path;
    match data_url(node.text()?) {
        Ok(found) => Ok(found),
        Err(url) if url.starts_with("data:") => Err(path.wrong("a URL, or a base64 data URL")),
        Err(url) => Ok((kind.into(), Source::Url(url))),
    }
}

/// The text itself is given back when it is no data URL.
fn data_url(text: Text<'_>) -> Result<(Text<'_>, Source<'_>), Text<'_>> {
    match text {
        Text::Borrowed(borrowed) => match split_data_url(borrowed) {
            Some((mime, data)) => Ok((small_letters(mime.into()), Source::Base64(data.into()))),
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

/// The texts of a list of `{"type": kind, "text": …}`, as paragraphs.
pub(super) fn joined_texts<'a>(
    fields: &mut Fields<'a, '_>,
    key: &str,
    kind: &str,
    losses: &mut Losses,
) -> Result<Text<'a>, ApiError> {
    let mut joined = Text::default();
    fields.each(key, |_, node| {
        node.fields(|mut fields| {
            let found = fields.text("type")?;
            if fields.need("type", found)? != kind {
                return Err(Path::Key(&fields.path, "type").wrong(kind));
            }
            let text = fields.text("text")?;
            let text = fields.need("text", text)?;
            if joined.is_empty() {
                joined = text;
            } else if !text.is_empty() {
                joined.to_mut().push_str("\n\n");
                joined.to_mut().push_str(&text);
            }
            fields.finish(losses);
            Ok(())
        })
    })?;
    Ok(joined)
}

#[cfg(test)]
#[path = "tests/content.rs"]
mod tests;
