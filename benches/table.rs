//! The figures of a run, and the table with the ratios that they come down to.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use crate::leg::Leg;
use crate::work::Work;

/// What pass-through may cost at most, in CPU time of the bare proxy.
const AIM: f64 = 1.15;

/// And what prices, a cap and a store may add to that, in CPU time of the gateway without them.
const STORE_AIM: f64 = 1.05;

const NOTHING: &str = "–";

/// One measurement: one leg, one kind of work, one round.
pub struct Sample {
    pub requests_per_second: f64,
    /// Not known for an upstream that this bench did not start.
    pub cpu_microseconds: Option<f64>,
    pub median_latency: Duration,
    pub slow_latency: Duration,
    pub failures: usize,
}

/// All measurements of one number of connections, rounds in order.
#[derive(Default)]
pub struct Figures {
    samples: BTreeMap<(Work, Leg), Vec<Sample>>,
}

/// The middle of some values, and the span that they cover.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[half]
        } else {
            f64::midpoint(values[half - 1], values[half])
        };
        Some(Self {
            least,
            median,
            most,
        })
    }

    fn ratio(self) -> String {
        format!("{:.2} ({:.2}–{:.2})", self.median, self.least, self.most)
    }
}

fn median(samples: &[Sample], figure: impl Fn(&Sample) -> Option<f64>, digits: usize) -> String {
    Spread::of(samples.iter().filter_map(figure)).map_or_else(
        || NOTHING.to_owned(),
        |spread| format!("{:.digits$}", spread.median),
    )
}

fn milliseconds(latency: Duration) -> f64 {
    latency.as_secs_f64() * 1e3
}

impl Figures {
    pub fn add(&mut self, work: Work, leg: Leg, sample: Sample) {
        self.samples.entry((work, leg)).or_default().push(sample);
    }

    pub fn failures(&self) -> usize {
        let samples = self.samples.values().flatten();
        samples.map(|sample| sample.failures).sum()
    }

    /// The ratios of one leg to another, each formed within one round: what else the machine did then met both.
    fn ratios(
        &self,
        work: Work,
        (leg, other): (Leg, Leg),
        figure: fn(&Sample) -> Option<f64>,
    ) -> impl Iterator<Item = f64> {
        let rounds = |leg| self.samples.get(&(work, leg)).into_iter().flatten();
        rounds(leg)
            .zip(rounds(other))
            .filter_map(move |(ours, other)| Some(figure(ours)? / figure(other)?))
    }

    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN).set_header([
            "work",
            "leg",
            "requests/s",
            "to bare",
            "CPU µs/request",
            "CPU to bare",
            "median ms",
            "99 % ms",
            "failures",
        ]);
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for (&(work, leg), samples) in &self.samples {
            let ratio = |figure: fn(&Sample) -> Option<f64>| {
                let spread = Spread::of(self.ratios(work, (leg, Leg::Bare), figure));
                spread.map_or_else(|| NOTHING.to_owned(), Spread::ratio)
            };
            // The mock is no proxy: its CPU time is there for orientation, a ratio would mean nothing.
            let cpu_ratio = match leg {
                Leg::Direct => NOTHING.to_owned(),
                Leg::Bare | Leg::Omniglot | Leg::Store => ratio(|sample| sample.cpu_microseconds),
            };
            let failures: usize = samples.iter().map(|sample| sample.failures).sum();
            table.add_row([
                work.title().to_owned(),
                leg.title().to_owned(),
                median(samples, |sample| Some(sample.requests_per_second), 0),
                ratio(|sample| Some(sample.requests_per_second)),
                median(samples, |sample| sample.cpu_microseconds, 1),
                cpu_ratio,
                median(samples, |one| Some(milliseconds(one.median_latency)), 2),
                median(samples, |one| Some(milliseconds(one.slow_latency)), 2),
                failures.to_string(),
            ]);
        }
        table
    }

    /// One line for each kind of work and each aim: whether it is met.
    pub fn verdicts(&self) -> Vec<String> {
        let aims = [
            (Leg::Omniglot, Leg::Bare, AIM),
            (Leg::Store, Leg::Omniglot, STORE_AIM),
        ];
        let mut lines = Vec::new();
        for (leg, other, aim) in aims {
            let works = self.samples.keys().filter(|(_, found)| *found == leg);
            lines.extend(works.filter_map(|&(work, _)| {
                let ratios = self.ratios(work, (leg, other), |sample| sample.cpu_microseconds);
                let median = Spread::of(ratios)?.median;
                let word = if median <= aim { "met" } else { "MISSED" };
                let (work, leg, other) = (work.title(), leg.title(), other.title());
                Some(format!(
                    "{work}: {leg}: {median:.2} times the CPU of {other}, aim {aim} {word}"
                ))
            }));
        }
        lines
    }
}
