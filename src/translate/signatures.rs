//! Keeps the signatures of a response for clients that do not send them back: records them, and
//! restores them in the request that continues from it.

use std::collections::{HashMap, HashSet};

use crate::formats::call_id;
use crate::model::{
    Block, Call, Delta, Event, Format, Part, PartKind, Request, Response, Role, Signature,
    SignatureLookup, SignedPart, SignedParts, Text, Turn,
};

/// The most bytes of signed parts that are kept of a response.
const MAX_BYTES: usize = 256 << 10;

/// The most bytes of signed parts that are restored again in a request, after they were restored in a later step:
/// a short request that names one call many times must not become a long one.
const MAX_REPEATED_BYTES: usize = MAX_BYTES;

/// The most bytes of signed parts that are fetched for a request, those of its last steps first. No model takes
/// more, and a short request that names a call of every response must not become a long one.
const MAX_FETCHED_BYTES: usize = 4 << 20;

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

    /// Takes room for what a part has. Without enough for all parts none is kept.
    fn take_room(&mut self, bytes: usize) -> bool {
        self.size += bytes;
        if self.size > MAX_BYTES {
            self.signed_parts = Vec::new();
            self.open = false;
        }
        self.size <= MAX_BYTES
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
        if self.take_room(size_of::<SignedPart>() + block.size()) {
            self.signed_parts.push(part);
            self.open = true;
        }
    }

    fn push_delta(&mut self, delta: &Delta<'_>) {
        if matches!(delta, Delta::Text(_) | Delta::Signature(_))
            && !self.take_room(delta.text_size())
        {
            return;
        }
        match (self.signed_parts.last_mut(), delta) {
            (Some(SignedPart::Reasoning { text, .. }), Delta::Text(more)) => {
                text.push_str(more);
            }
            (
                Some(SignedPart::Reasoning { signature, .. } | SignedPart::Call { signature, .. }),
                Delta::Signature(new),
            ) => {
                *signature = Some(new.clone().into_owned());
            }
            _ => {}
        }
    }

    /// Takes the parts, if a call can be used to look them up and a signature is among them.
    pub(super) fn take(&mut self) -> Option<SignedParts> {
        let signed_parts = SignedParts(std::mem::take(&mut self.signed_parts));
        let has_signature = signed_parts.0.iter().any(|part| part.signature().is_some());
        let is_small = self.size <= MAX_BYTES && signed_parts.size() <= MAX_BYTES;
        (self.calls > 0 && has_signature && is_small).then_some(signed_parts)
    }
}

/// Returns the signed parts of a JSON response.
pub(super) fn of_response(response: &Response<'_>) -> Option<SignedParts> {
    if !response.choices.first()?.parts.iter().any(is_signed) {
        return None;
    }
    let mut recorder = SignatureRecorder::default();
    response.unfold(&mut |event| recorder.record_event(&event));
    recorder.take()
}

/// Restores the signed parts of every step of the model, where the upstream can verify them, the
/// client has not sent all of them itself, and what it has sent belongs to them.
pub(super) fn restore(request: &mut Request<'_>, upstream: Format, recall: &dyn SignatureLookup) {
    let fetched = fetch_responses(&request.turns, upstream, recall);
    let mut responses: HashMap<u64, SignedResponse<'_>> = fetched
        .iter()
        .map(|(number, signed_parts)| (*number, SignedResponse::new(signed_parts)))
        .collect();
    let mut repeated = 0;
    let steps = request.turns.chunk_by_mut(is_same_step);
    // The last steps first: these are what an upstream verifies.
    for step in steps.rev().filter(|step| is_incomplete(step)) {
        let Some(number) = find_response(step, &responses, recall) else {
            continue;
        };
        let Some(response) = responses.get_mut(&number) else {
            continue;
        };
        if std::mem::replace(&mut response.is_restored, true) {
            repeated += response.size;
        }
        if repeated <= MAX_REPEATED_BYTES && has_all_signatures(response.parts, step) {
            restore_step(step, response);
        }
    }
}

/// Tells whether two turns are of one step: some clients send a step as several turns, one for each chunk of a
/// stream.
fn is_same_step(turn: &Turn<'_>, next: &Turn<'_>) -> bool {
    turn.role == Role::Model && next.role == Role::Model
}

/// The signed parts of an earlier response, and where its calls stand among them.
struct SignedResponse<'s> {
    parts: &'s [SignedPart],
    size: usize,
    /// The positions of a call by its id and name, in ascending order. An upstream may number its calls anew in every
    /// response: the name must match as well.
    calls: HashMap<(&'s str, &'s str), Vec<usize>>,
    is_restored: bool,
}

