//! `logprobsResult`: the log probabilities of the tokens of a candidate.

use serde::Serialize;

use crate::json::from_json;
use crate::model::{Logprob, Text};

from_json! {
    pub(super) struct UpstreamLogprobs<'a> {
        "topCandidates" => top_candidates: Option<Vec<UpstreamTopLogprobs<'a>>>,
        "chosenCandidates" => chosen_candidates: Option<Vec<UpstreamTokenLogprob<'a>>>,
    }
}

from_json! {
    struct UpstreamTopLogprobs<'a> {
        "candidates" => candidates: Option<Vec<UpstreamTokenLogprob<'a>>>,
    }
}

from_json! {
    struct UpstreamTokenLogprob<'a> {
        "token" => token: Option<Text<'a>>,
        "logProbability" => log_probability: Option<f64>,
    }
}

impl<'a> UpstreamLogprobs<'a> {
    /// Decodes the chosen tokens, each with the most likely ones at its position.
    pub(super) fn decode(self) -> impl Iterator<Item = Logprob<'a>> {
        let mut tops = self.top_candidates.into_iter().flatten();
        let chosen = self.chosen_candidates.into_iter().flatten();
        let pair = |entry: UpstreamTokenLogprob<'a>| {
            let logprob = entry.log_probability.unwrap_or_default();
            (entry.token.unwrap_or_default(), logprob)
        };
        chosen.map(move |entry| {
            let top = tops.next().and_then(|top| top.candidates);
            let (token, logprob) = pair(entry);
            Logprob {
                token,
                logprob,
                top: top.into_iter().flatten().map(pair).collect(),
            }
        })
    }
}

/// The `logprobsResult` of a response to a client.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogprobsResult<'a> {
    top_candidates: Vec<TopCandidates<'a>>,
    chosen_candidates: Vec<LogprobsCandidate<'a>>,
}

#[derive(Serialize)]
struct TopCandidates<'a> {
    candidates: Vec<LogprobsCandidate<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogprobsCandidate<'a> {
    token: &'a str,
    log_probability: f64,
}

/// Encodes log probabilities; `None` if there are none.
pub(super) fn encode_logprobs<'a>(logprobs: &'a [Logprob<'_>]) -> Option<LogprobsResult<'a>> {
    let candidate = |token: &'a str, log_probability| LogprobsCandidate {
        token,
        log_probability,
    };
    let top = |entry: &'a Logprob<'_>| TopCandidates {
        candidates: entry
            .top
            .iter()
            .map(|(token, value)| candidate(token, *value))
            .collect(),
    };
    let chosen = |entry: &'a Logprob<'_>| candidate(&entry.token, entry.logprob);
    (!logprobs.is_empty()).then(|| LogprobsResult {
        top_candidates: logprobs.iter().map(top).collect(),
        chosen_candidates: logprobs.iter().map(chosen).collect(),
    })
}

/// The value of `avgLogprobs`.
pub(super) fn average_logprob(logprobs: &[Logprob<'_>]) -> Option<f64> {
    let sum: f64 = logprobs.iter().map(|entry| entry.logprob).sum();
    (!logprobs.is_empty()).then(|| sum / logprobs.len() as f64)
}
