//! The aims of the gateway's performance, and whether a run meets them.

use std::collections::BTreeMap;
use std::fmt;

use comfy_table::CellAlignment;

use crate::open_streams;
use crate::table::{NO_VALUE, new_table};

/// A figure with an upper limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aim {
    SameJson,
    SamePaced,
    TranslatedJson,
    TranslatedPaced,
    Event,
    Mebibyte,
    FirstByte,
    AddedFirstByte,
    IdleDemo,
    OpenStream,
    Start,
    Binary,
    Costs,
    Journal,
    Traces,
}

impl Aim {
    const ALL: [Self; 15] = [
        Self::SameJson,
        Self::SamePaced,
        Self::TranslatedJson,
        Self::TranslatedPaced,
        Self::Event,
        Self::Mebibyte,
        Self::FirstByte,
        Self::AddedFirstByte,
        Self::IdleDemo,
        Self::OpenStream,
        Self::Start,
        Self::Binary,
        Self::Costs,
        Self::Journal,
        Self::Traces,
    ];

    /// Returns a description of the figure, its upper limit, and their unit.
    fn definition(self) -> (&'static str, f64, &'static str) {
        match self {
            Self::SameJson => ("same format, JSON: CPU against bare pingora", 1.10, "×"),
            Self::SamePaced => (
                "same format, 50 events 5 ms apart: CPU against bare pingora",
                1.10,
                "×",
            ),
            Self::TranslatedJson => ("translated JSON: CPU against bare pingora", 1.35, "×"),
            Self::TranslatedPaced => (
                "translated, 50 events 5 ms apart: CPU against bare pingora",
                1.25,
                "×",
            ),
            Self::Event => (
                "10,000 events at full speed, translated: CPU for one",
                3.0,
                "µs",
            ),
            Self::Mebibyte => (
                "request of 1 MiB translated, against a copy, a parse and a write of it",
                1.5,
                "×",
            ),
            Self::FirstByte => (
                "time to first byte at 500 requests/s, p99, against bare pingora",
                1.3,
                "×",
            ),
            Self::AddedFirstByte => (
                "of that, the part added to direct, against the part that bare pingora adds",
                1.3,
                "×",
            ),
            Self::IdleDemo => ("resident memory of the idle demo", 25.0, "MiB"),
            Self::OpenStream => (
                "memory of an open translated stream beyond bare pingora",
                open_streams::AIM,
                "KiB",
            ),
            Self::Start => ("demo: start to first response", 100.0, "ms"),
            Self::Binary => ("stripped binary", 20.0, "MiB"),
            Self::Costs => ("a cap and prices: CPU against neither", 1.05, "×"),
            Self::Journal => (
                "a cap, prices and the journal: CPU without background threads, against none of them",
                1.05,
                "×",
            ),
            Self::Traces => ("traces of 1 % of the requests: CPU against none", 1.03, "×"),
        }
    }
}

/// The figures that a run has measured.
#[derive(Default)]
pub struct Aims {
    /// The figure of each aim, and what it was measured with.
    measured: BTreeMap<Aim, (f64, String)>,
    /// The same figures against the bare proxy with the gateway's allocator, which are shown but not judged.
    against_mimalloc: BTreeMap<Aim, f64>,
}

impl Aims {
    /// Records a figure of an aim; the worst of several counts.
    pub fn judge(&mut self, aim: Aim, value: f64, of: impl Into<String>) {
        let of = of.into();
        let known = self
            .measured
            .entry(aim)
            .or_insert_with(|| (value, of.clone()));
        if value > known.0 {
            *known = (value, of);
        }
    }

    /// Records the same figure against the bare proxy with the gateway's allocator; the worst of several counts.
    pub fn judge_against_mimalloc(&mut self, aim: Aim, value: f64) {
        let known = self.against_mimalloc.entry(aim).or_insert(value);
        *known = known.max(value);
    }
}

impl fmt::Display for Aims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = new_table(
            1,
            &[
                "aim",
                "at most",
                "measured",
                "",
                "against bare with mimalloc",
                "the worst of its figures",
            ],
        );
        for number in [3, 5] {
            if let Some(column) = table.column_mut(number) {
                column.set_cell_alignment(CellAlignment::Left);
            }
        }
        for aim in Aim::ALL {
            let (title, limit, unit) = aim.definition();
            let (measured, verdict, of) = match self.measured.get(&aim) {
                None => (NO_VALUE.to_owned(), "not measured", ""),
                Some((value, of)) => {
                    let verdict = if *value <= limit { "met" } else { "MISSED" };
                    (format!("{value:.2} {unit}"), verdict, of.as_str())
                }
            };
            let limit = format!("{limit} {unit}");
            let against_mimalloc = self.against_mimalloc.get(&aim);
            let against_mimalloc = against_mimalloc.map(|value| format!("{value:.2} {unit}"));
            let against_mimalloc = against_mimalloc.unwrap_or_default();
            table.add_row([title, &limit, &measured, verdict, &against_mimalloc, of]);
        }
        write!(f, "{table}")
    }
}
