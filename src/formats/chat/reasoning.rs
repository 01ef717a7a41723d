//! Reasoning and its signatures, in the extension fields `reasoning_content` and `reasoning_details`.

use std::collections::HashMap;
use std::mem::take;

use serde::Serialize;
use smallvec::SmallVec;

use super::fragment::ChatFragment;
use super::reader::required;
use super::text::non_empty;
use crate::json::{Fields, Path, from_json};
use crate::model::{ApiError, Call, FieldLocation, Losses, Part, PartKind, Signature, Text};

/// The reasoning of an assistant message.
#[derive(Default)]
pub(super) struct AssistantReasoning<'a> {
    pub(super) parts: Vec<Part<'a>>,
    pub(super) signatures: CallSignatures<'a>,
}

/// Signatures that belong to calls, by the id of the call.
#[derive(Default)]
pub(super) struct CallSignatures<'a>(Vec<(Text<'a>, Signature<'a>)>);

impl<'a> CallSignatures<'a> {
    /// Puts each signature on its call; one without its call is dropped.
    pub(super) fn attach(self, calls: &mut [Call<'a>], message: &Path<'_>, losses: &mut Losses) {
        let positions = signed_positions(&self.0, calls.iter().map(|call| call.id.as_deref()));
        for ((_, signature), position) in self.0.into_iter().zip(positions) {
            match position {
                Some(at) => calls[at].signature = Some(signature),
                None => report_dropped(&Path::Key(message, "reasoning_details"), losses),
            }
        }
    }
}

/// Finds what each signature belongs to: the first with its id among `ids`, which are looked up and not
/// searched for every signature.
pub(super) fn signed_positions<'i>(
    signatures: &[(Text<'_>, Signature<'_>)],
    ids: impl Iterator<Item = Option<&'i str>>,
) -> Vec<Option<usize>> {
    if signatures.is_empty() {
        return Vec::new();
    }
    let mut by_id = HashMap::new();
    for (at, id) in ids.enumerate() {
        if let Some(id) = id {
            by_id.entry(id).or_insert(at);
        }
    }
    let ids = signatures.iter().map(|(id, _)| &**id);
    ids.map(|id| by_id.get(id).copied()).collect()
}

/// Decodes the reasoning fields of an assistant message in a request.
pub(super) fn decode_reasoning<'a>(
    message: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<AssistantReasoning<'a>, ApiError> {
    let content = message.text("reasoning_content")?;
    let plain = message.text("reasoning")?;
    let mut reasoning = AssistantReasoning::default();
    message.each("reasoning_details", |_, node| {
        node.fields(|detail| decode_detail(detail, &mut reasoning, losses))
    })?;
    // The plain text repeats the text of the details and is used only where they have none.
    let has_text = |part: &Part<'_>| matches!(&part.kind, PartKind::Reasoning { text, .. } if !text.is_empty());
    let text = content.or(plain).filter(|text| !text.is_empty());
    if let Some(text) = text
        && !reasoning.parts.iter().any(has_text)
    {
        reasoning.parts.insert(0, reasoning_part(text, None));
    }
    Ok(reasoning)
}

/// Decodes one entry of `reasoning_details` in a request.
fn decode_detail<'a>(
    mut detail: Fields<'a, '_>,
    reasoning: &mut AssistantReasoning<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let kind = required(&mut detail, "type")?.text()?;
    // These number the entries and carry no content.
    detail.text("format")?;
    detail.u64("index")?;
    let id = detail.text("id")?;
    match &*kind {
        "reasoning.text" => {
            let text = detail.text("text")?.unwrap_or_default();
            let decoded = decode_signature(&mut detail, "signature")?;
            // Text that stays without a signature is reported where it is encoded.
            if decoded.is_foreign && text.is_empty() {
                report_dropped(&Path::Key(&detail.path, "signature"), losses);
            }
            reasoning
                .parts
                .push(reasoning_part(text, decoded.signature));
        }
        "reasoning.summary" => {
            let text = detail.text("summary")?.unwrap_or_default();
            reasoning.parts.push(reasoning_part(text, None));
        }
        "reasoning.encrypted" => {
            let decoded = decode_signature(&mut detail, "data")?;
            if decoded.is_foreign {
                report_dropped(&Path::Key(&detail.path, "data"), losses);
            }
            match (decoded.signature, id) {
                (Some(signature), Some(id)) => reasoning.signatures.0.push((id, signature)),
                (Some(signature), None) => reasoning
                    .parts
                    .push(reasoning_part(Text::default(), Some(signature))),
                (None, _) => {}
            }
        }
        _ => report_dropped(&detail.path, losses),
    }
    detail.finish(losses);
    Ok(())
}

fn reasoning_part<'a>(text: Text<'a>, signature: Option<Signature<'a>>) -> Part<'a> {
    let kind = PartKind::Reasoning { text, signature };
    Part { kind, at: None }
}

/// A signature of a request. Only one that this gateway has wrapped names its issuer; a bare one may be
/// of any vendor and is sent to none.
struct DecodedSignature<'a> {
    signature: Option<Signature<'a>>,
    is_foreign: bool,
}

