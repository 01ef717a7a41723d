//! Compares a translation with a plain `serde_json` parse and write of the same bytes, in time and in allocations.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use crate::allocations::Allocations;
use crate::timing::{Times, in_turns};

/// What one run of a work costs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub nanoseconds: f64,
    pub allocations: f64,
    pub bytes: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub ours: Cost,
    pub plain: Cost,
    pub ratio: f64,
}

fn allocated(work: &mut impl FnMut()) -> Allocations {
    let before = Allocations::so_far();
    work();
    Allocations::so_far() - before
}

/// Both do their work once per call; a call counts as `share` units of work.
pub fn hold(rounds: usize, share: f64, mut ours: impl FnMut(), mut plain: impl FnMut()) -> Outcome {
    let times = in_turns(rounds, share, &mut ours, &mut plain);
    let cost = |nanoseconds: f64, allocations: Allocations| Cost {
        nanoseconds,
        allocations: allocations.count as f64 / share,
        bytes: allocations.bytes as f64 / share,
    };
    let Times {
        ours: our_time,
        plain: plain_time,
        ratio,
    } = times;
    Outcome {
        ours: cost(our_time, allocated(&mut ours)),
        plain: cost(plain_time, allocated(&mut plain)),
        ratio,
    }
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
