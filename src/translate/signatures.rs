//! Keeps the signatures of a response for clients that do not send them back: records them, and
//! restores them in the request that continues from it.

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

/// Restores the signed parts of every turn of the model that has no signature of its own, where the
/// upstream can verify them.
pub(super) fn restore(request: &mut Request<'_>, upstream: Format, recall: &dyn SignatureLookup) {
    let turns = request.turns.iter_mut();
    for turn in turns.filter(|turn| turn.role == Role::Model) {
        if turn.parts.iter().any(is_signed) {
            continue;
        }
        if let Some(signed_parts) = find_signed_parts(turn, recall)
            && signed_parts.issued_by(upstream)
        {
            let parts = std::mem::take(&mut turn.parts);
            turn.parts = with_signatures(parts, &signed_parts.0);
        }
    }
}

fn is_signed(part: &Part<'_>) -> bool {
    match &part.kind {
        PartKind::Reasoning { signature, .. } => signature.is_some(),
        PartKind::Call(call) => call.signature.is_some(),
        _ => false,
    }
}

fn find_signed_parts(turn: &Turn<'_>, recall: &dyn SignatureLookup) -> Option<SignedParts> {
    turn.parts.iter().find_map(|part| match &part.kind {
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
fn with_signatures<'a>(parts: Vec<Part<'a>>, signed_parts: &[SignedPart]) -> Vec<Part<'a>> {
    let is_call = |part: &SignedPart| matches!(part, SignedPart::Call { .. });
    let first_call = signed_parts
        .iter()
        .position(is_call)
        .unwrap_or(signed_parts.len());
    let (leading, mut rest) = signed_parts.split_at(first_call);
    let mut out: Vec<Part<'a>> = leading.iter().filter_map(reasoning).collect();
    for mut part in parts {
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
    out
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

    fn recorded(events: &[Event<'_>]) -> Option<SignedParts> {
        let mut recorder = SignatureRecorder::default();
        for event in events {
            recorder.record_event(event);
        }
        recorder.take()
    }

    /// Records a stream and the same response as JSON, which must give the same.
    fn signed_response(issuer: Issuer) -> SignedParts {
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
        let signed_parts = recorded(&events).expect("signed_parts");
        let mut fold = Fold::default();
        for event in events {
            fold.push(event);
        }
        assert_eq!(of_response(&fold.finish()).as_ref(), Some(&signed_parts));
        signed_parts
    }

    #[derive(Debug)]
    struct StoredParts(SignedParts);

    impl SignatureLookup for StoredParts {
        fn signed_parts(&self, call_id: &str) -> Option<SignedParts> {
            let mut ids = self.0.call_ids();
            ids.any(|id| id == call_id).then(|| self.0.clone())
        }
    }

    fn part(kind: PartKind<'static>) -> Part<'static> {
        Part { kind, at: None }
    }

    fn sent_call(id: &str, name: &'static str) -> Part<'static> {
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

    /// Returns the parts as strings: reasoning and calls with the data of their signatures.
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
                    format!("reasoning {text}|{}", data(signature))
                }
                PartKind::Call(call) => format!("call {}|{}", call.name, data(&call.signature)),
                _ => "text".to_owned(),
            })
            .collect()
    }

    #[test]
    fn a_call_restores_the_reasoning_before_it() {
        let signed_parts = signed_response(Issuer::Native);
        let made = call_id("resp-1", 0, 0);
        assert_eq!(signed_parts.call_ids().collect::<Vec<_>>(), [&made, "b"]);
        let recall = StoredParts(signed_parts);
        let parts = || {
            vec![
                part(PartKind::Reasoning {
                    text: "Let me look.".into(),
                    signature: None,
                }),
                part(PartKind::Text("Looking.".into())),
                sent_call(&made, "look"),
                sent_call("b", "read"),
            ]
        };
        let mut whole = request(parts());
        restore(&mut whole, Format::Native, &recall);
        let expected = [
            "reasoning Let me look.|one",
            "text",
            "call look|two",
            "reasoning |three",
            "call read|",
        ];
        assert_eq!(shape(&whole), expected);
        // An upstream of another format could verify none of it.
        let mut elsewhere = request(parts());
        restore(&mut elsewhere, Format::Messages, &recall);
        assert_eq!(elsewhere, request(parts()));
    }

    #[test]
    fn a_signature_of_the_client_stays_and_another_tool_of_the_same_id_gets_none() {
        let recall = StoredParts(signed_response(Issuer::Thinking));
        let mut own = vec![sent_call("b", "read")];
        if let PartKind::Call(call) = &mut own[0].kind {
            call.signature = Some(signature(Issuer::Thinking, "mine"));
        }
        let mut signed = request(own);
        restore(&mut signed, Format::Messages, &recall);
        assert_eq!(shape(&signed), ["call read|mine"]);
        let mut other = request(vec![sent_call("b", "write")]);
        restore(&mut other, Format::Messages, &recall);
        assert_eq!(shape(&other), ["call write|"]);
    }

    #[test]
    fn nothing_is_recorded_without_a_call_or_a_signature_or_beyond_the_limit() {
        assert_eq!(recorded(&[call(Some("a"), "look")]), None);
        let no_call = [
            open(Block::Reasoning),
            delta(Delta::Signature(signature(Issuer::Native, "x"))),
        ];
        assert_eq!(recorded(&no_call), None);
        let long = [
            open(Block::Reasoning),
            delta(Delta::Text("a".repeat(MAX_BYTES).into())),
            delta(Delta::Signature(signature(Issuer::Native, "x"))),
            Event::Close { choice: 0 },
            call(Some("a"), "look"),
        ];
        assert_eq!(recorded(&long), None);
        let mut short = long.to_vec();
        short.remove(1);
        assert!(recorded(&short).is_some());
    }
}
