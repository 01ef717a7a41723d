//! The published scorecards of gateways, from the files that the page in docs is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::views::{FidelityLossView, FidelityPairView, FidelityView, GatewayScoreView};

/// The files of docs/fidelity, this gateway first.
const FILES: [&str; 3] = [
    include_str!("../../docs/fidelity/omniglot.json"),
    include_str!("../../docs/fidelity/litellm.json"),
    include_str!("../../docs/fidelity/portkey.json"),
];

/// The formats of clients and upstreams.
const FORMATS: [&str; 4] = ["chat", "messages", "native", "responses"];

/// How many losses of a gateway are shown.
const LOSSES: usize = 6;

/// The scorecards, made with the first look at them.
pub static PUBLISHED: LazyLock<FidelityView> = LazyLock::new(|| FidelityView {
    gateways: FILES
        .iter()
        .map(|text| ScoreFile::read(text).view())
        .collect(),
});

/// What is read of a file.
#[derive(Deserialize)]
struct ScoreFile {
    gateway: String,
    date: String,
    commands: Vec<String>,
    groups: Vec<ScoreGroup>,
    result: ScoreResult,
}

/// Losses with one cause, and which of the entries they are.
#[derive(Deserialize)]
struct ScoreGroup {
    what: String,
    scenarios: Vec<String>,
    words: Vec<String>,
    pairs: Vec<String>,
}

#[derive(Deserialize)]
struct ScoreResult {
    scenarios: usize,
    pairs: Vec<ScorePair>,
    lost: Vec<ScoreEntry>,
    opinions: Vec<ScoreEntry>,
}

#[derive(Deserialize)]
struct ScorePair {
    client: String,
    upstream: String,
    whole: usize,
    runs: usize,
}

/// A loss, and where it is seen: `chat → native`, with `, JSON` or `, stream` where it is only one.
#[derive(Deserialize)]
struct ScoreEntry {
    scenario: String,
    what: String,
    pairs: Vec<String>,
}

/// A run: its scenario, its pair, and whether it is a stream.
type ScoredRunKey<'f> = (&'f str, &'f str, bool);

impl ScoreFile {
    fn read(text: &str) -> ScoreFile {
        serde_json::from_str(text).expect("the published results are read by a test")
    }

    fn view(&self) -> GatewayScoreView {
        let result = &self.result;
        let lost: BTreeSet<ScoredRunKey<'_>> =
            result.lost.iter().flat_map(ScoreEntry::runs).collect();
        let cells = FORMATS
            .iter()
            .flat_map(|client| FORMATS.map(|upstream| self.cell(client, upstream, &lost)));
        let whole = result.pairs.iter().map(|pair| pair.whole).sum();
        let runs = result.pairs.iter().map(|pair| pair.runs).sum();
        GatewayScoreView {
            gateway: self.gateway.clone(),
            date: iso_date(&self.date),
            commands: self.commands.clone(),
            scenarios: result.scenarios,
            offered: result.pairs.len(),
            whole,
            runs,
            percent: percent(whole, runs),
            pairs: cells.collect(),
            losses: self.losses(),
            opinions: result.opinions.len(),
        }
    }

    fn cell(
        &self,
        client: &'static str,
        upstream: &'static str,
        lost: &BTreeSet<ScoredRunKey<'_>>,
    ) -> FidelityPairView {
        let is_pair = |pair: &&ScorePair| pair.client == client && pair.upstream == upstream;
        let pair = self.result.pairs.iter().find(is_pair);
        let (whole, runs) = pair.map_or((0, 0), |pair| (pair.whole, pair.runs));
        let name = format!("{client} → {upstream}");
        let count = |streams: bool| {
            let of_pair = lost
                .iter()
                .filter(|(_, pair, is_stream)| *pair == name && *is_stream == streams);
            of_pair.count()
        };
        FidelityPairView {
            client,
            upstream,
            offered: pair.is_some(),
            whole,
            runs,
            percent: percent(whole, runs),
            lost_json: count(false),
            lost_streams: count(true),
        }
    }

