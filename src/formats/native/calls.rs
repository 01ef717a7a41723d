//! `functionCall` and `functionResponse` in the contents of a request.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json_borrow::ObjectAsVec;
use smallvec::SmallVec;

use super::field_names;
use super::media::{MediaPayload, decode_file_data, decode_inline_data, encode_media};
use crate::formats::media_kind::MediaKind;
use crate::json::{Fields, Node};
use crate::model::{
    ApiError, Arguments, Call, FieldLocation, Json, Losses, Media, Part, PartKind, Role, Source,
    Text, ToolKind, ToolResult,
};

/// Decodes a `functionCall`, which only the model may make.
pub(super) fn decode_function_call<'a>(
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
        let arguments = decode_object(fields.node("args"))?.unwrap_or_default();
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

fn decode_object<'a>(node: Option<Node<'a, '_>>) -> Result<Option<ObjectAsVec<'a>>, ApiError> {
    match node.map(|node| (node.value, node.path)) {
        None => Ok(None),
        Some((Json::Object(object), _)) => Ok(Some(object)),
        Some((_, path)) => Err(path.wrong("an object")),
    }
}

/// The `functionCall` of a request to an upstream.
#[derive(Serialize)]
pub(super) struct NativeFunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: NativeArgs<'a>,
}

/// The arguments of a call: always an object, whatever the model wrote.
#[derive(Serialize)]
#[serde(untagged)]
enum NativeArgs<'a> {
    Tree(&'a Json<'a>),
    Raw(&'a RawValue),
    Empty {},
    /// The input of a tool that takes free text.
    FreeText {
        input: Text<'a>,
    },
    /// Text that is not a JSON object.
    Invalid {
        #[serde(rename = "_raw")]
        raw: Text<'a>,
    },
}

/// Encodes a call.
pub(super) fn encode_function_call<'a>(
    call: &'a Call<'_>,
    location: impl FnOnce() -> FieldLocation,
    losses: &mut Losses,
) -> NativeFunctionCall<'a> {
    let args = encode_arguments(call);
    if matches!(args, NativeArgs::Invalid { .. }) {
        losses.approximated(location());
    }
    NativeFunctionCall {
        id: call.id.as_deref(),
        name: &call.name,
        args,
    }
}

fn encode_arguments<'a>(call: &'a Call<'_>) -> NativeArgs<'a> {
    match &call.arguments {
        arguments if call.kind == ToolKind::Custom => NativeArgs::FreeText {
            input: arguments.to_text(),
        },
        Arguments::Tree(tree @ Json::Object(_)) => NativeArgs::Tree(tree),
        Arguments::Tree(Json::Null) => NativeArgs::Empty {},
        Arguments::Text(text) if text.trim_ascii().is_empty() => NativeArgs::Empty {},
        Arguments::Text(text) => match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) if raw.get().starts_with('{') => NativeArgs::Raw(raw),
            _ => NativeArgs::Invalid {
                raw: Text::Borrowed(text),
            },
        },
        arguments @ Arguments::Tree(_) => NativeArgs::Invalid {
            raw: arguments.to_text(),
        },
    }
}

/// Decodes a `functionResponse`, which only the user may send.
pub(super) fn decode_function_response<'a>(
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
        let (text, failed) = match decode_object(fields.node("response"))? {
            Some(response) => decode_result_object(response),
            None => (None, false),
        };
        let mut parts: Vec<Part<'a>> = Vec::new();
        parts.extend(text.map(|text| Part {
            kind: PartKind::Text(text),
            at: None,
        }));
        fields.each("parts", |at, node| {
            let media = node.fields(|fields| decode_function_response_part(fields, losses))?;
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

/// Decodes `functionResponse.response` into a text and whether the call failed. `output` and
/// `error` have their meaning only as the single key; any other object is the output as a whole.
fn decode_result_object(response: ObjectAsVec<'_>) -> (Option<Text<'_>>, bool) {
    let key = response.keys().next().filter(|_| response.len() == 1);
    let failed = match key {
        Some("output") => false,
        Some("error") => true,
        _ => return (Some(to_json_text(&Json::Object(response))), false),
    };
    let text = response.into_vec().pop().map(|(_, value)| match value {
        Json::Str(text) => text,
        other => to_json_text(&other),
    });
    (text, failed)
}

/// Serialises a tree with its keys in the client's order, which its `Display` does not keep.
fn to_json_text<'b>(tree: &Json<'_>) -> Text<'b> {
    let json = serde_json::to_string(tree).expect("a tree of JSON always serialises");
    json.into()
}

fn decode_function_response_part<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Media<'a>>, ApiError> {
    let inline = field_names::take(&mut fields, field_names::INLINE_DATA)
        .map(|node| node.fields(|fields| decode_inline_data(fields, losses)))
        .transpose()?;
    let file = field_names::take(&mut fields, field_names::FILE_DATA)
        .map(|node| node.fields(|fields| decode_file_data(fields, losses)))
        .transpose()?;
    fields.finish(losses);
    Ok(inline.or(file))
}