fn decode_signature<'a>(
    detail: &mut Fields<'a, '_>,
    key: &str,
) -> Result<DecodedSignature<'a>, ApiError> {
    let wrapped = detail.text(key)?.unwrap_or_default();
    let signature = Signature::unwrap_text(&wrapped);
    let is_foreign = signature.is_none() && !wrapped.is_empty();
    Ok(DecodedSignature {
        signature,
        is_foreign,
    })
}

fn report_dropped(path: &Path<'_>, losses: &mut Losses) {
    losses.dropped(FieldLocation::Path(path.to_string().into()));
}

from_json! {
    /// One entry of `reasoning_details` in a response or a chunk.
    pub(super) struct CompletionReasoningDetail<'a> {
        "text" => pub(super) text: Option<Text<'a>>,
        "summary" => pub(super) summary: Option<Text<'a>>,
        "signature" => pub(super) signature: Option<Text<'a>>,
        "data" => pub(super) data: Option<Text<'a>>,
        /// The call that the data belong to.
        "id" => pub(super) id: Option<Text<'a>>,
    }
}

impl CompletionReasoningDetail<'_> {
    pub(super) fn has_text(&self) -> bool {
        let texts = [&self.text, &self.summary];
        texts.into_iter().flatten().any(|text| !text.is_empty())
    }
}

/// Decodes one entry of `reasoning_details` in a response or a chunk; its text only if `with_text`.
pub(super) fn decode_reasoning_detail<'a>(
    detail: CompletionReasoningDetail<'a>,
    with_text: bool,
    emit: &mut dyn FnMut(ChatFragment<'a>),
) {
    if let Some(text) = non_empty(detail.text).or_else(|| non_empty(detail.summary))
        && with_text
    {
        emit(ChatFragment::Reasoning(text));
    }
    let Some(wrapped) = non_empty(detail.signature).or_else(|| non_empty(detail.data)) else {
        return;
    };
    emit(
        match (Signature::unwrap_text(&wrapped), non_empty(detail.id)) {
            (None, _) => ChatFragment::ForeignSignature,
            (Some(signature), Some(id)) => ChatFragment::CallSignature { id, signature },
            (Some(signature), None) => ChatFragment::Signature(signature),
        },
    );
}

/// One encoded entry of `reasoning_details`: it carries a signature, or reasoning without a signature
/// beside other entries with one. A client that finds text here does not read `reasoning_content`.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum ChatReasoningDetail<'a> {
    #[serde(rename = "reasoning.text")]
    Text {
        text: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        format: &'static str,
        index: usize,
    },
    #[serde(rename = "reasoning.encrypted")]
    Encrypted {
        data: String,
        id: Option<Text<'a>>,
        format: &'static str,
        index: usize,
    },
}

/// The `format` of the entries that this gateway encodes.
const FORMAT: &str = "omniglot-v1";

/// Decides which reasoning of a choice has an entry, and numbers the entries.
#[derive(Default)]
pub(super) struct ReasoningDetails<'held> {
    count: usize,
    /// Reasoning comes with both text and a signature: then all that has text gets an entry.
    has_signed_text: bool,
    /// Reasoning without a signature, as long as no other has come with one.
    unsigned: SmallVec<[Text<'held>; 1]>,
}

impl<'held> ReasoningDetails<'held> {
    /// Begins the entries of a choice whose parts are known.
    pub(super) fn of_parts(parts: &[Part<'_>]) -> ReasoningDetails<'held> {
        let has_signed_text = parts.iter().any(|part| {
            matches!(&part.kind, PartKind::Reasoning { text, signature: Some(_) } if !text.is_empty())
        });
        ReasoningDetails {
            has_signed_text,
            ..ReasoningDetails::default()
        }
    }

    /// Adds a block that has ended: reasoning, or a call, by its id. The signature is wrapped.
    pub(super) fn add(
        &mut self,
        text: Text<'held>,
        call_id: Option<Text<'held>>,
        signature: Option<String>,
        emit: &mut dyn FnMut(ChatReasoningDetail<'held>),
    ) {
        match (text.is_empty(), &signature) {
            (true, None) => return,
            (true, Some(_)) => {}
            (false, None) if !self.has_signed_text => return self.unsigned.push(text),
            (false, _) => {
                self.has_signed_text = true;
                for text in take(&mut self.unsigned) {
                    emit(self.next_entry(text, None, None));
                }
            }
        }
        emit(self.next_entry(text, call_id, signature));
    }

    fn next_entry(
        &mut self,
        text: Text<'held>,
        id: Option<Text<'held>>,
        signature: Option<String>,
    ) -> ChatReasoningDetail<'held> {
        let (format, index) = (FORMAT, self.count);
        self.count += 1;
        match signature {
            Some(data) if text.is_empty() => ChatReasoningDetail::Encrypted {
                data,
                id,
                format,
                index,
            },
            signature => ChatReasoningDetail::Text {
                text,
                signature,
                format,
                index,
            },
        }
    }
}
