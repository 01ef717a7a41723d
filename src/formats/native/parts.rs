//! The conversation: contents and their parts.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::field_names::{self, Spellings};
use super::rules::ROLES;
use crate::formats::base64_text;
use crate::formats::media_kind::small_letters;
use crate::json::{Fields, Node};
use crate::model::{
    ApiError, Arguments, Call, FieldLocation, Issuer, Json, Losses, Media, Part, PartKind, Role,
    Signature, Source, Text, ToolKind, ToolResult, Turn,
};

/// The role that some clients write beside it says nothing.
pub(super) fn read_system<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Turn<'a>>, ApiError> {
    fields.take("role");
    let mut parts = Vec::new();
    fields.each("parts", |at, node| {
        let text = node.fields(|mut fields| {
            let text = fields.text("text")?;
            fields.finish(losses);
            Ok(text.unwrap_or_default())
        })?;
        parts.push(Part {
            kind: PartKind::Text(text),
            at: Some(at),
        });
        Ok(())
    })?;
    fields.finish(losses);
    Ok((!parts.is_empty()).then_some(Turn {
        role: Role::System,
        parts,
        at: None,
    }))
}

pub(super) fn read_content<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Turn<'a>, ApiError> {
    let role = match field_names::word(&mut fields, &["role"], ROLES) {
        Some("model") => Role::Model,
        _ => Role::User,
    };
    let mut parts = Vec::new();
    fields.each("parts", |at, node| {
        node.fields(|fields| read_part(role, at, fields, &mut parts, losses))
    })?;
    fields.finish(losses);
    // Words may stand before and between results here; elsewhere results come first.
    parts.sort_by_key(|part| !matches!(part.kind, PartKind::Result(_)));
    Ok(Turn {
        role,
        parts,
        at: Some(at),
    })
}

type Reader =
    for<'a> fn(Node<'a, '_>, role: Role, &mut Losses) -> Result<Option<PartKind<'a>>, ApiError>;

/// A part carries exactly one of these.
static PAYLOADS: [(Spellings, Reader); 7] = [
    (&["text"], |node, _, _| {
        Ok(Some(PartKind::Text(node.text()?)))
    }),
    (field_names::INLINE, |node, _, losses| {
        let media = node.fields(|fields| read_inline(fields, losses))?;
        Ok(Some(PartKind::Media(media)))
    }),
    (field_names::FILE, |node, _, losses| {
        let media = node.fields(|fields| read_file(fields, losses))?;
        Ok(Some(PartKind::Media(media)))
    }),
    (field_names::CALL, read_call),
    (field_names::RESPONSE, read_result),
    (field_names::CODE, |node, _, losses| {
        losses.dropped(FieldLocation::Path(node.path.to_string().into()));
        Ok(None)
    }),
    (field_names::CODE_RESULT, read_execution),
];

fn read_part<'a>(
    role: Role,
    at: u32,
    mut fields: Fields<'a, '_>,
    parts: &mut Vec<Part<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    // Only the model thinks: on the user's words these two are reported.
    let (mut thought, mut signature) = (false, None);
    if role == Role::Model {
        thought = fields.bool("thought")?.unwrap_or(false);
        signature = field_names::text(&mut fields, &["thoughtSignature", "thought_signature"])?
            .filter(|data| !data.is_empty())
            .map(read_seal);
    }
    let mut payload = None;
    for (spellings, reader) in &PAYLOADS {
        if let Some(node) = field_names::node(&mut fields, spellings) {
            payload = reader(node, role, losses)?;
            break;
        }
    }
    match payload {
        Some(PartKind::Call(call)) => parts.push(Part {
            kind: PartKind::Call(Call { signature, ..call }),
            at: Some(at),
        }),
        Some(PartKind::Text(text)) if thought => push_thought(text, signature, Some(at), parts),
        Some(_) if thought => losses.dropped(FieldLocation::Path(fields.path.to_string().into())),
        kind => {
            // Words and images have no place for a proof: it goes to the thought before them.
            let bare = kind.filter(|kind| {
                signature.is_none() || !matches!(kind, PartKind::Text(text) if text.is_empty())
            });
            if signature.is_some() {
                push_thought(Text::default(), signature, Some(at), parts);
            }
            parts.extend(bare.map(|kind| Part { kind, at: Some(at) }));
        }
    }
    fields.finish(losses);
    Ok(())
}

/// Neighbouring pieces are one thought until a proof closes it.
pub(super) fn push_thought<'a>(
    more: Text<'a>,
    proof: Option<Signature<'a>>,
    at: Option<u32>,
    parts: &mut Vec<Part<'a>>,
) {
    if let Some(PartKind::Reasoning { text, signature }) =
        parts.last_mut().map(|part| &mut part.kind)
        && signature.is_none()
    {
        text.to_mut().push_str(&more);
        *signature = proof;
        return;
    }
    parts.push(Part {
        kind: PartKind::Reasoning {
            text: more,
            signature: proof,
        },
        at,
    });
}

