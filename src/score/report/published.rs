//! A result as it is published: what does not change from run to run, in a file beside the words about it.

use serde::{Deserialize, Serialize};

use super::grouping::{LossEntry, entries};
use super::{ScoreCount, Scorecard};
use crate::score::wire::WireFormat;

/// A file of the published results: the words are written by hand, the result by the command.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublishedGateway {
    /// Its name and version.
    pub gateway: String,
    /// The day on which it was scored.
    pub date: String,
    /// Sentences about how it was set up.
    pub about: Vec<String>,
    /// The commands that made the result.
    pub commands: Vec<String>,
    /// What was lost, in words, with the entries that it stands for.
    pub groups: Vec<LossGroup>,
    pub result: PublishedResult,
}

/// Losses with one cause.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossGroup {
    /// What is lost, in one sentence.
    pub what: String,
    /// Beginnings of the names of scenarios; empty: of any.
    pub scenarios: Vec<String>,
    /// Words of the loss; empty: any.
    pub words: Vec<String>,
    /// Beginnings of the pairs, such as `native →`; empty: any.
    pub pairs: Vec<String>,
}

/// The result of one gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublishedResult {
    pub scenarios: usize,
    pub pairs: Vec<PublishedPair>,
    pub lost: Vec<PublishedEntry>,
    pub opinions: Vec<PublishedEntry>,
}

/// A pair of formats that the gateway offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPair {
    pub client: String,
    pub upstream: String,
    pub whole: usize,
    pub runs: usize,
}

/// A loss, or a difference of opinion, and where it is seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedEntry {
    pub scenario: String,
    pub what: String,
    pub pairs: Vec<String>,
}

impl PublishedResult {
    pub fn of(card: &Scorecard) -> PublishedResult {
        let mut pairs = Vec::new();
        for client in WireFormat::ALL {
            for upstream in WireFormat::ALL {
                let cell = card.cell(client, upstream);
                pairs.extend(cell.map(|count| PublishedPair {
                    client: client.name().to_owned(),
                    upstream: upstream.name().to_owned(),
                    whole: count.whole,
                    runs: count.all,
                }));
            }
        }
        let published = |entry: &LossEntry<'_>| PublishedEntry {
            scenario: entry.scenario.to_owned(),
            what: entry.loss.replace('\n', " "),
            pairs: entry.places.clone(),
        };
        PublishedResult {
            scenarios: card.scenarios.len(),
            pairs,
            lost: entries(card, |run| &run.verdict.losses)
                .iter()
                .map(published)
                .collect(),
            opinions: entries(card, |run| &run.verdict.opinions)
                .iter()
                .map(published)
                .collect(),
        }
    }

    /// The runs of a pair; `None`: it is not offered.
    pub fn cell(&self, client: WireFormat, upstream: WireFormat) -> Option<ScoreCount> {
        let is_pair = |pair: &&PublishedPair| {
            pair.client == client.name() && pair.upstream == upstream.name()
        };
        self.pairs.iter().find(is_pair).map(|pair| ScoreCount {
            whole: pair.whole,
            all: pair.runs,
        })
    }

    pub fn total(&self) -> ScoreCount {
        ScoreCount {
            whole: self.pairs.iter().map(|pair| pair.whole).sum(),
            all: self.pairs.iter().map(|pair| pair.runs).sum(),
        }
    }
}

impl LossGroup {
    /// The places of an entry that belong to the group.
    pub fn places<'e>(&self, entry: &'e PublishedEntry) -> Vec<&'e str> {
        let is_meant = |asked: &[String], fits: &dyn Fn(&str) -> bool| {
            asked.is_empty() || asked.iter().any(|part| fits(part))
        };
        let fits = is_meant(&self.scenarios, &|start| entry.scenario.starts_with(start))
            && is_meant(&self.words, &|words| entry.what.contains(words));
        let places = entry
            .pairs
            .iter()
            .filter(|place| fits && is_meant(&self.pairs, &|start| place.starts_with(start)));
        places.map(String::as_str).collect()
    }
}
