//! Messages of a request and their content, read into turns and parts.

use super::pairing::pair;
use super::reasoning::{self, Reasoning};
use super::request::{needed, one_of};
use super::tools::KINDS;
use crate::formats::media_kind::small_letters;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, Arguments, Call, Detail, FieldLocation, Json, Losses, Media, Part, PartKind, Role,
    Source, Text, ToolKind, ToolResult, Turn, split_data_url,
};

/// Who speaks; only some may send more than text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Developer,
    System,
    User,
    Assistant,
    Tool,
    Function,
}

const SPEAKERS: [(&str, Speaker); 6] = [
    ("developer", Speaker::Developer),
    ("system", Speaker::System),
    ("user", Speaker::User),
    ("assistant", Speaker::Assistant),
    ("tool", Speaker::Tool),
    ("function", Speaker::Function),
];

/// Types of media that are only pointed at: the part says what they are used as, nothing says more.
const ANY_IMAGE: &str = "image/*";
const ANY_FILE: &str = "application/*";

pub(super) fn read<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Turn<'a>>, ApiError> {
    let messages = needed(fields, "messages")?;
    let path = messages.path;
    let mut turns = Vec::new();
    messages.each(|at, node| {
        turns.push(node.fields(|message| read_turn(message, at, losses))?);
        Ok(())
    })?;
    if turns.is_empty() {
        return Err(path.wrong("at least one message"));
    }
    pair(&mut turns);
    Ok(turns)
}

fn read_turn<'a>(
    mut message: Fields<'a, '_>,
    at: u32,
    losses: &mut Losses,
) -> Result<Turn<'a>, ApiError> {
    let speaker = one_of(needed(&mut message, "role")?, &SPEAKERS)?;
    let (role, parts) = match speaker {
        Speaker::Developer => (Role::Developer, read_own(&mut message, speaker, losses)?),
        Speaker::System => (Role::System, read_own(&mut message, speaker, losses)?),
        Speaker::User => (Role::User, read_own(&mut message, speaker, losses)?),
        Speaker::Assistant => (Role::Model, read_assistant(&mut message, losses)?),
        Speaker::Tool | Speaker::Function => {
            let kind = PartKind::Result(read_result(&mut message, speaker, losses)?);
            (Role::User, vec![Part { kind, at: None }])
        }
    };
    message.finish(losses);
    Ok(Turn {
        role,
        parts,
        at: Some(at),
    })
}

/// Content that must be there.
fn read_own<'a>(
    message: &mut Fields<'a, '_>,
    speaker: Speaker,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, ApiError> {
    let content = read_content(message, speaker, losses)?;
    message.need("content", content)
}

fn read_content<'a>(
    message: &mut Fields<'a, '_>,
    speaker: Speaker,
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
        return Err(node.path.wrong("a string or an array of parts"));
    }
    let mut parts = Vec::new();
    node.each(|at, node| {
        let kind = node.fields(|part| read_part(part, speaker, losses))?;
        parts.push(Part { kind, at: Some(at) });
        Ok(())
    })?;
    Ok(Some(parts))
}

fn read_part<'a>(
    mut part: Fields<'a, '_>,
    speaker: Speaker,
    losses: &mut Losses,
) -> Result<PartKind<'a>, ApiError> {
    // Images in tool results are not official, but other formats take them and clients send them.
    let takes_media = matches!(speaker, Speaker::User | Speaker::Tool);
    let word = needed(&mut part, "type")?.text()?;
    let kind = match &*word {
        "text" => PartKind::Text(needed(&mut part, "text")?.text()?),
        "refusal" if speaker == Speaker::Assistant => {
            PartKind::Refusal(needed(&mut part, "refusal")?.text()?)
        }
        "image_url" if takes_media => read_media(&mut part, "image_url", read_image, losses)?,
        "input_audio" if takes_media => read_media(&mut part, "input_audio", read_audio, losses)?,
        "file" if takes_media => read_media(&mut part, "file", read_file, losses)?,
        _ => {
            let path = Path::Key(&part.path, "type");
            return Err(path.wrong(&format!("a part that this role may send, not {word:?}")));
        }
    };
    part.finish(losses);
    Ok(kind)
}

fn read_media<'a>(
    part: &mut Fields<'a, '_>,
    key: &str,
    read: impl FnOnce(&mut Fields<'a, '_>) -> Result<Media<'a>, ApiError>,
    losses: &mut Losses,
) -> Result<PartKind<'a>, ApiError> {
    needed(part, key)?.fields(|mut fields| {
        let media = read(&mut fields)?;
        fields.finish(losses);
        Ok(PartKind::Media(media))
    })
}

fn read_image<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    /// `auto` is what every format does unasked.
    const DETAILS: [(&str, Option<Detail>); 4] = [
        ("auto", None),
        ("low", Some(Detail::Low)),
        ("high", Some(Detail::High)),
        ("original", Some(Detail::Original)),
    ];
    let url = needed(fields, "url")?;
    let path = url.path;
    let url = url.text()?;
    let (mime, source) = if url.starts_with("https://") || url.starts_with("http://") {
        (ANY_IMAGE.into(), Source::Url(url))
    } else {
        let (mime, data) =
            split_data(url).ok_or_else(|| path.wrong("an http(s) URL or a base64 data URL"))?;
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

fn read_audio<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    let data = needed(fields, "data")?.text()?;
    let formats = [("wav", "audio/wav"), ("mp3", "audio/mpeg")];
    let mime = one_of(needed(fields, "format")?, &formats)?;
    Ok(Media {
        mime: mime.into(),
        source: Source::Base64(data),
        name: None,
        detail: None,
    })
}

