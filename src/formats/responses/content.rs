//! Content: the parts of a message or of a tool's output.

use serde::Serialize;

use super::media::{self, FileSource, ImageSource, InputMediaKind};
use crate::json::{Fields, Node, Path};
use crate::model::{ApiError, FieldLocation, Json, Losses, Media, Part, PartKind, Source, Text};

/// Decodes content: a string, or a list of parts.
pub(super) fn decode<'a>(
    node: Node<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, ApiError> {
    match node.value {
        Json::Str(text) => Ok(vec![Part {
            kind: PartKind::Text(text),
            at: None,
        }]),
        Json::Array(_) => {
            let mut parts = Vec::new();
            node.each(|at, node| {
                let kind = node.fields(|fields| decode_part(fields, losses))?;
                let at = Some(at);
                parts.push(Part { kind, at });
                Ok(())
            })?;
            Ok(parts)
        }
        _ => Err(node.wrong("a string or an array of parts")),
    }
}

/// Decodes one part of a list.
fn decode_part<'a>(
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
        "input_image" => PartKind::Media(media::decode_image(&mut fields)?),
        "input_file" => PartKind::Media(media::decode_file(&mut fields)?),
        other => {
            let path = &fields.path;
            let message = format!("{path}: parts of type {other} have no counterpart");
            return Err(ApiError::invalid(message).at(path.to_string()));
        }
    };
    fields.finish(losses);
    Ok(part)
}

/// Drops a list that the format has no room for. Every response has these lists, mostly empty; only their elements
/// are a loss.
fn drop_unless_empty(fields: &mut Fields<'_, '_>, key: &str, losses: &mut Losses) {
    if let Some(Json::Array(items)) = fields.take(key)
        && !items.is_empty()
    {
        let path = Path::Key(&fields.path, key).to_string();
        losses.dropped(FieldLocation::Path(path.into()));
    }
}

/// Decodes the texts of a list of `{"type": kind, "text": …}` and joins them as paragraphs.
pub(super) fn decode_joined_texts<'a>(
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

/// Content as it is encoded: a string where one text is all there is.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum InputContent<'r> {
    Text(&'r str),
    Parts(Vec<InputPart<'r>>),
}

impl<'r> InputContent<'r> {
    /// Encodes parts.
    pub(super) fn of(parts: Vec<InputPart<'r>>) -> InputContent<'r> {
        match parts.as_slice() {
            [] => InputContent::Text(""),
            [InputPart::InputText { text } | InputPart::OutputText { text, .. }] => {
                InputContent::Text(text)
            }
            _ => InputContent::Parts(parts),
        }
    }
}

/// One part as it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputPart<'r> {
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
        image: ImageSource<'r>,
        detail: &'static str,
    },
    InputFile(FileSource<'r>),
}

/// Encodes media as a part.
pub(super) fn encode_media<'r>(
    media: &'r Media<'_>,
    location: FieldLocation,
    losses: &mut Losses,
) -> Result<InputPart<'r>, ApiError> {
    if let Source::Plain(text) = &media.source {
        losses.approximated(location);
        return Ok(InputPart::InputText { text });
    }
    match media::kind_of(media, &location, losses) {
        InputMediaKind::Image => {
            losses.dropped_if_present(media.name_location(&location));
            Ok(InputPart::InputImage {
                image: media::encode_image(media),
                detail: media::encode_detail(media.detail),
            })
        }
        InputMediaKind::File => Ok(InputPart::InputFile(media::encode_file(
            media, location, losses,
        ))),
        InputMediaKind::Unsupported => {
            let kind = match media.mime.as_ref() {
                "" => "this kind",
                mime => mime,
            };
            let message = format!("the upstream of this model takes no media of {kind}");
            Err(ApiError::invalid(message).at_location(location))
        }
    }
}
