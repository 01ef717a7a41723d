//! The scorecard as a section of a Markdown page: what does not change from run to run.

use std::fmt::Write as _;

use super::Scorecard;
use super::page::escaped;
use super::published::PublishedResult;

impl Scorecard {
    pub fn markdown(&self) -> String {
        let result = PublishedResult::of(self);
        let total = result.total();
        let mut text = format!(
            "{}\n\n{} of {} runs lose nothing ({:.1} %), in {} of 16 pairs.\n",
            result.table(),
            total.whole,
            total.all,
            total.percent(),
            result.pairs.len(),
        );
        for (title, column, entries) in [
            ("", "lost", &result.lost),
            (
                "Differences of opinion, not counted:\n\n",
                "difference",
                &result.opinions,
            ),
        ] {
            if !entries.is_empty() {
                let _ = writeln!(
                    text,
                    "\n{title}| scenario | {column} | pairs |\n| --- | --- | --- |"
                );
            }
            for entry in entries {
                let places = entry.pairs.join("; ");
                let _ = writeln!(
                    text,
                    "| {} | {} | {places} |",
                    entry.scenario,
                    escaped(&entry.what)
                );
            }
        }
        text
    }
}
