//! Thoughts and signatures in the extension keys `reasoning_content` and `reasoning_details`.

use serde::Serialize;

use super::request::needed;
use crate::json::{Fields, Path};
use crate::model::{ApiError, Call, FieldLocation, Losses, Part, PartKind, Signature, Text};

/// What an assistant message says of its thoughts.
#[derive(Default)]
pub(super) struct Reasoning<'a> {
    pub(super) thoughts: Vec<Part<'a>>,
    pub(super) signatures: CallSignatures<'a>,
}

/// Seals that belong to calls, by the id of the call.
#[derive(Default)]
pub(super) struct CallSignatures<'a>(Vec<(Text<'a>, Signature<'a>)>);

impl<'a> CallSignatures<'a> {
    /// Puts each signature on its call; one whose call is gone proves nothing any more.
    pub(super) fn fasten(self, calls: &mut [Call<'a>], message: &Path<'_>, losses: &mut Losses) {
        for (id, signature) in self.0 {
            match calls.iter_mut().find(|call| call.id.as_ref() == Some(&id)) {
                Some(call) => call.signature = Some(signature),
                None => drop_path(&Path::Key(message, "reasoning_details"), losses),
            }
        }
    }
}

pub(super) fn read<'a>(
    message: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Reasoning<'a>, ApiError> {
    let content = message.text("reasoning_content")?;
    let plain = message.text("reasoning")?;
    let mut reasoning = Reasoning::default();
    message.each("reasoning_details", |_, node| {
        node.fields(|detail| read_detail(detail, &mut reasoning, losses))
    })?;
    // The plain text repeats what the details say; it counts only where they say nothing.
    let says = |part: &Part<'_>| matches!(&part.kind, PartKind::Reasoning { text, .. } if !text.is_empty());
    let text = content.or(plain).filter(|text| !text.is_empty());
    if let Some(text) = text
        && !reasoning.thoughts.iter().any(says)
    {
        reasoning.thoughts.insert(0, thought(text, None));
    }
    Ok(reasoning)
}

fn read_detail<'a>(
    mut detail: Fields<'a, '_>,
    reasoning: &mut Reasoning<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let kind = needed(&mut detail, "type")?.text()?;
    // Bookkeeping of the list itself.
    detail.text("format")?;
    detail.u64("index")?;
    let id = detail.text("id")?;
    match &*kind {
        "reasoning.text" => {
            let text = detail.text("text")?.unwrap_or_default();
            let proof = read_proof(&mut detail, "signature")?;
            // Words without a proof are told of where they are left out.
            if proof.is_foreign && text.is_empty() {
                drop_path(&Path::Key(&detail.path, "signature"), losses);
            }
            reasoning.thoughts.push(thought(text, proof.signature));
        }
        "reasoning.summary" => {
            let text = detail.text("summary")?.unwrap_or_default();
            reasoning.thoughts.push(thought(text, None));
        }
        "reasoning.encrypted" => {
            let proof = read_proof(&mut detail, "data")?;
            if proof.is_foreign {
                drop_path(&Path::Key(&detail.path, "data"), losses);
            }
            match (proof.signature, id) {
                (Some(signature), Some(id)) => reasoning.signatures.0.push((id, signature)),
                (Some(signature), None) => reasoning
                    .thoughts
                    .push(thought(Text::default(), Some(signature))),
                (None, _) => {}
            }
        }
        _ => drop_path(&detail.path, losses),
    }
    detail.finish(losses);
    Ok(())
}

fn thought<'a>(text: Text<'a>, signature: Option<Signature<'a>>) -> Part<'a> {
    let kind = PartKind::Reasoning { text, signature };
    Part { kind, at: None }
}

/// Only signatures that we wrapped say who issued them; a raw one may be anybody's and goes nowhere.
struct Proof<'a> {
    signature: Option<Signature<'a>>,
    is_foreign: bool,
}

fn read_proof<'a>(detail: &mut Fields<'a, '_>, key: &str) -> Result<Proof<'a>, ApiError> {
    let wrapped = detail.text(key)?.unwrap_or_default();
    let signature = Signature::unwrap_text(&wrapped);
    let is_foreign = signature.is_none() && !wrapped.is_empty();
    Ok(Proof {
        signature,
        is_foreign,
    })
}

fn drop_path(path: &Path<'_>, losses: &mut Losses) {
    losses.dropped(FieldLocation::Path(path.to_string().into()));
}

/// One entry of `reasoning_details`: the carrier of a signature, or a thought that came without one
/// among others that did. Whoever reads an entry with words reads no `reasoning_content`.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum Detail<'a> {
    #[serde(rename = "reasoning.text")]
    Text {
        text: &'a str,
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

const FORMAT: &str = "omniglot-v1";

impl<'a> Detail<'a> {
    /// The signature of a thought, which may have no words to show.
    pub(super) fn of_thought(text: &'a str, wrapped: String, index: usize) -> Detail<'a> {
        if text.is_empty() {
            return Detail::Encrypted {
                data: wrapped,
                id: None,
                format: FORMAT,
                index,
            };
        }
        Detail::Text {
            text,
            signature: Some(wrapped),
            format: FORMAT,
            index,
        }
    }

    pub(super) fn unproven(text: &'a str, index: usize) -> Detail<'a> {
        Detail::Text {
            text,
            signature: None,
            format: FORMAT,
            index,
        }
    }

    pub(super) fn of_call(id: Text<'a>, wrapped: String, index: usize) -> Detail<'a> {
        Detail::Encrypted {
            data: wrapped,
            id: Some(id),
            format: FORMAT,
            index,
        }
    }
}
