//! Our work against a plain `serde_json` parse and write of the same bytes, in turns and in the same run.

use std::hint::black_box;
use std::time::Duration;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use nix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::allocations::Allocations;

const BATCH: Duration = Duration::from_millis(2);
const MOST_REPEATS: u32 = 10_000;

/// What one run of a work costs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub nanoseconds: f64,
    pub allocations: f64,
    pub bytes: f64,
}

pub struct Outcome {
    pub ours: Cost,
    pub plain: Cost,
    /// Of our time to that of the plain work, formed within a round: what else the machine did
    /// then met both.
    pub ratio: f64,
}

/// Time on a core, which other processes do not lengthen.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("a thread has a clock")
        .into()
}

fn time(work: &mut impl FnMut(), repeats: u32) -> Duration {
    let start = now();
    for _ in 0..repeats {
        work();
    }
    now() - start
}

/// How often a work fits into a batch.
fn repeats(work: &mut impl FnMut()) -> u32 {
    let mut repeats = 1;
    while repeats < MOST_REPEATS && time(work, repeats) < BATCH {
        repeats *= 2;
    }
    repeats
}

fn allocated(work: &mut impl FnMut()) -> Allocations {
    let before = Allocations::so_far();
    work();
    Allocations::so_far() - before
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Both do their work once per call; a call counts as `share` units of work.
pub fn hold(rounds: usize, share: f64, mut ours: impl FnMut(), mut plain: impl FnMut()) -> Outcome {
    let (our_repeats, plain_repeats) = (repeats(&mut ours), repeats(&mut plain));
    let per_unit =
        |time: Duration, repeats: u32| time.as_nanos() as f64 / f64::from(repeats) / share;
    let times: Vec<(f64, f64)> = (0..rounds)
        .map(|_| {
            let ours = per_unit(time(&mut ours, our_repeats), our_repeats);
            (
                ours,
                per_unit(time(&mut plain, plain_repeats), plain_repeats),
            )
        })
        .collect();
    let cost = |nanoseconds: Vec<f64>, allocations: Allocations| Cost {
        nanoseconds: median(nanoseconds),
        allocations: allocations.count as f64 / share,
        bytes: allocations.bytes as f64 / share,
    };
    Outcome {
        ours: cost(
            times.iter().map(|time| time.0).collect(),
            allocated(&mut ours),
        ),
        plain: cost(
            times.iter().map(|time| time.1).collect(),
            allocated(&mut plain),
        ),
        ratio: median(times.iter().map(|(ours, plain)| ours / plain).collect()),
    }
}

/// The plain work.
pub fn parse_and_write(body: &[u8]) {
    let tree: Value = serde_json::from_slice(black_box(body)).expect("JSON");
    black_box(serde_json::to_vec(&tree).expect("JSON"));
}

/// Ratios first.
pub fn table(unit: &str) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header([
        "from → to".to_owned(),
        "to plain".to_owned(),
        format!("ns/{unit}"),
        "plain ns".to_owned(),
        format!("allocations/{unit}"),
        "plain".to_owned(),
        format!("bytes allocated/{unit}"),
        "plain".to_owned(),
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

pub fn row(title: String, outcome: &Outcome) -> [String; 8] {
    let Outcome { ours, plain, ratio } = outcome;
    [
        title,
        format!("{ratio:.2}"),
        format!("{:.0}", ours.nanoseconds),
        format!("{:.0}", plain.nanoseconds),
        format!("{:.1}", ours.allocations),
        format!("{:.1}", plain.allocations),
        format!("{:.0}", ours.bytes),
        format!("{:.0}", plain.bytes),
    ]
}
