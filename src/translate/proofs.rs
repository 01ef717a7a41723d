//! SignedParts for clients that do not send back what they do not know: noted in a reply, put back
//! into the request that goes on from it.

use crate::formats::call_id;
use crate::model::{
    Block, Call, Delta, Event, Format, Part, PartKind, Request, Response, Role, Signature,
    SignatureLookup, SignedPart, SignedParts, Text, Turn,
};

/// More of a reply's thoughts is not worth keeping.
const LIMIT: usize = 256 << 10;

/// Notes the proofs of a reply's first choice as its events pass.
#[derive(Default)]
pub(super) struct Noting {
    upstream_id: String,
    proofs: Vec<SignedPart>,
    size: usize,
    calls: u32,
    /// The last proof still grows.
    open: bool,
}

impl Noting {
    pub(super) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start { id, .. } => self.upstream_id = id.to_string(),
            Event::Open { choice: 0, block } => self.begin(block),
            Event::Delta { choice: 0, delta } if self.open => self.grow(delta),
            Event::Close { choice: 0 } => self.open = false,
            _ => {}
        }
    }

    fn begin(&mut self, block: &Block<'_>) {
        let proof = match block {
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
        self.proofs.push(proof);
        self.open = true;
    }

    fn grow(&mut self, delta: &Delta<'_>) {
        match (self.proofs.last_mut(), delta) {
            (Some(SignedPart::Reasoning { text, .. }), Delta::Text(more)) => {
                self.size += more.len();
                if self.size <= LIMIT {
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

    /// Worth keeping only where a call can ask for a proof.
    pub(super) fn take(&mut self) -> Option<SignedParts> {
        let proofs = SignedParts(std::mem::take(&mut self.proofs));
        let is_sealed = proofs.0.iter().any(|proof| proof.signature().is_some());
        (self.calls > 0 && is_sealed && self.size <= LIMIT).then_some(proofs)
    }
}

/// The same of a whole reply.
pub(super) fn of_reply(response: &Response<'_>) -> Option<SignedParts> {
    let parts = &response.choices.first()?.parts;
    let is_call = |part: &Part<'_>| matches!(part.kind, PartKind::Call(_));
    if !parts.iter().any(is_proven) || !parts.iter().any(is_call) {
        return None;
    }
    let mut proofs = SignedParts(Vec::with_capacity(parts.len()));
    let mut calls = 0;
    for part in parts {
        proofs.0.push(match &part.kind {
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
    (proofs.size() <= LIMIT).then_some(proofs)
}

fn owned(signature: &Signature<'_>) -> Signature<'static> {
    Signature {
        issuer: signature.issuer,
        data: signature.data.to_string().into(),
    }
}

/// Every turn that shows no proof of its own gets back what its calls are remembered with, as
/// far as the upstream can read it.
pub(super) fn restore(request: &mut Request<'_>, upstream: Format, recall: &dyn SignatureLookup) {
    let turns = request.turns.iter_mut();
    for turn in turns.filter(|turn| turn.role == Role::Model) {
        if turn.parts.iter().any(is_proven) {
            continue;
        }
        if let Some(proofs) = remembered(turn, recall)
            && proofs.issued_by(upstream)
        {
            let parts = std::mem::take(&mut turn.parts);
            turn.parts = proven(parts, &proofs.0);
        }
    }
}

fn is_proven(part: &Part<'_>) -> bool {
    match &part.kind {
        PartKind::Reasoning { signature, .. } => signature.is_some(),
        PartKind::Call(call) => call.signature.is_some(),
        _ => false,
    }
}

fn remembered(turn: &Turn<'_>, recall: &dyn SignatureLookup) -> Option<SignedParts> {
    turn.parts.iter().find_map(|part| match &part.kind {
        PartKind::Call(call) => {
            let proofs = recall.signed_parts(call.id.as_ref()?)?;
            let mut proofs_of = proofs.0.iter();
            let fits = proofs_of.any(|proof| is_proof_of(proof, call));
            fits.then_some(proofs)
        }
        _ => None,
    })
}

/// Thoughts that came before any call stand first again, others before the call they led to.
/// What the client sent of thoughts says the same and gives way.
fn proven<'a>(parts: Vec<Part<'a>>, proofs: &[SignedPart]) -> Vec<Part<'a>> {
    let is_call = |proof: &SignedPart| matches!(proof, SignedPart::Call { .. });
    let first_call = proofs.iter().position(is_call).unwrap_or(proofs.len());
    let (leading, mut rest) = proofs.split_at(first_call);
    let mut out: Vec<Part<'a>> = leading.iter().filter_map(thought).collect();
    for mut part in parts {
        match &mut part.kind {
            PartKind::Reasoning { .. } => continue,
            PartKind::Call(call) => {
                if let Some(at) = rest.iter().position(|proof| is_proof_of(proof, call)) {
                    out.extend(rest[..at].iter().filter_map(thought));
                    call.signature = rest[at].signature().cloned();
                    rest = &rest[at + 1..];
                }
            }
            _ => {}
        }
        out.push(part);
    }
    out
}

fn thought<'a>(proof: &SignedPart) -> Option<Part<'a>> {
    let SignedPart::Reasoning { text, signature } = proof else {
        return None;
    };
    let kind = PartKind::Reasoning {
        text: text.clone().into(),
        signature: signature.clone(),
    };
    Some(Part { kind, at: None })
}

fn is_proof_of(proof: &SignedPart, call: &Call<'_>) -> bool {
    match proof {
        // An upstream may number its calls anew in every reply: the name must fit as well.
        SignedPart::Call { id, name, .. } => {
            call.id.as_deref() == Some(id.as_str()) && call.name == *name
        }
        SignedPart::Reasoning { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, Fold, Issuer, ToolKind};

    fn signature(issuer: Issuer, data: &'static str) -> Signature<'static> {
        Signature {
            issuer,
            data: data.into(),
        }
    }

    fn open(block: Block<'static>) -> Event<'static> {
        Event::Open { choice: 0, block }
    }

    fn delta(delta: Delta<'static>) -> Event<'static> {
        Event::Delta { choice: 0, delta }
    }

    fn call(id: Option<&'static str>, name: &'static str) -> Event<'static> {
        open(Block::Call {
            id: id.map(Into::into),
            name: name.into(),
            kind: ToolKind::Function,
        })
    }

    fn noted(events: &[Event<'_>]) -> Option<SignedParts> {
        let mut noting = Noting::default();
        for event in events {
            noting.event(event);
        }
        noting.take()
    }

    /// Noted in pieces and whole, which must be the same.
    fn reply(issuer: Issuer) -> SignedParts {
        let close = Event::Close { choice: 0 };
        let events = [
            Event::Start {
                id: "resp-1".into(),
                model: "m".into(),
                created: 1,
            },
            open(Block::Reasoning),
            delta(Delta::Text("Let me ".into())),
            delta(Delta::Text("look.".into())),
            delta(Delta::Signature(signature(issuer, "one"))),
            close.clone(),
            open(Block::Text),
            delta(Delta::Text("Looking.".into())),
            close.clone(),
            call(None, "look"),
            delta(Delta::Signature(signature(issuer, "two"))),
            delta(Delta::Arguments("{}".into())),
            close.clone(),
            open(Block::Reasoning),
            delta(Delta::Signature(signature(issuer, "three"))),
            close.clone(),
            call(Some("b"), "read"),
            close,
        ];
        let proofs = noted(&events).expect("proofs");
        let mut fold = Fold::default();
        for event in events {
            fold.push(event);
        }
        assert_eq!(of_reply(&fold.finish()).as_ref(), Some(&proofs));
        proofs
    }

    #[derive(Debug)]
    struct Remembered(SignedParts);

    impl SignatureLookup for Remembered {
        fn signed_parts(&self, call_id: &str) -> Option<SignedParts> {
            let mut ids = self.0.call_ids();
            ids.any(|id| id == call_id).then(|| self.0.clone())
        }
    }

    fn part(kind: PartKind<'static>) -> Part<'static> {
        Part { kind, at: None }
    }

    fn said(id: &str, name: &'static str) -> Part<'static> {
        part(PartKind::Call(Call {
            id: Some(id.to_owned().into()),
            name: name.into(),
            arguments: Arguments::Text("{}".into()),
            signature: None,
            kind: ToolKind::Function,
        }))
    }

    fn request(parts: Vec<Part<'static>>) -> Request<'static> {
        let turn = Turn {
            role: Role::Model,
            parts,
            at: Some(1),
        };
        Request {
            turns: vec![turn],
            ..Request::default()
        }
    }

    /// As letters: thoughts with their signature's data, texts, calls with their signature's data.
    fn shape(request: &Request<'_>) -> Vec<String> {
        let parts = request.turns[0].parts.iter();
        let data = |signature: &Option<Signature<'_>>| {
            signature
                .as_ref()
                .map_or(String::new(), |signature| signature.data.to_string())
        };
        parts
            .map(|part| match &part.kind {
                PartKind::Reasoning { text, signature } => {
                    format!("thought {text}|{}", data(signature))
                }
                PartKind::Call(call) => format!("call {}|{}", call.name, data(&call.signature)),
                _ => "text".to_owned(),
            })
            .collect()
    }

    #[test]
    fn a_call_brings_back_the_thoughts_that_led_to_it() {
        let proofs = reply(Issuer::Native);
        let made = call_id("resp-1", 0, 0);
        assert_eq!(proofs.call_ids().collect::<Vec<_>>(), [&made, "b"]);
        let recall = Remembered(proofs);
        let parts = || {
            vec![
                part(PartKind::Reasoning {
                    text: "Let me look.".into(),
                    signature: None,
                }),
                part(PartKind::Text("Looking.".into())),
                said(&made, "look"),
                said("b", "read"),
            ]
        };
        let mut whole = request(parts());
        restore(&mut whole, Format::Native, &recall);
        let expected = [
            "thought Let me look.|one",
            "text",
            "call look|two",
            "thought |three",
            "call read|",
        ];
        assert_eq!(shape(&whole), expected);
        // Another format's upstream could read none of it.
        let mut elsewhere = request(parts());
        restore(&mut elsewhere, Format::Messages, &recall);
        assert_eq!(elsewhere, request(parts()));
    }

    #[test]
    fn what_the_client_proves_itself_stays_and_another_tool_of_the_same_id_proves_nothing() {
        let recall = Remembered(reply(Issuer::Thinking));
        let mut own = vec![said("b", "read")];
        if let PartKind::Call(call) = &mut own[0].kind {
            call.signature = Some(signature(Issuer::Thinking, "mine"));
        }
        let mut proven = request(own);
        restore(&mut proven, Format::Messages, &recall);
        assert_eq!(shape(&proven), ["call read|mine"]);
        let mut other = request(vec![said("b", "write")]);
        restore(&mut other, Format::Messages, &recall);
        assert_eq!(shape(&other), ["call write|"]);
    }

    #[test]
    fn nothing_is_noted_without_a_call_or_without_a_proof_or_beyond_all_measure() {
        assert_eq!(noted(&[call(Some("a"), "look")]), None);
        let sealed = [
            open(Block::Reasoning),
            delta(Delta::Signature(signature(Issuer::Native, "x"))),
        ];
        assert_eq!(noted(&sealed), None);
        let long = [
            open(Block::Reasoning),
            delta(Delta::Text("a".repeat(LIMIT).into())),
            delta(Delta::Signature(signature(Issuer::Native, "x"))),
            Event::Close { choice: 0 },
            call(Some("a"), "look"),
        ];
        assert_eq!(noted(&long), None);
        let mut short = long.to_vec();
        short.remove(1);
        assert!(noted(&short).is_some());
    }
}
