//! Tests of recording and restoring signatures.

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
    fn response_of_call(&self, call_id: &str) -> Option<u64> {
        self.0.call_ids().any(|id| id == call_id).then_some(7)
    }

    fn signed_parts(&self, response: u64) -> Option<SignedParts> {
        (response == 7).then(|| self.0.clone())
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
fn hidden_reasoning_comes_back_for_its_signature() {
    let made = call_id("resp-1", 0, 0);
    let recall = StoredParts(signed_response(Issuer::Thinking));
    let signed = |id: &str, name, data| {
        let mut part = sent_call(id, name);
        if let PartKind::Call(call) = &mut part.kind {
            call.signature = Some(signature(Issuer::Thinking, data));
        }
        part
    };
    // The turns of a client that sends back a stream chunk by chunk.
    let turns = |last: &'static str| {
        let mut turns = request(vec![signed(&made, "look", "one")]);
        turns
            .turns
            .extend(request(vec![signed("b", "read", last)]).turns);
        turns
    };
    let mut whole = turns("three");
    restore(&mut whole, Format::Messages, &recall);
    assert_eq!(
        shape(&whole),
        ["reasoning Let me look.|one", "call look|two"]
    );
    whole.turns.remove(0);
    assert_eq!(shape(&whole), ["reasoning |three", "call read|"]);
    let mut foreign = turns("four");
    restore(&mut foreign, Format::Messages, &recall);
    assert_eq!(foreign, turns("four"));
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

#[test]
fn a_call_that_is_named_many_times_does_not_restore_its_response_as_often() {
    let text = "a".repeat(MAX_BYTES / 4);
    let recall = StoredParts(SignedParts(vec![
        SignedPart::Reasoning {
            text: text.clone(),
            signature: Some(signature(Issuer::Thinking, "one")),
        },
        SignedPart::Call {
            id: "b".to_owned(),
            name: "read".to_owned(),
            signature: None,
        },
    ]));
    let mut whole = request(vec![sent_call("b", "read")]);
    for _ in 0..20 {
        let user = Turn {
            role: Role::User,
            parts: vec![part(PartKind::Text("Go on.".into()))],
            at: None,
        };
        let step = request(vec![sent_call("b", "read")]);
        whole.turns.extend([user].into_iter().chain(step.turns));
    }
    restore(&mut whole, Format::Messages, &recall);
    let restored = |turn: &Turn<'_>| turn.role == Role::Model && turn.parts.len() == 2;
    let is_restored: Vec<bool> = whole.turns.iter().map(restored).collect();
    assert!(is_restored.last() == Some(&true) && !is_restored[0]);
    let count = is_restored.iter().filter(|restored| **restored).count();
    assert!((2..=1 + MAX_REPEATED_BYTES / text.len()).contains(&count));
}

/// As many responses as there are calls, each as large as one may be.
#[derive(Debug)]
struct LargeResponses;

impl SignatureLookup for LargeResponses {
    fn response_of_call(&self, call_id: &str) -> Option<u64> {
        call_id.parse().ok()
    }

    fn signed_parts(&self, response: u64) -> Option<SignedParts> {
        Some(SignedParts(vec![
            SignedPart::Reasoning {
                text: "x".repeat(MAX_BYTES / 2),
                signature: Some(signature(Issuer::Thinking, "one")),
            },
            SignedPart::Call {
                id: response.to_string(),
                name: "look".to_owned(),
                signature: None,
            },
        ]))
    }
}

#[test]
fn a_short_request_that_names_many_responses_does_not_become_a_long_one() {
    let mut asked = Request::default();
    for number in 0..200 {
        let id = number.to_string();
        asked
            .turns
            .extend(request(vec![sent_call(&id, "look")]).turns);
        asked.turns.push(Turn {
            role: Role::User,
            parts: Vec::new(),
            at: None,
        });
    }
    restore(&mut asked, Format::Messages, &LargeResponses);
    let is_restored = |turn: &&Turn<'_>| turn.parts.len() > 1;
    let restored = asked.turns.iter().filter(is_restored).count();
    assert!(
        (1..=2 * MAX_FETCHED_BYTES / MAX_BYTES).contains(&restored),
        "{restored}"
    );
    // An upstream verifies the last ones.
    let last = &asked.turns[asked.turns.len() - 2];
    assert!(is_restored(&last));
}
