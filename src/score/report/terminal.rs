//! The scorecard as text.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::{Table, presets};

use super::Scorecard;
use super::grouping::{entries, two_bodies};
use super::published::PublishedResult;
use crate::score::wire::WireFormat;

/// Characters of a column of bodies that stand side by side.
const COLUMN: usize = 76;
/// Lines of such a column.
const LINES: usize = 8;

impl PublishedResult {
    /// Clients below each other, upstreams beside each other.
    pub(super) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        let mut header = vec!["client \\ upstream".to_owned()];
        header.extend(WireFormat::ALL.map(|format| format.name().to_owned()));
        table.set_header(header);
        for client in WireFormat::ALL {
            let mut row = vec![client.name().to_owned()];
            row.extend(
                WireFormat::ALL.map(|upstream| match self.cell(client, upstream) {
                    Some(count) => format!(
                        "{} % ({}/{})",
                        count.whole_percent(),
                        count.whole,
                        count.all
                    ),
                    None => "not offered".to_owned(),
                }),
            );
            table.add_row(row);
        }
        table.trim_fmt()
    }
}

impl Scorecard {
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n", PublishedResult::of(self).table());
        let total = self.total();
        let _ = writeln!(
            text,
            "{}: {} of {} runs lose nothing: {:.1} %, {} of 16 pairs, {} scenarios",
            self.gateway,
            total.whole,
            total.all,
            total.percent(),
            self.offered(),
            self.scenarios.len(),
        );
        self.write_measurement(&mut text);
        let lost = entries(self, |run| &run.verdict.losses);
        if !lost.is_empty() {
            let _ = writeln!(text, "\nLost:");
        }
        for entry in &lost {
            let _ = writeln!(
                text,
                "\n{}: {}\n  {}",
                entry.scenario,
                entry.loss,
                entry.places.join("; ")
            );
            if let Some(bodies) = entry.bodies {
                write_side_by_side(&two_bodies(entry.loss, bodies), &mut text);
            }
        }
        let opinions = entries(self, |run| &run.verdict.opinions);
        if !opinions.is_empty() {
            let _ = writeln!(text, "\nDifferences of opinion, not counted:");
        }
        for entry in &opinions {
            let _ = writeln!(
                text,
                "  {}: {} ({})",
                entry.scenario,
                entry.loss,
                entry.places.join("; ")
            );
        }
        text
    }

    fn write_measurement(&self, text: &mut String) {
        let added = |client, upstream| {
            let of_pair = self
                .measured
                .latencies
                .iter()
                .find(|latency| (latency.client, latency.upstream) == (client, upstream));
            of_pair.map(|latency| latency.through.saturating_sub(latency.direct))
        };
        if self.measured.latencies.is_empty() {
            return;
        }
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        let mut header = vec!["added, median".to_owned()];
        header.extend(WireFormat::ALL.map(|format| format.name().to_owned()));
        table.set_header(header);
        for client in WireFormat::ALL {
            let mut row = vec![client.name().to_owned()];
            row.extend(
                WireFormat::ALL
                    .map(|upstream| added(client, upstream).map_or_else(String::new, micros)),
            );
            table.add_row(row);
        }
        let _ = writeln!(text, "\n{}", table.trim_fmt());
        if let Some(cpu) = self.measured.cpu {
            let _ = writeln!(text, "CPU of a request: {}", micros(cpu));
        }
    }
}

fn micros(time: Duration) -> String {
    format!("{} µs", time.as_micros())
}

fn write_side_by_side(bodies: &[(&str, &str); 2], text: &mut String) {
    let [left, right] = bodies.map(|(title, body)| column(title, body));
    let blank = String::new();
    for at in 0..left.len().max(right.len()) {
        let (left, right) = (
            left.get(at).unwrap_or(&blank),
            right.get(at).unwrap_or(&blank),
        );
        let _ = writeln!(text, "    {left:COLUMN$} | {right}");
    }
}

fn column(title: &str, body: &str) -> Vec<String> {
    let characters: Vec<char> = body.replace('\n', "⏎").chars().collect();
    let mut lines = vec![title.to_owned()];
    let pieces = characters.chunks(COLUMN).take(LINES);
    lines.extend(pieces.map(|piece| piece.iter().collect()));
    lines
}
