//! Turns and their content blocks, read into the model.

use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, Arguments, Call, FieldLocation, Issuer, Json, Losses, Media, Part, PartKind, Role,
    Signature, Source, Text, ToolKind, ToolResult, Turn,
};

const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const PDF: &str = "application/pdf";
/// Of an image that is only pointed at.
const ANY_IMAGE: &str = "image/*";
const PLAIN: &str = "text/plain";

/// Where a block stands decides what it may be.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    System,
    User,
    Model,
    Returned,
    Document,
}

pub(super) fn read<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Turn<'a>>, ApiError> {
    let mut turns = Vec::new();
    if let Some(node) = fields.node("system") {
        let parts = read_content(node, Within::System, losses)?;
        if !parts.is_empty() {
            turns.push(Turn {
                role: Role::System,
                parts,
                at: None,
            });
        }
    }
    let Some(node) = fields.node("messages") else {
        return fields.need("messages", None);
    };
    let path = node.path;
    let before = turns.len();
    node.each(|at, node| {
        turns.push(read_turn(at, node, losses)?);
        Ok(())
    })?;
    if turns.len() == before {
        return Err(path.wrong("at least one message"));
    }
    Ok(turns)
}

fn read_turn<'a>(at: u32, node: Node<'a, '_>, losses: &mut Losses) -> Result<Turn<'a>, ApiError> {
    node.fields(|mut fields| {
        let role = fields.text("role")?;
        let role = fields.need("role", role)?;
        let (role, within) = match role.as_ref() {
            "user" => (Role::User, Within::User),
            "assistant" => (Role::Model, Within::Model),
            "system" => (Role::System, Within::System),
            _ => return Err(Path::Key(&fields.path, "role").wrong("user, assistant or system")),
        };
        let Some(content) = fields.node("content") else {
            return fields.need("content", None);
        };
        let parts = read_content(content, within, losses)?;
        fields.finish(losses);
        Ok(Turn {
            role,
            parts,
            at: Some(at),
        })
    })
}

fn read_content<'a>(
    node: Node<'a, '_>,
    within: Within,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, ApiError> {
    let mut parts = Vec::new();
    match node.value {
        Json::Str(text) => parts.push(Part {
            kind: PartKind::Text(text),
            at: None,
        }),
        Json::Array(_) => node.each(|at, node| {
            node.fields(|fields| {
                if let Some(kind) = read_block(fields, within, losses)? {
                    parts.push(Part { kind, at: Some(at) });
                }
                Ok(())
            })
        })?,
        _ => return Err(node.path.wrong("a string or an array of blocks")),
    }
    Ok(parts)
}

fn read_block<'a>(
    mut fields: Fields<'a, '_>,
    within: Within,
    losses: &mut Losses,
) -> Result<Option<PartKind<'a>>, ApiError> {
    use Within::{Model, Returned, System, User};
    let kind = fields.text("type")?;
    let kind = fields.need("type", kind)?;
    let part = match (kind.as_ref(), within) {
        ("text", _) => PartKind::Text(need_text(&mut fields, "text")?),
        ("image", User | Model | Returned) => PartKind::Media(read_image(&mut fields, losses)?),
        ("document", User | Model | Returned) => {
            PartKind::Media(read_document(&mut fields, losses)?)
        }
        ("thinking", Model) => read_thinking(&mut fields)?,
        ("redacted_thinking", Model) => read_redacted(&mut fields)?,
        ("tool_use", Model) => PartKind::Call(read_call(&mut fields)?),
        ("tool_result", User) => PartKind::Result(read_result(&mut fields, losses)?),
        // Every tool is declared from the start, so its name is all that the reference adds.
        ("tool_reference", Returned) => {
            losses.approximated(here(&fields));
            PartKind::Text(need_text(&mut fields, "tool_name")?)
        }
        ("tool_addition" | "tool_removal", System) => {
            losses.dropped(here(&fields));
            return Ok(None);
        }
        // What hosted tools did is told again in the model's own words, save for a summary.
        (kind, Model) if kind != "compaction" && kind != "tool_result" => {
            losses.dropped(here(&fields));
            return Ok(None);
        }
        (kind, _) => {
            let message = format!("{}: a block of type {kind} cannot stand here", fields.path);
            return Err(ApiError::invalid(message).at(fields.path.to_string()));
        }
    };
    fields.finish(losses);
    Ok(Some(part))
}

fn here(fields: &Fields<'_, '_>) -> FieldLocation {
    FieldLocation::Path(fields.path.to_string().into())
}

fn need_text<'a>(fields: &mut Fields<'a, '_>, key: &str) -> Result<Text<'a>, ApiError> {
    let text = fields.text(key)?;
    fields.need(key, text)
}

fn media<'a>(mime: impl Into<Text<'a>>, source: Source<'a>) -> Media<'a> {
    Media {
        mime: mime.into(),
        source,
        name: None,
        detail: None,
    }
}

