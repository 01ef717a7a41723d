//! The scorecard as a section of a Markdown page: what does not change from run to run.

use std::fmt::Write as _;

use super::Scorecard;
use super::grouping::entries;

impl Scorecard {
    pub fn markdown(&self) -> String {
        let total = self.total();
        let mut text = format!(
            "{}\n\n{} of {} runs lose nothing ({:.1} %), in {} of 16 pairs.\n",
            self.table(),
            total.whole,
            total.all,
            total.percent(),
            self.offered(),
        );
        let lost = entries(self, |run| &run.verdict.losses);
        if !lost.is_empty() {
            text.push_str("\n| scenario | lost | pairs |\n| --- | --- | --- |\n");
        }
        for entry in &lost {
            write_row(entry.scenario, entry.loss, &entry.places, &mut text);
        }
        let opinions = entries(self, |run| &run.verdict.opinions);
        if !opinions.is_empty() {
            text.push_str("\nDifferences of opinion, not counted:\n\n| scenario | difference | pairs |\n| --- | --- | --- |\n");
        }
        for entry in &opinions {
            write_row(entry.scenario, entry.loss, &entry.places, &mut text);
        }
        text
    }
}

fn write_row(scenario: &str, loss: &str, places: &[String], text: &mut String) {
    let loss = loss.replace('|', "\\|").replace(['<', '>'], " ");
    let places = match places.len() {
        16 => "all".to_owned(),
        _ => places.join("; "),
    };
    let _ = writeln!(text, "| {scenario} | {loss} | {places} |");
}
