//! The page of all published results.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::published::{LossGroup, PublishedEntry, PublishedGateway};

/// The page, with places for the results.
const PAGE: &str = include_str!("page.md");

/// The page of these gateways, in this order.
pub fn page(gateways: &[PublishedGateway]) -> String {
    let mut overview = String::from(
        "| gateway | scored on | pairs | runs that lose nothing |\n| --- | --- | --- | --- |\n",
    );
    let mut sections = String::new();
    for gateway in gateways {
        let total = gateway.result.total();
        let _ = writeln!(
            overview,
            "| {} | {} | {} of 16 | {} of {} ({:.1} %) |",
            gateway.gateway,
            gateway.date,
            gateway.result.pairs.len(),
            total.whole,
            total.all,
            total.percent(),
        );
        let _ = write!(
            sections,
            "## {}\n\n{}\n",
            gateway.gateway,
            gateway.section()
        );
    }
    PAGE.replace("OVERVIEW\n", &overview)
        .replace("RESULTS\n", sections.trim_start())
}

impl PublishedGateway {
    fn section(&self) -> String {
        let mut text = String::new();
        for sentence in &self.about {
            let _ = writeln!(text, "{sentence}");
        }
        let _ = writeln!(text, "\n```text\n{}\n```", self.commands.join("\n"));
        let _ = writeln!(text, "\n{}", self.result.table());
        self.write_groups(&mut text);
        let opinions = &self.result.opinions;
        if !opinions.is_empty() {
            text.push_str("\nDifferences of opinion, not counted:\n\n| scenario | difference | pairs |\n| --- | --- | --- |\n");
        }
        for entry in opinions {
            entry.write(&mut text);
        }
        text
    }

    /// The groups with the runs that each stands for, then every loss.
    fn write_groups(&self, text: &mut String) {
        let lost = &self.result.lost;
        if lost.is_empty() {
            text.push_str("\nNothing was lost.\n");
            return;
        }
        text.push_str("\n| what was lost | runs | scenarios | clients and upstreams |\n| --- | --- | --- | --- |\n");
        for group in &self.groups {
            group.write(lost, text);
        }
        let is_named = |entry: &&PublishedEntry| {
            let of_groups = self.groups.iter().flat_map(|group| group.places(entry));
            let named: BTreeSet<&str> = of_groups.collect();
            named.len() < entry.pairs.len()
        };
        let rest: Vec<&PublishedEntry> = lost.iter().filter(is_named).collect();
        for entry in rest {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                escaped(&entry.what),
                entry
                    .pairs
                    .iter()
                    .map(|place| runs_of(place))
                    .sum::<usize>(),
                entry.scenario,
                shortened(&entry.pairs.iter().map(String::as_str).collect())
            );
        }
        text.push_str("\n<details><summary>Every loss, by scenario</summary>\n\n| scenario | lost | pairs |\n| --- | --- | --- |\n");
        for entry in lost {
            entry.write(text);
        }
        text.push_str("\n</details>\n");
    }
}

impl LossGroup {
    fn write(&self, lost: &[PublishedEntry], text: &mut String) {
        let mut runs = BTreeSet::new();
        let (mut scenarios, mut pairs) = (BTreeSet::new(), BTreeSet::new());
        for entry in lost {
            for place in self.places(entry) {
                scenarios.insert(entry.scenario.as_str());
                pairs.insert(place);
                for form in forms(place) {
                    runs.insert((&entry.scenario, pair_of(place), form));
                }
            }
        }
        if runs.is_empty() {
            return;
        }
        let scenarios = match scenarios.len() {
            0..=4 => scenarios.into_iter().collect::<Vec<_>>().join(", "),
            count => format!("{count} scenarios"),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {scenarios} | {} |",
            self.what,
            runs.len(),
            shortened(&pairs)
        );
    }
}

impl PublishedEntry {
    fn write(&self, text: &mut String) {
        let places = match self.pairs.len() {
            16 => "all".to_owned(),
            _ => self.pairs.join("; "),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {places} |",
            self.scenario,
            escaped(&self.what)
        );
    }
}

fn pair_of(place: &str) -> &str {
    place.split_once(", ").map_or(place, |(pair, _)| pair)
}

/// As JSON, as a stream, or both.
fn forms(place: &str) -> &'static [&'static str] {
    match place.split_once(", ") {
        Some((_, "stream")) => &["stream"],
        Some(_) => &["JSON"],
        None => &["JSON", "stream"],
    }
}

fn runs_of(place: &str) -> usize {
    forms(place).len()
}

/// Pairs that have a client or an upstream in common, in few words.
fn shortened(places: &BTreeSet<&str>) -> String {
    let pairs: BTreeSet<&str> = places.iter().map(|place| pair_of(place)).collect();
    if pairs.len() == 16 {
        return "all".to_owned();
    }
    let mut clients: Vec<(&str, Vec<&str>)> = Vec::new();
    for (client, upstream) in pairs.iter().filter_map(|pair| pair.split_once(" → ")) {
        match clients.last_mut() {
            Some((last, upstreams)) if *last == client => upstreams.push(upstream),
            _ => clients.push((client, vec![upstream])),
        }
    }
    let words = clients
        .iter()
        .map(|(client, upstreams)| match upstreams.len() {
            4 => format!("{client} → all"),
            _ => format!("{client} → {}", upstreams.join(", ")),
        });
    words.collect::<Vec<_>>().join("; ")
}

/// Text that means nothing to a table or to HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
        .replace(['<', '>'], " ")
        .replace('`', "'")
}
