//! Signatures that are stored for clients which do not send them back, and restored in later requests.

use std::time::Duration;

use omniglot::config::ConversationsConfig;
use omniglot::formats::{Capabilities, RequestHead, UpstreamTarget};
use omniglot::model::{Format, Issuer, Losses, Signature, SignedPart, SignedParts};
use omniglot::runtime::Conversations;
use omniglot::translate;

use crate::measure::{check, excess, list};

const COUNT: usize = 300;
const OWNER: &str = "k";

/// What there may be many of in a request, beside as many calls in the response that it continues from.
const SHAPES: [&str; 4] = [
    "steps with one call",
    "steps with a call each",
    "calls of one step",
    "calls of another name",
];

fn conversations() -> Conversations {
    Conversations::new(Some(ConversationsConfig {
        size: 64 << 20,
        ttl: Duration::from_secs(600),
        max_bytes_per_key: 64 << 20,
    }))
}

fn signed_parts(count: usize) -> SignedParts {
    let calls = (0..count).map(|number| SignedPart::Call {
        id: format!("call_{number}"),
        name: "t".to_owned(),
        signature: Some(Signature {
            issuer: Issuer::Thinking,
            data: format!("c2ln{number}").into(),
        }),
    });
    SignedParts(calls.collect())
}

fn request(shape: &str, count: usize) -> Vec<u8> {
    let call = |number: usize, name: &str| {
        format!(
            r#"{{"id":"call_{number}","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#
        )
    };
    let step = |calls: &str| {
        format!(r#"{{"role":"assistant","tool_calls":[{calls}]}},{{"role":"user","content":"Go"}}"#)
    };
    let steps = match shape {
        "steps with one call" => list(count, |_| step(&call(0, "t"))),
        "steps with a call each" => list(count, |number| step(&call(number, "t"))),
        "calls of one step" => step(&list(count, |number| call(count - 1 - number, "t"))),
        _ => step(&list(count, |number| call(number, "other"))),
    };
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"Hi"}},{steps}]}}"#).into_bytes()
}

fn forward(conversations: &Conversations, body: &[u8]) {
    let capabilities = Capabilities::default();
    let target = UpstreamTarget {
        model: "upstream-model",
        stream: false,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "vendor",
        images_only: false,
    };
    let recall = conversations.signatures_of(OWNER);
    let head = RequestHead {
        recall: Some(&recall),
        ..RequestHead::default()
    };
    let mut losses = Losses::default();
    let (from, to) = (Format::Chat, Format::Messages);
    let _ = translate::request(from, to, &head, body, &target, &mut losses);
}

#[test]
fn the_work_to_restore_signatures_grows_with_the_request() {
    let mut found = Vec::new();
    for shape in SHAPES {
        let make = |count| request(shape, count);
        let (few, many) = (conversations(), conversations());
        few.insert_signed_parts(OWNER, &signed_parts(COUNT));
        many.insert_signed_parts(OWNER, &signed_parts(COUNT * 4));
        let small = make(COUNT).len();
        let work = |body: &[u8]| forward(if body.len() == small { &few } else { &many }, body);
        if let Some(growth) = excess(COUNT, make, work) {
            found.push(format!("{shape}: {growth}"));
        }
    }
    check(found);
}
