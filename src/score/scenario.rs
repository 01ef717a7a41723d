//! Scenarios: data files that say what a client says, what the upstream answers, and how it fails.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::said::{SaidAnswer, SaidRequest};
use super::wire::WireFormat;

/// One scenario; every pair of formats is driven through it, as JSON and as a stream.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// What is lost where it fails, in one sentence.
    pub about: String,
    pub says: SaidRequest,
    #[serde(default)]
    pub answers: SaidAnswer,
    /// The next request of the same conversation.
    #[serde(default)]
    pub then: Option<ScenarioStep>,
    #[serde(default)]
    pub fault: Option<UpstreamFault>,
    /// An error must have the shape of the client's format to the letter; elsewhere its status and its words are judged.
    #[serde(default)]
    pub strict_error: bool,
    /// About the form of streams beyond what SDKs read: the numbers of events, and `[DONE]`.
    #[serde(default)]
    pub stream_form: bool,
    /// The upstream cuts its stream at every byte of the characters that have several.
    #[serde(default)]
    pub byte_by_byte: bool,
    /// Bodies that clients send instead of what `says` would be, by format; `{{mark}}` stands in their text, or the driver
    /// puts it before the first of the user.
    #[serde(default)]
    pub client: BTreeMap<String, Value>,
    /// Bodies that upstreams answer with instead of what `answers` would be, by format.
    #[serde(default)]
    pub upstream: BTreeMap<String, Value>,
    /// Only the formats take part whose bodies are given.
    #[serde(default)]
    pub given_only: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioStep {
    pub says: SaidRequest,
    #[serde(default)]
    pub answers: SaidAnswer,
}

/// How the upstream fails.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum UpstreamFault {
    /// It answers with an error.
    Status {
        status: u16,
        #[serde(default)]
        retry_after: Option<u32>,
    },
    /// The connection ends in the middle of the body: after every event of a stream.
    Cut,
    /// It stops to send, and does not close the connection.
    Hang,
    /// It sends what is not of the format.
    Garbage,
    /// It answers 200, and an error.
    ErrorInside,
}

impl Scenario {
    /// Reads a file; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Scenario, String> {
        let scenario: Scenario = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_known = |name: &&String| WireFormat::from_name(name).is_some();
        let mut given = scenario.client.keys().chain(scenario.upstream.keys());
        match given.find(|name| !is_known(name)) {
            Some(name) => Err(format!("{name} is no format")),
            None => Ok(scenario),
        }
    }

    /// Whether a pair of formats takes part.
    pub fn has_pair(&self, client: WireFormat, upstream: WireFormat) -> bool {
        let is_given = |bodies: &BTreeMap<String, Value>, format: WireFormat| {
            !self.given_only || bodies.is_empty() || bodies.contains_key(format.name())
        };
        is_given(&self.client, client) && is_given(&self.upstream, upstream)
    }
}
