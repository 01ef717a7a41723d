//! Keeps the signatures of a response for clients that do not send them back: records them, and
//! restores them in the request that continues from it.

use std::collections::HashSet;

use crate::formats::call_id;
use crate::model::{
    Block, Call, Delta, Event, Format, Part, PartKind, Request, Response, Role, Signature,
    SignatureLookup, SignedPart, SignedParts, Text, Turn,
};

/// The most bytes of signed parts that are kept of a response.
const MAX_BYTES: usize = 256 << 10;

/// Records the signed parts of a stream's first choice.
#[derive(Default)]
pub(super) struct SignatureRecorder {
    upstream_id: String,
    signed_parts: Vec<SignedPart>,
    size: usize,
    calls: u32,
    /// The last part is not complete.
    open: bool,
}

impl SignatureRecorder {
    /// Records one event.
    pub(super) fn record_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start { id, .. } => self.upstream_id = id.to_string(),
            Event::Open { choice: 0, block } => self.open_part(block),
            Event::Delta { choice: 0, delta } if self.open => self.push_delta(delta),
            Event::Close { choice: 0 } => self.open = false,
            _ => {}
        }
    }

    fn open_part(&mut self, block: &Block<'_>) {
        let part = match block {
            Block::Reasoning => SignedPart::Reasoning {
                text: String::new(),
                signature: None,
            },
            Block::Call { id, name, .. } => {
                let made = || call_id(&self.upstream_id, 0, self.calls);
                let id = id.as_ref().map_or_else(made, Text::to_string);
                self.calls += 1;
                SignedPart::Call {
                    id,
                    name: name.to_string(),
                    signature: None,
                }
            }
            Block::Text | Block::Refusal | Block::Media(_) => return,
        };
        self.signed_parts.push(part);
        self.open = true;
    }

    fn push_delta(&mut self, delta: &Delta<'_>) {
        match (self.signed_parts.last_mut(), delta) {
            (Some(SignedPart::Reasoning { text, .. }), Delta::Text(more)) => {
                self.size += more.len();
                if self.size <= MAX_BYTES {
                    text.push_str(more);
                }
            }
            (
                Some(SignedPart::Reasoning { signature, .. } | SignedPart::Call { signature, .. }),
                Delta::Signature(new),
            ) => {
                self.size += new.data.len();
                *signature = Some(owned(new));
            }
            _ => {}
        }
    }

    /// Takes the parts, if a call can be used to look them up and a signature is among them.
    pub(super) fn take(&mut self) -> Option<SignedParts> {
        let signed_parts = SignedParts(std::mem::take(&mut self.signed_parts));
        let has_signature = signed_parts.0.iter().any(|part| part.signature().is_some());
        (self.calls > 0 && has_signature && self.size <= MAX_BYTES).then_some(signed_parts)
    }
}

/// Returns the signed parts of a JSON response.
pub(super) fn of_response(response: &Response<'_>) -> Option<SignedParts> {
    let parts = &response.choices.first()?.parts;
    let is_call = |part: &Part<'_>| matches!(part.kind, PartKind::Call(_));
    if !parts.iter().any(is_signed) || !parts.iter().any(is_call) {
        return None;
    }
    let mut signed_parts = SignedParts(Vec::with_capacity(parts.len()));
    let mut calls = 0;
    for part in parts {
        signed_parts.0.push(match &part.kind {
            PartKind::Reasoning { text, signature } => SignedPart::Reasoning {
                text: text.to_string(),
                signature: signature.as_ref().map(owned),
            },
            PartKind::Call(call) => {
                let made = || call_id(&response.id, 0, calls);
                let id = call.id.as_ref().map_or_else(made, Text::to_string);
                calls += 1;
                SignedPart::Call {
                    id,
                    name: call.name.to_string(),
                    signature: call.signature.as_ref().map(owned),
                }
            }
            _ => continue,
        });
    }
    (signed_parts.size() <= MAX_BYTES).then_some(signed_parts)
}