fn read_file<'a>(fields: &mut Fields<'a, '_>) -> Result<Media<'a>, ApiError> {
    let (mime, source) = if let Some(id) = fields.text("file_id")? {
        (ANY_FILE.into(), Source::File(id))
    } else {
        let data = needed(fields, "file_data")?;
        let path = data.path;
        let (mime, data) =
            split_data(data.text()?).ok_or_else(|| path.wrong("a base64 data URL"))?;
        (mime, Source::Base64(data))
    };
    Ok(Media {
        mime,
        source,
        name: fields.text("filename")?,
        detail: None,
    })
}

/// Type and data of a data URL, still borrowed if the URL was.
fn split_data(url: Text<'_>) -> Option<(Text<'_>, Text<'_>)> {
    match url {
        Text::Borrowed(url) => {
            split_data_url(url).map(|(mime, data)| (small_letters(mime.into()), data.into()))
        }
        Text::Owned(url) => split_data_url(&url)
            .map(|(mime, data)| (mime.to_ascii_lowercase().into(), data.to_owned().into())),
    }
}

/// Thoughts first, then words, then calls: this format keeps no order among them.
fn read_assistant<'a>(
    message: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, ApiError> {
    let Reasoning {
        thoughts,
        signatures,
    } = reasoning::read(message, losses)?;
    let mut parts = thoughts;
    parts.extend(read_content(message, Speaker::Assistant, losses)?.unwrap_or_default());
    if let Some(refusal) = message.text("refusal")? {
        let kind = PartKind::Refusal(refusal);
        parts.push(Part { kind, at: None });
    }
    // Not official, but replies with images are given out like this.
    message.each("images", |_, node| {
        let kind = node.fields(|mut part| {
            part.take("type");
            part.take("index");
            let kind = read_media(&mut part, "image_url", read_image, losses)?;
            part.finish(losses);
            Ok(kind)
        })?;
        parts.push(Part { kind, at: None });
        Ok(())
    })?;
    if let Some(audio) = message.node("audio") {
        return Err(audio
            .path
            .wrong("no reference to an earlier answer's sound, which is not kept"));
    }
    // Clients send replies back as they got them; an empty list says nothing.
    if let Some(node) = message.node("annotations")
        && node.value != Json::Array(Vec::new())
    {
        losses.dropped(FieldLocation::Path(node.path.to_string().into()));
    }
    let mut calls = Vec::new();
    message.each("tool_calls", |_, node| {
        calls.push(node.fields(|call| read_call(call, losses))?);
        Ok(())
    })?;
    if let Some(node) = message.node("function_call") {
        calls.push(read_function_call(node, None, losses)?);
    }
    signatures.fasten(&mut calls, &message.path, losses);
    parts.extend(calls.into_iter().map(|call| Part {
        kind: PartKind::Call(call),
        at: None,
    }));
    Ok(parts)
}

fn read_call<'a>(mut fields: Fields<'a, '_>, losses: &mut Losses) -> Result<Call<'a>, ApiError> {
    let id = needed(&mut fields, "id")?.text()?;
    let kind = match fields.node("type") {
        Some(node) => one_of(node, &KINDS)?,
        None => ToolKind::Function,
    };
    let call = match kind {
        ToolKind::Function => {
            read_function_call(needed(&mut fields, "function")?, Some(id), losses)?
        }
        ToolKind::Custom => needed(&mut fields, "custom")?.fields(|mut custom| {
            let call = Call {
                id: Some(id),
                name: needed(&mut custom, "name")?.text()?,
                arguments: Arguments::Text(custom.text("input")?.unwrap_or_default()),
                signature: None,
                kind,
            };
            custom.finish(losses);
            Ok(call)
        })?,
    };
    fields.finish(losses);
    Ok(call)
}

fn read_function_call<'a>(
    node: Node<'a, '_>,
    id: Option<Text<'a>>,
    losses: &mut Losses,
) -> Result<Call<'a>, ApiError> {
    node.fields(|mut function| {
        let call = Call {
            id,
            name: needed(&mut function, "name")?.text()?,
            arguments: Arguments::Text(function.text("arguments")?.unwrap_or_default()),
            signature: None,
            kind: ToolKind::Function,
        };
        function.finish(losses);
        Ok(call)
    })
}

/// Results of the deprecated functions have a name instead of an id.
fn read_result<'a>(
    message: &mut Fields<'a, '_>,
    speaker: Speaker,
    losses: &mut Losses,
) -> Result<ToolResult<'a>, ApiError> {
    let (id, name) = if speaker == Speaker::Tool {
        let id = needed(message, "tool_call_id")?.text()?;
        (Some(id), message.text("name")?)
    } else {
        (None, Some(needed(message, "name")?.text()?))
    };
    Ok(ToolResult {
        id,
        name,
        parts: read_own(message, speaker, losses)?,
        failed: false,
    })
}