impl<'s> SignedResponse<'s> {
    fn new(signed_parts: &'s SignedParts) -> SignedResponse<'s> {
        let mut calls = HashMap::<_, Vec<usize>>::new();
        for (position, part) in signed_parts.0.iter().enumerate() {
            if let SignedPart::Call { id, name, .. } = part {
                calls.entry((&**id, &**name)).or_default().push(position);
            }
        }
        SignedResponse {
            parts: &signed_parts.0,
            size: signed_parts.size(),
            calls,
            is_restored: false,
        }
    }

    fn has_call(&self, call: &Call<'_>) -> bool {
        self.position_of(call, 0).is_some()
    }

    /// Finds a call at this position or behind it.
    fn position_of(&self, call: &Call<'_>, from: usize) -> Option<usize> {
        let positions = self.calls.get(&(call.id.as_deref()?, &*call.name))?;
        let next = positions.partition_point(|position| *position < from);
        positions.get(next).copied()
    }
}

/// Fetches the signed parts of each response that the incomplete steps continue from, and that the upstream can verify.
fn fetch_responses(
    turns: &[Turn<'_>],
    upstream: Format,
    recall: &dyn SignatureLookup,
) -> HashMap<u64, SignedParts> {
    let (mut fetched, mut seen) = (HashMap::new(), HashSet::new());
    let mut size = 0;
    let steps = turns.chunk_by(is_same_step).rev();
    for call in steps.filter(|step| is_incomplete(step)).flat_map(calls_of) {
        if size >= MAX_FETCHED_BYTES {
            break;
        }
        let number = call
            .id
            .as_deref()
            .and_then(|id| recall.response_of_call(id));
        let Some(number) = number.filter(|number| seen.insert(*number)) else {
            continue;
        };
        let signed_parts = recall.signed_parts(number);
        size += signed_parts.as_ref().map_or(0, SignedParts::size);
        if let Some(signed_parts) = signed_parts
            && signed_parts.issued_by(upstream)
        {
            fetched.insert(number, signed_parts);
        }
    }
    fetched
}

/// Finds the response that a step is of.
fn find_response(
    step: &[Turn<'_>],
    responses: &HashMap<u64, SignedResponse<'_>>,
    recall: &dyn SignatureLookup,
) -> Option<u64> {
    if responses.is_empty() {
        return None;
    }
    calls_of(step).find_map(|call| {
        let number = recall.response_of_call(call.id.as_deref()?)?;
        let response = responses.get(&number)?;
        response.has_call(call).then_some(number)
    })
}

fn parts_of<'t, 'a>(step: &'t [Turn<'a>]) -> impl Iterator<Item = &'t Part<'a>> {
    step.iter().flat_map(|turn| &turn.parts)
}

fn calls_of<'t, 'a>(step: &'t [Turn<'a>]) -> impl Iterator<Item = &'t Call<'a>> {
    parts_of(step).filter_map(|part| match &part.kind {
        PartKind::Call(call) => Some(call),
        _ => None,
    })
}

/// Whether a step of the model has no signature, or one without the text that it was made for: a client which was
/// not shown the reasoning sends the signature alone.
fn is_incomplete(step: &[Turn<'_>]) -> bool {
    if step.first().is_none_or(|turn| turn.role != Role::Model) {
        return false;
    }
    let is_bare = |part: &Part<'_>| {
        let has_text = matches!(&part.kind, PartKind::Reasoning { text, .. } if !text.is_empty());
        !has_text && signature_of(part).is_some_and(|signature| signature.issuer.needs_text())
    };
    !parts_of(step).any(is_signed) || parts_of(step).any(is_bare)
}

fn has_all_signatures(signed_parts: &[SignedPart], step: &[Turn<'_>]) -> bool {
    let stored = signed_parts.iter().filter_map(SignedPart::signature);
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

/// Adds signatures and signed reasoning: reasoning from before any call comes first, the rest before
/// its call. It replaces the reasoning that the client sent, which has the same text.
fn restore_step(step: &mut [Turn<'_>], response: &SignedResponse<'_>) {
    let stored = response.parts;
    let is_call = |part: &SignedPart| matches!(part, SignedPart::Call { .. });
    let mut next = stored.iter().position(is_call).unwrap_or(stored.len());
    let mut leading = stored[..next].iter().filter_map(reasoning);
    for turn in step {
        let mut out: Vec<Part<'_>> = leading.by_ref().collect();
        for mut part in std::mem::take(&mut turn.parts) {
            match &mut part.kind {
                PartKind::Reasoning { .. } => continue,
                PartKind::Call(call) => {
                    if let Some(at) = response.position_of(call, next) {
                        out.extend(stored[next..at].iter().filter_map(reasoning));
                        call.signature = stored[at].signature().cloned();
                        next = at + 1;
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

#[cfg(test)]
mod tests;
