//! The parts of a content in a request.

use std::collections::VecDeque;

use serde::Serialize;

use super::calls::{
    NativeFunctionCall, NativeFunctionResponse, decode_function_call, decode_function_response,
};
use super::field_names::{self, FieldNames};
use super::media::{FileData, InlineData, MediaPayload, decode_file_data, decode_inline_data};
use super::reasoning::{decode_signature, push_reasoning};
use crate::json::{Fields, Node};
use crate::model::{ApiError, Call, FieldLocation, Losses, Part, PartKind, Role, Text};

type PayloadDecoder =
    for<'a> fn(Node<'a, '_>, role: Role, &mut Losses) -> Result<Option<PartKind<'a>>, ApiError>;

/// The payloads of a part, which carries exactly one of them.
static PAYLOADS: [(FieldNames, PayloadDecoder); 7] = [
    (&["text"], |node, _, _| {
        Ok(Some(PartKind::Text(node.text()?)))
    }),
    (field_names::INLINE_DATA, |node, _, losses| {
        let media = node.fields(|fields| decode_inline_data(fields, losses))?;
        Ok(Some(PartKind::Media(media)))
    }),
    (field_names::FILE_DATA, |node, _, losses| {
        let media = node.fields(|fields| decode_file_data(fields, losses))?;
        Ok(Some(PartKind::Media(media)))
    }),
    (field_names::FUNCTION_CALL, decode_function_call),
    (field_names::FUNCTION_RESPONSE, decode_function_response),
    (field_names::EXECUTABLE_CODE, |node, _, losses| {
        losses.dropped(FieldLocation::Path(node.path.to_string().into()));
        Ok(None)
    }),
    (
        field_names::CODE_EXECUTION_RESULT,
        decode_code_execution_result,
    ),
];

/// Decodes a part and appends it to `parts`.
pub(super) fn decode_part<'a>(
    role: Role,
    at: u32,
    mut fields: Fields<'a, '_>,
    parts: &mut Vec<Part<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    // Only the model has thoughts: on a part of the user these two fields are reported as dropped.
    let (mut thought, mut signature) = (false, None);
    if role == Role::Model {
        thought = fields.bool("thought")?.unwrap_or(false);
        signature =
            field_names::take_text(&mut fields, &["thoughtSignature", "thought_signature"])?
                .filter(|data| !data.is_empty())
                .map(decode_signature);
    }
    let mut payload = None;
    for (names, decode) in &PAYLOADS {
        if let Some(node) = field_names::take(&mut fields, names) {
            payload = decode(node, role, losses)?;
            break;
        }
    }
    match payload {
        Some(PartKind::Call(call)) => parts.push(Part {
            kind: PartKind::Call(Call { signature, ..call }),
            at: Some(at),
        }),
        Some(PartKind::Text(text)) if thought => push_reasoning(text, signature, Some(at), parts),
        Some(_) if thought => losses.dropped(FieldLocation::Path(fields.path.to_string().into())),
        kind => {
            // Text and media of the model have no signature of their own: it becomes reasoning
            // before them.
            let kind = kind.filter(|kind| {
                signature.is_none() || !matches!(kind, PartKind::Text(text) if text.is_empty())
            });
            if signature.is_some() {
                push_reasoning(Text::default(), signature, Some(at), parts);
            }
            parts.extend(kind.map(|kind| Part { kind, at: Some(at) }));
        }
    }
    fields.finish(losses);
    Ok(())
}

/// Decodes the output of code that the upstream itself ran; it stays as text.
fn decode_code_execution_result<'a>(
    node: Node<'a, '_>,
    _role: Role,
    losses: &mut Losses,
) -> Result<Option<PartKind<'a>>, ApiError> {
    losses.approximated(FieldLocation::Path(node.path.to_string().into()));
    node.fields(|mut fields| Ok(fields.text("output")?.map(PartKind::Text)))
}

/// A part of a request to an upstream.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativePart<'a> {
    #[serde(flatten)]
    payload: NativePayload<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum NativePayload<'a> {
    Text(&'a str),
    InlineData(InlineData<'a>),
    FileData(FileData<'a>),
    FunctionCall(NativeFunctionCall<'a>),
    FunctionResponse(NativeFunctionResponse<'a>),
}

impl<'a> From<MediaPayload<'a>> for NativePayload<'a> {
    fn from(media: MediaPayload<'a>) -> NativePayload<'a> {
        match media {
            MediaPayload::InlineData(data) => NativePayload::InlineData(data),
            MediaPayload::FileData(data) => NativePayload::FileData(data),
        }
    }
}

impl<'a> From<NativePayload<'a>> for NativePart<'a> {
    fn from(payload: NativePayload<'a>) -> NativePart<'a> {
        NativePart {
            payload,
            thought: false,
            thought_signature: None,
        }
    }
}

impl<'a> NativePart<'a> {
    pub(super) fn is_function_call(&self) -> bool {
        matches!(self.payload, NativePayload::FunctionCall(_))
    }

    /// Sets the signature of a part that has none.
    pub(super) fn set_default_signature(&mut self, signature: &'a str) {
        self.thought_signature.get_or_insert(signature);
    }
}

/// The parts of a turn of the model. A signature that stands apart from its part goes to the next
/// part without one, else to the last part.
#[derive(Default)]
pub(super) struct SignedContentParts<'a> {
    parts: Vec<NativePart<'a>>,
    pending: VecDeque<&'a str>,
}

impl<'a> SignedContentParts<'a> {
    pub(super) fn push(&mut self, payload: NativePayload<'a>, signature: Option<&'a str>) {
        let mut part = NativePart::from(payload);
        part.thought_signature = signature;
        if signature.is_none() {
            part.thought_signature = self.pending.pop_front();
        }
        self.parts.push(part);
    }

    pub(super) fn push_reasoning(&mut self, text: &'a Text<'_>, signature: &'a str) {
        if !text.is_empty() {
            let mut part = NativePart::from(NativePayload::Text(text));
            part.thought = true;
            self.parts.push(part);
        }
        self.pending.push_back(signature);
    }

    pub(super) fn finish(mut self) -> Vec<NativePart<'a>> {
        for signature in self.pending {
            match self.parts.last_mut() {
                Some(part) if !part.thought && part.thought_signature.is_none() => {
                    part.thought_signature = Some(signature);
                }
                _ => {
                    let mut part = NativePart::from(NativePayload::Text(""));
                    part.thought_signature = Some(signature);
                    self.parts.push(part);
                }
            }
        }
        self.parts
    }
}
