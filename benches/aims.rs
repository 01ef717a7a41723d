//! What is aimed at, and whether it is met.

use std::collections::BTreeMap;
use std::fmt;

use comfy_table::CellAlignment;

use crate::open_streams;
use crate::table::{NOTHING, table};

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
    Money,
    Journal,
}

impl Aim {
    const ALL: [Self; 14] = [
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
        Self::Money,
        Self::Journal,
    ];

    /// What is measured, the most that it may be, and the unit of that.
    fn terms(self) -> (&'static str, f64, &'static str) {
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
                "time to first byte at 500 requests/s, 99 %, against bare pingora",
                1.3,
                "×",
            ),
            Self::AddedFirstByte => (
                "of that, what is added to the direct way, against what bare pingora adds",
                1.3,
                "×",
            ),
            Self::IdleDemo => ("resident memory of the idle demo", 25.0, "MiB"),
            Self::OpenStream => (
                "memory of an open translated stream beyond bare pingora",
                open_streams::AIM,
                "KiB",
            ),
            Self::Start => ("demo: start to first answer", 100.0, "ms"),
            Self::Binary => ("stripped binary", 20.0, "MiB"),
            Self::Money => ("a cap and prices: CPU against neither", 1.05, "×"),
            Self::Journal => (
                "a cap, prices and the journal: CPU of answering against none of them",
                1.05,
                "×",
            ),
        }
    }
}

/// What was found of them so far.
#[derive(Default)]
pub struct Aims {
    found: BTreeMap<Aim, (f64, String)>,
    /// Against the bare proxy with the gateway's allocator: shown, not judged.
    against_mimalloc: BTreeMap<Aim, f64>,
}

impl Aims {
    /// Where it is judged by several figures, the worst counts.
    pub fn judge(&mut self, aim: Aim, value: f64, of: impl Into<String>) {
        let of = of.into();
        let known = self.found.entry(aim).or_insert_with(|| (value, of.clone()));
        if value > known.0 {
            *known = (value, of);
        }
    }

    /// Notes the same figure against the bare proxy with the gateway's allocator; of several the worst.
    pub fn compare(&mut self, aim: Aim, value: f64) {
        let known = self.against_mimalloc.entry(aim).or_insert(value);
        *known = known.max(value);
    }
}

impl fmt::Display for Aims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table(
            1,
            &[
                "aim",
                "at most",
                "found",
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
            let (what, most, unit) = aim.terms();
            let (found, word, of) = match self.found.get(&aim) {
                None => (NOTHING.to_owned(), "not measured", ""),
                Some((value, of)) => {
                    let word = if *value <= most { "met" } else { "MISSED" };
                    (format!("{value:.2} {unit}"), word, of.as_str())
                }
            };
            let most = format!("{most} {unit}");
            let against_mimalloc = self.against_mimalloc.get(&aim);
            let beside = against_mimalloc.map(|value| format!("{value:.2} {unit}"));
            let beside = beside.unwrap_or_default();
            table.add_row([what, &most, &found, word, &beside, of]);
        }
        write!(f, "{table}")
    }
}
