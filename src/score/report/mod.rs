//! The scorecard: as text, as JSON, as a page and as Markdown.

mod grouping;
mod html;
mod json;
mod markdown;
mod page;
mod published;
mod terminal;

pub use page::page;
pub use published::{PublishedGateway, PublishedResult};

use super::driver::ScoredRun;
use super::latency::Measurement;
use super::wire::WireFormat;

/// All results of one gateway.
#[derive(Debug, Clone, Default)]
pub struct Scorecard {
    /// Its name, as the one who runs it gives it.
    pub gateway: String,
    pub runs: Vec<ScoredRun>,
    /// Name and sentence of each scenario.
    pub scenarios: Vec<(String, String)>,
    pub measured: Measurement,
}

/// How many runs there were, and in how many nothing was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScoreCount {
    pub whole: usize,
    pub all: usize,
}

impl ScoreCount {
    pub fn percent(self) -> f64 {
        match self.all {
            0 => 0.0,
            all => self.whole as f64 * 100.0 / all as f64,
        }
    }

    /// Rounded down: only all is 100.
    pub fn whole_percent(self) -> usize {
        match self.all {
            0 => 0,
            all => self.whole * 100 / all,
        }
    }
}

impl Scorecard {
    /// The runs of a pair; `None`: nothing of it came to the upstream in its format, so the gateway does not offer it.
    pub fn cell(&self, client: WireFormat, upstream: WireFormat) -> Option<ScoreCount> {
        let runs = self
            .runs
            .iter()
            .filter(|run| run.client == client && run.upstream == upstream);
        let runs: Vec<&ScoredRun> = runs.collect();
        let is_offered =
            |run: &&ScoredRun| run.verdict.has_arrived || run.verdict.losses.is_empty();
        match !runs.iter().any(is_offered) {
            true => None,
            false => Some(ScoreCount {
                whole: runs
                    .iter()
                    .filter(|run| run.verdict.losses.is_empty())
                    .count(),
                all: runs.len(),
            }),
        }
    }

    /// All pairs that are offered.
    pub fn total(&self) -> ScoreCount {
        let mut total = ScoreCount::default();
        for client in WireFormat::ALL {
            for upstream in WireFormat::ALL {
                let cell = self.cell(client, upstream).unwrap_or_default();
                total.whole += cell.whole;
                total.all += cell.all;
            }
        }
        total
    }

    /// How many of the pairs are offered.
    pub fn offered(&self) -> usize {
        let pairs = WireFormat::ALL
            .into_iter()
            .flat_map(|client| WireFormat::ALL.map(|upstream| (client, upstream)));
        pairs
            .filter(|(client, upstream)| self.cell(*client, *upstream).is_some())
            .count()
    }

    /// The runs that count: those of pairs that are offered.
    fn counted(&self) -> impl Iterator<Item = &ScoredRun> {
        self.runs
            .iter()
            .filter(|run| self.cell(run.client, run.upstream).is_some())
    }
}