/// Both kinds of media say where they are in the same way.
fn read_source<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
    read: impl FnOnce(&str, &mut Fields<'a, '_>, &mut Losses) -> Result<Media<'a>, ApiError>,
) -> Result<Media<'a>, ApiError> {
    let Some(node) = fields.node("source") else {
        return fields.need("source", None);
    };
    node.fields(|mut fields| {
        let kind = need_text(&mut fields, "type")?;
        let media = match kind.as_ref() {
            "file" => {
                let path = Path::Key(&fields.path, "file_id").to_string();
                let message =
                    format!("{path}: the upstream of this model cannot read stored files");
                return Err(ApiError::invalid(message).at(path));
            }
            kind => read(kind, &mut fields, losses)?,
        };
        fields.finish(losses);
        Ok(media)
    })
}

fn read_image<'a>(fields: &mut Fields<'a, '_>, losses: &mut Losses) -> Result<Media<'a>, ApiError> {
    read_source(fields, losses, |kind, source, _| match kind {
        "base64" => {
            let mime = need_type(source, &IMAGE_TYPES)?;
            Ok(media(mime, Source::Base64(need_text(source, "data")?)))
        }
        "url" => Ok(media(ANY_IMAGE, Source::Url(need_text(source, "url")?))),
        _ => Err(Path::Key(&source.path, "type").wrong("base64, url or file")),
    })
}

fn read_document<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Media<'a>, ApiError> {
    let mut document = read_source(fields, losses, |kind, source, losses| match kind {
        "base64" => {
            let mime = need_type(source, &[PDF])?;
            Ok(media(mime, Source::Base64(need_text(source, "data")?)))
        }
        "text" => {
            let mime = need_type(source, &[PLAIN])?;
            Ok(media(mime, Source::Plain(need_text(source, "data")?)))
        }
        "content" => Ok(media(PLAIN, Source::Plain(read_texts(source, losses)?))),
        "url" => Ok(media(PDF, Source::Url(need_text(source, "url")?))),
        _ => Err(Path::Key(&source.path, "type").wrong("base64, text, content, url or file")),
    })?;
    document.name = fields.text("title")?;
    Ok(document)
}

fn need_type<'a>(fields: &mut Fields<'a, '_>, known: &[&str]) -> Result<Text<'a>, ApiError> {
    let mime = need_text(fields, "media_type")?;
    if known.contains(&mime.as_ref()) {
        return Ok(mime);
    }
    Err(Path::Key(&fields.path, "media_type").wrong(&known.join(", ")))
}

/// A document cut into blocks to be cited one by one is a plain text where nothing can be cited.
fn read_texts<'a>(fields: &mut Fields<'a, '_>, losses: &mut Losses) -> Result<Text<'a>, ApiError> {
    let Some(node) = fields.node("content") else {
        return fields.need("content", None);
    };
    let place = FieldLocation::Path(node.path.to_string().into());
    let parts = read_content(node, Within::Document, losses)?;
    let mut texts = parts.into_iter().filter_map(|part| match part.kind {
        PartKind::Text(text) => Some(text),
        _ => None,
    });
    let mut whole = texts.next().unwrap_or_default();
    for text in texts {
        losses.approximated(place.clone());
        whole.to_mut().push_str("\n\n");
        whole.to_mut().push_str(&text);
    }
    Ok(whole)
}

fn read_thinking<'a>(fields: &mut Fields<'a, '_>) -> Result<PartKind<'a>, ApiError> {
    let text = need_text(fields, "thinking")?;
    // Thoughts of upstreams that sign nothing were given out with an empty signature.
    let signature = fields.text("signature")?.filter(|text| !text.is_empty());
    let signature = signature.map(|signature| unwrap_or_own(signature, Issuer::Thinking));
    Ok(PartKind::Reasoning { text, signature })
}

fn read_redacted<'a>(fields: &mut Fields<'a, '_>) -> Result<PartKind<'a>, ApiError> {
    let data = need_text(fields, "data")?;
    Ok(PartKind::Reasoning {
        text: Text::default(),
        signature: Some(unwrap_or_own(data, Issuer::Redacted)),
    })
}

fn unwrap_or_own(data: Text<'_>, issuer: Issuer) -> Signature<'_> {
    Signature::unwrap_text(&data).unwrap_or(Signature { issuer, data })
}

fn read_call<'a>(fields: &mut Fields<'a, '_>) -> Result<Call<'a>, ApiError> {
    let id = need_text(fields, "id")?;
    let name = need_text(fields, "name")?;
    let input = fields.take("input");
    let input = fields.need("input", input)?;
    if !input.is_object() {
        return Err(Path::Key(&fields.path, "input").wrong("an object"));
    }
    Ok(Call {
        id: Some(id),
        name,
        arguments: Arguments::Tree(input),
        signature: None,
        kind: ToolKind::Function,
    })
}

fn read_result<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<ToolResult<'a>, ApiError> {
    let id = need_text(fields, "tool_use_id")?;
    let parts = match fields.node("content") {
        Some(node) => read_content(node, Within::Returned, losses)?,
        None => Vec::new(),
    };
    Ok(ToolResult {
        id: Some(id),
        name: None,
        parts,
        failed: fields.bool("is_error")?.unwrap_or(false),
    })
}
