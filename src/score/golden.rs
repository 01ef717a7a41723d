//! Scenarios that are made of golden cases, one of each name: the clients' bodies, or the upstreams', by format.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::golden_files::GOLDEN_CASES;
use super::said::{SaidAnswer, SaidPart, SaidRequest, SaidTurn, SaidUsage};
use super::scenario::Scenario;

/// What a scenario takes of a golden case.
#[derive(Deserialize)]
struct GoldenCase {
    /// The pair of formats and the name.
    id: String,
    kind: String,
    from: String,
    input: Value,
}

/// The scenarios, in the order of the cases.
pub fn scenarios() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for text in GOLDEN_CASES {
        let case: GoldenCase = match serde_json::from_str(text) {
            Ok(case) => case,
            Err(reason) => panic!("the golden cases are tested: {reason}"),
        };
        let (_, name) = case.id.split_once('/').unwrap_or_default();
        let name = format!("golden-{name}");
        let known = scenarios.iter().position(|scenario| scenario.name == name);
        let at = known.unwrap_or_else(|| {
            scenarios.push(empty(name, &case.kind));
            scenarios.len() - 1
        });
        let bodies = match case.kind.as_str() {
            "request" => &mut scenarios[at].client,
            _ => &mut scenarios[at].upstream,
        };
        bodies.insert(case.from, case.input);
    }
    scenarios
}

fn empty(name: String, kind: &str) -> Scenario {
    let question = SaidPart::Text("What is the capital of France?".to_owned());
    let about = match kind {
        "request" => "What the clients of a golden case say reaches the upstream.",
        _ => "What the upstreams of a golden case answer reaches the client.",
    };
    let answers = SaidAnswer {
        text: Some("Paris.".to_owned()),
        usage: name.contains("usage").then(SaidUsage::default),
        ..SaidAnswer::default()
    };
    Scenario {
        name,
        about: about.to_owned(),
        says: SaidRequest {
            turns: vec![SaidTurn::User(vec![question])],
            limit: Some(2048),
            ..SaidRequest::default()
        },
        answers,
        then: None,
        fault: None,
        strict_error: false,
        stream_form: false,
        byte_by_byte: false,
        client: BTreeMap::new(),
        upstream: BTreeMap::new(),
        given_only: true,
    }
}