    /// The losses that most runs have.
    fn losses(&self) -> Vec<FidelityLossView> {
        let views = self.groups.iter().map(|group| {
            let found = self.result.lost.iter().flat_map(|entry| group.runs(entry));
            let runs: BTreeSet<ScoredRunKey<'_>> = found.collect();
            let pairs: BTreeSet<&str> = runs.iter().map(|(_, pair, _)| *pair).collect();
            FidelityLossView {
                what: group.what.clone(),
                runs: runs.len(),
                pairs: shortened(&pairs),
            }
        });
        let mut views: Vec<FidelityLossView> = views.collect();
        views.sort_by_key(|view| std::cmp::Reverse(view.runs));
        views.truncate(LOSSES);
        views
    }
}

impl ScoreEntry {
    fn runs(&self) -> impl Iterator<Item = ScoredRunKey<'_>> {
        self.pairs.iter().flat_map(|place| self.runs_at(place))
    }

    /// The runs of a place: as JSON, as a stream, or both.
    fn runs_at<'e>(&'e self, place: &'e str) -> Vec<ScoredRunKey<'e>> {
        match place.split_once(", ") {
            Some((pair, form)) => vec![(&self.scenario, pair, form == "stream")],
            None => vec![
                (&self.scenario, place, false),
                (&self.scenario, place, true),
            ],
        }
    }
}

impl ScoreGroup {
    /// The runs of an entry that are of this group.
    fn runs<'e>(&self, entry: &'e ScoreEntry) -> Vec<ScoredRunKey<'e>> {
        let is_meant = |asked: &[String], fits: &dyn Fn(&str) -> bool| {
            asked.is_empty() || asked.iter().any(|part| fits(part))
        };
        let fits = is_meant(&self.scenarios, &|start| entry.scenario.starts_with(start))
            && is_meant(&self.words, &|words| entry.what.contains(words));
        let places = entry
            .pairs
            .iter()
            .filter(|place| fits && is_meant(&self.pairs, &|start| place.starts_with(start)));
        places.flat_map(|place| entry.runs_at(place)).collect()
    }
}

/// Rounded down: only all is 100.
const fn percent(whole: usize, runs: usize) -> usize {
    match runs {
        0 => 0,
        runs => whole * 100 / runs,
    }
}

/// Pairs by their clients: `chat → native, responses`.
fn shortened(pairs: &BTreeSet<&str>) -> Vec<String> {
    let mut clients: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (client, upstream) in pairs.iter().filter_map(|pair| pair.split_once(" → ")) {
        clients.entry(client).or_default().push(upstream);
    }
    let words = clients.iter();
    words
        .map(|(client, upstreams)| format!("{client} → {}", upstreams.join(", ")))
        .collect()
}

/// `2026-11-18` of `18 November 2026`; what is no such day stays.
fn iso_date(text: &str) -> String {
    let written = jiff::civil::Date::strptime("%d %B %Y", text);
    written.map_or_else(|_| text.to_owned(), |date| date.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::console::texts::loss_in_chinese;

    #[test]
    fn every_published_file_is_shown_and_its_counts_agree() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fidelity");
        let files = std::fs::read_dir(folder).expect("the files").count();
        assert_eq!(files, PUBLISHED.gateways.len());
        for gateway in &PUBLISHED.gateways {
            assert_eq!(gateway.date.len(), 10, "{}", gateway.date);
            assert_eq!(gateway.pairs.len(), 16);
            for pair in gateway.pairs.iter().filter(|pair| pair.offered) {
                let lost = pair.lost_json + pair.lost_streams;
                assert_eq!(
                    pair.runs - pair.whole,
                    lost,
                    "{}: {pair:?}",
                    gateway.gateway
                );
            }
            let is_whole = gateway.whole == gateway.runs;
            assert_eq!(gateway.losses.is_empty(), is_whole, "{}", gateway.gateway);
        }
    }

    /// The words and numbers are those of the page.
    #[test]
    fn the_losses_are_those_of_the_page_in_both_languages() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fidelity.md");
        let page = std::fs::read_to_string(page).expect("the page");
        for gateway in &PUBLISHED.gateways {
            let total = format!("{} of {} (", gateway.whole, gateway.runs);
            assert!(page.contains(&total), "{total}");
            for loss in &gateway.losses {
                let row = format!("| {} | {} |", loss.what, loss.runs);
                assert!(page.contains(&row), "{row}");
                assert!(loss_in_chinese(&loss.what).is_some(), "{}", loss.what);
            }
        }
    }
}