fn read_seal(data: Text<'_>) -> Signature<'_> {
    Signature::unwrap_text(&data).unwrap_or(Signature {
        issuer: Issuer::Native,
        data,
    })
}

fn read_inline<'a>(mut fields: Fields<'a, '_>, losses: &mut Losses) -> Result<Media<'a>, ApiError> {
    let mime = field_names::text(&mut fields, field_names::MIME_TYPE)?;
    let mime = small_letters(fields.need("mimeType", mime)?);
    let data = fields.text("data")?.map(standard);
    let data = fields.need("data", data)?;
    let name = field_names::text(&mut fields, field_names::DISPLAY_NAME)?;
    fields.finish(losses);
    // Text is text to the other formats, not a file of bytes.
    let plain = mime.starts_with("text/").then(|| plain_text(&data));
    let source = match plain.flatten() {
        Some(text) => Source::Plain(text.into()),
        None => Source::Base64(data),
    };
    Ok(Media {
        mime,
        source,
        name,
        detail: None,
    })
}

/// Standard base64 with padding, whichever alphabet the client wrote.
fn standard(text: Text<'_>) -> Text<'_> {
    match base64_text::standard(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => Cow::Owned(clean),
    }
}

/// What a text document says; `None`: it is no text after all.
fn plain_text(base64: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

fn read_file<'a>(mut fields: Fields<'a, '_>, losses: &mut Losses) -> Result<Media<'a>, ApiError> {
    let mime = field_names::text(&mut fields, field_names::MIME_TYPE)?;
    let address = field_names::text(&mut fields, field_names::FILE_URI)?;
    let address = fields.need("fileUri", address)?;
    let name = field_names::text(&mut fields, field_names::DISPLAY_NAME)?;
    fields.finish(losses);
    Ok(Media {
        mime: small_letters(mime.unwrap_or_default()),
        source: Source::Url(address),
        name,
        detail: None,
    })
}

fn read_call<'a>(
    node: Node<'a, '_>,
    role: Role,
    losses: &mut Losses,
) -> Result<Option<PartKind<'a>>, ApiError> {
    if role != Role::Model {
        return Err(node.path.wrong("the role model: only a model calls"));
    }
    node.fields(|mut fields| {
        let name = fields.text("name")?;
        let name = fields.need("name", name)?;
        let arguments = read_object(fields.node("args"))?.unwrap_or_default();
        let id = fields.text("id")?.filter(|id| !id.is_empty());
        fields.finish(losses);
        Ok(Some(PartKind::Call(Call {
            id,
            name,
            arguments: Arguments::Tree(Json::Object(arguments)),
            signature: None,
            kind: ToolKind::Function,
        })))
    })
}

type Object<'a> = serde_json_borrow::ObjectAsVec<'a>;

fn read_object<'a>(node: Option<Node<'a, '_>>) -> Result<Option<Object<'a>>, ApiError> {
    match node.map(|node| (node.value, node.path)) {
        None => Ok(None),
        Some((Json::Object(object), _)) => Ok(Some(object)),
        Some((_, path)) => Err(path.wrong("an object")),
    }
}

fn read_result<'a>(
    node: Node<'a, '_>,
    role: Role,
    losses: &mut Losses,
) -> Result<Option<PartKind<'a>>, ApiError> {
    if role == Role::Model {
        return Err(node.path.wrong("the role user: a model answers no calls"));
    }
    node.fields(|mut fields| {
        let name = fields.text("name")?;
        let name = fields.need("name", name)?;
        let (text, failed) = match read_object(fields.node("response"))? {
            Some(response) => read_output(response),
            None => (None, false),
        };
        let mut parts: Vec<Part<'a>> = Vec::new();
        parts.extend(text.map(|text| Part {
            kind: PartKind::Text(text),
            at: None,
        }));
        fields.each("parts", |at, node| {
            let media = node.fields(|fields| read_result_media(fields, losses))?;
            parts.extend(media.map(|media| Part {
                kind: PartKind::Media(media),
                at: Some(at),
            }));
            Ok(())
        })?;
        let id = fields.text("id")?.filter(|id| !id.is_empty());
        fields.finish(losses);
        Ok(Some(PartKind::Result(ToolResult {
            id,
            name: Some(name),
            parts,
            failed,
        })))
    })
}

/// `output` and `error` mean something when they stand alone; any other object is the output.
fn read_output(response: Object<'_>) -> (Option<Text<'_>>, bool) {
    let key = response.keys().next().filter(|_| response.len() == 1);
    let failed = match key {
        Some("output") => false,
        Some("error") => true,
        _ => return (Some(compact(&Json::Object(response))), false),
    };
    let text = response.into_vec().pop().map(|(_, value)| match value {
        Json::Str(text) => text,
        other => compact(&other),
    });
    (text, failed)
}

/// With the keys in the client's order, which the tree's own `Display` does not keep.
fn compact<'b>(tree: &Json<'_>) -> Text<'b> {
    let json = serde_json::to_string(tree).expect("a tree of JSON always serialises");
    json.into()
}

fn read_result_media<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Media<'a>>, ApiError> {
    let inline = field_names::node(&mut fields, field_names::INLINE)
        .map(|node| node.fields(|fields| read_inline(fields, losses)))
        .transpose()?;
    let file = field_names::node(&mut fields, field_names::FILE)
        .map(|node| node.fields(|fields| read_file(fields, losses)))
        .transpose()?;
    fields.finish(losses);
    Ok(inline.or(file))
}

/// Of code that the upstream itself ran, what it printed stays.
fn read_execution<'a>(
    node: Node<'a, '_>,
    _role: Role,
    losses: &mut Losses,
) -> Result<Option<PartKind<'a>>, ApiError> {
    losses.approximated(FieldLocation::Path(node.path.to_string().into()));
    node.fields(|mut fields| Ok(fields.text("output")?.map(PartKind::Text)))
}