fn owned(signature: &Signature<'_>) -> Signature<'static> {
    Signature {
        issuer: signature.issuer,
        data: signature.data.to_string().into(),
    }
}

/// Restores the signed parts of every step of the model, where the upstream can verify them, the
/// client has not sent all of them itself, and what it has sent belongs to them.
pub(super) fn restore(request: &mut Request<'_>, upstream: Format, recall: &dyn SignatureLookup) {
    // Some clients send a step as several turns: one for each chunk of a stream.
    let steps = request
        .turns
        .chunk_by_mut(|turn, next| turn.role == Role::Model && next.role == Role::Model);
    for step in steps.filter(|step| step[0].role == Role::Model) {
        if !is_incomplete(step) {
            continue;
        }
        if let Some(signed_parts) = find_signed_parts(step, recall)
            && signed_parts.issued_by(upstream)
            && has_all_signatures(&signed_parts, step)
        {
            restore_step(step, &signed_parts.0);
        }
    }
}

fn parts_of<'t, 'a>(step: &'t [Turn<'a>]) -> impl Iterator<Item = &'t Part<'a>> {
    step.iter().flat_map(|turn| &turn.parts)
}

/// Whether a step has no signature, or one without the text that it was made for: a client which was
/// not shown the reasoning sends the signature alone.
fn is_incomplete(step: &[Turn<'_>]) -> bool {
    let is_bare = |part: &Part<'_>| {
        let has_text = matches!(&part.kind, PartKind::Reasoning { text, .. } if !text.is_empty());
        !has_text && signature_of(part).is_some_and(|signature| signature.issuer.needs_text())
    };
    !parts_of(step).any(is_signed) || parts_of(step).any(is_bare)
}

fn has_all_signatures(signed_parts: &SignedParts, step: &[Turn<'_>]) -> bool {
    let stored = signed_parts.0.iter().filter_map(SignedPart::signature);
    let stored: HashSet<&str> = stored.map(|signature| &*signature.data).collect();
    let mut sent = parts_of(step).filter_map(signature_of);
    sent.all(|signature| stored.contains(&*signature.data))
}

fn is_signed(part: &Part<'_>) -> bool {
    signature_of(part).is_some()
}

fn signature_of<'t, 'a>(part: &'t Part<'a>) -> Option<&'t Signature<'a>> {
    match &part.kind {
        PartKind::Reasoning { signature, .. } => signature.as_ref(),
        PartKind::Call(call) => call.signature.as_ref(),
        _ => None,
    }
}

fn find_signed_parts(step: &[Turn<'_>], recall: &dyn SignatureLookup) -> Option<SignedParts> {
    parts_of(step).find_map(|part| match &part.kind {
        PartKind::Call(call) => {
            let signed_parts = recall.signed_parts(call.id.as_ref()?)?;
            let fits = signed_parts.0.iter().any(|part| is_of_call(part, call));
            fits.then_some(signed_parts)
        }
        _ => None,
    })
}

/// Adds signatures and signed reasoning: reasoning from before any call comes first, the rest before
/// its call. It replaces the reasoning that the client sent, which has the same text.
fn restore_step(step: &mut [Turn<'_>], signed_parts: &[SignedPart]) {
    let is_call = |part: &SignedPart| matches!(part, SignedPart::Call { .. });
    let first_call = signed_parts
        .iter()
        .position(is_call)
        .unwrap_or(signed_parts.len());
    let (leading, mut rest) = signed_parts.split_at(first_call);
    let mut leading = leading.iter().filter_map(reasoning);
    for turn in step {
        let mut out: Vec<Part<'_>> = leading.by_ref().collect();
        for mut part in std::mem::take(&mut turn.parts) {
            match &mut part.kind {
                PartKind::Reasoning { .. } => continue,
                PartKind::Call(call) => {
                    if let Some(at) = rest.iter().position(|part| is_of_call(part, call)) {
                        out.extend(rest[..at].iter().filter_map(reasoning));
                        call.signature = rest[at].signature().cloned();
                        rest = &rest[at + 1..];
                    }
                }
                _ => {}
            }
            out.push(part);
        }
        turn.parts = out;
    }
}

fn reasoning<'a>(part: &SignedPart) -> Option<Part<'a>> {
    let SignedPart::Reasoning { text, signature } = part else {
        return None;
    };
    let kind = PartKind::Reasoning {
        text: text.clone().into(),
        signature: signature.clone(),
    };
    Some(Part { kind, at: None })
}

fn is_of_call(part: &SignedPart, call: &Call<'_>) -> bool {
    match part {
        // An upstream may number its calls anew in every response: the name must match as well.
        SignedPart::Call { id, name, .. } => {
            call.id.as_deref() == Some(id.as_str()) && call.name == *name
        }
        SignedPart::Reasoning { .. } => false,
    }
}

#[cfg(test)]
mod tests;