/// The `functionResponse` of a request to an upstream.
#[derive(Serialize)]
pub(super) struct NativeFunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: FunctionResponseBody<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<MediaPayload<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum FunctionResponseBody<'a> {
    Object(Cow<'a, RawValue>),
    Output { output: Text<'a> },
    Error { error: Text<'a> },
}

/// Encodes the result of a call. Media goes to `moved_media` where it cannot stay inside.
pub(super) fn encode_function_response<'a>(
    result: &'a ToolResult<'_>,
    name: &'a str,
    location: &FieldLocation,
    media_inside: bool,
    moved_media: &mut Vec<MediaPayload<'a>>,
    losses: &mut Losses,
) -> Result<NativeFunctionResponse<'a>, ApiError> {
    let (mut text, mut moved): (Option<Text<'a>>, _) = (None, None);
    let mut parts = Vec::new();
    for Part { kind, at } in &result.parts {
        let location = &location.in_tool_result(*at);
        match kind {
            PartKind::Media(media) if !matches!(media.source, Source::Plain(_)) => {
                let payload = encode_media(media, location, losses)?;
                if media_inside && matches!(payload, MediaPayload::InlineData(_)) {
                    parts.push(payload);
                } else {
                    losses.approximated(location.clone());
                    moved_media.push(payload);
                    moved.get_or_insert(MediaKind::of_mime(&media.mime));
                }
            }
            kind => {
                if let PartKind::Media(media) = kind {
                    losses.dropped_if_present(media.name_location(location));
                }
                append_paragraph(&mut text, text_of(kind));
            }
        }
    }
    let text = match (text, moved) {
        (Some(text), _) if !text.is_empty() => text,
        (_, Some(moved)) => moved.moved_notice().into(),
        (text, None) => text.unwrap_or_default(),
    };
    Ok(NativeFunctionResponse {
        id: result.id.as_deref(),
        name,
        response: encode_result_object(text, result.failed),
        parts,
    })
}

fn text_of<'a>(kind: &'a PartKind<'_>) -> &'a str {
    match kind {
        PartKind::Text(text) | PartKind::Refusal(text) | PartKind::Reasoning { text, .. } => text,
        PartKind::Media(media) => match &media.source {
            Source::Plain(text) => text,
            _ => "",
        },
        PartKind::Call(_) | PartKind::Result(_) => "",
    }
}

fn append_paragraph<'a>(text: &mut Option<Text<'a>>, more: &'a str) {
    match text {
        None => *text = Some(more.into()),
        Some(text) => {
            text.to_mut().push_str("\n\n");
            text.to_mut().push_str(more);
        }
    }
}

fn encode_result_object(text: Text<'_>, failed: bool) -> FunctionResponseBody<'_> {
    if failed {
        return FunctionResponseBody::Error { error: text };
    }
    match as_json_object(&text) {
        Some(object) => FunctionResponseBody::Object(object),
        None => FunctionResponseBody::Output { output: text },
    }
}

/// The text itself, if it is a JSON object.
fn as_json_object<'a>(text: &Text<'a>) -> Option<Cow<'a, RawValue>> {
    if !text.trim_ascii_start().starts_with('{') {
        return None;
    }
    match text {
        Text::Borrowed(text) => serde_json::from_str(text).ok().map(Cow::Borrowed),
        Text::Owned(text) => serde_json::from_str(text).ok().map(Cow::Owned),
    }
}

/// The calls of a conversation so far, by their ids: results of other formats name their call only by it.
#[derive(Default)]
pub(super) struct CallNames<'a>(HashMap<&'a str, UnansweredNames<'a>>);

/// The names of the calls of one id that have no result so far, the latest last.
type UnansweredNames<'a> = SmallVec<[&'a str; 1]>;

impl<'a> CallNames<'a> {
    pub(super) fn add(&mut self, call: &'a Call<'_>) {
        if let Some(id) = call.id.as_deref() {
            self.0.entry(id).or_default().push(&call.name);
        }
    }

    /// Finds the name of the call that a result answers, and marks the call as answered. `None` if
    /// another result has answered it before.
    pub(super) fn answer(
        &mut self,
        result: &'a ToolResult<'_>,
        location: &FieldLocation,
    ) -> Result<Option<&'a str>, ApiError> {
        let known = result.id.as_deref().and_then(|id| self.0.get_mut(id));
        if let Some(unanswered) = known {
            return Ok(unanswered.pop());
        }
        result.name.as_deref().map(Some).ok_or_else(|| {
            let message = "the tool result answers no call of this conversation";
            ApiError::invalid(message).at_location(location.clone())
        })
    }
}
