//! Compares a translation with a plain `serde_json` parse and write of the same bytes, in time and in allocations.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use crate::allocations::Allocations;
use crate::timing::{Timing, time_alternately};

/// The cost of one unit of work.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub nanoseconds: f64,
    pub allocations: f64,
    pub bytes: f64,
}

/// The costs of a translation and of the plain work, and the ratio of their times.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    pub ours: Cost,
    pub plain: Cost,
    pub ratio: f64,
}

fn count_allocations(work: &mut impl FnMut()) -> Allocations {
    let before = Allocations::current();
    work();
    Allocations::current() - before
}

/// Compares two functions; one call of either does `units` units of work.
pub fn compare(
    rounds: usize,
    units: f64,
    mut ours: impl FnMut(),
    mut plain: impl FnMut(),
) -> Comparison {
    let timing = time_alternately(rounds, units, &mut ours, &mut plain);
    let cost = |nanoseconds: f64, allocations: Allocations| Cost {
        nanoseconds,
        allocations: allocations.count as f64 / units,
        bytes: allocations.bytes as f64 / units,
    };
    let Timing {
        ours: our_time,
        plain: plain_time,
        ratio,
    } = timing;
    Comparison {
        ours: cost(our_time, count_allocations(&mut ours)),
        plain: cost(plain_time, count_allocations(&mut plain)),
        ratio,
    }
}

/// Returns an empty table of comparisons, with the ratio first.
pub fn new_table(unit: &str) -> Table {
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

/// Formats a row of that table.
pub fn table_row(title: String, comparison: &Comparison) -> [String; 8] {
    let Comparison { ours, plain, ratio } = comparison;
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
