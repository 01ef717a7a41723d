//! Times two functions alternately in the same run, by the CPU clock of their thread.
//!
//! criterion measures one function for seconds and then the next, by the wall clock: whatever the machine does in between is in the
//! ratio, which is what these benches are about.

use std::hint::black_box;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// How long one measurement takes at least, if `MAX_REPEATS` allows it.
const BATCH: Duration = Duration::from_millis(2);
const MAX_REPEATS: u32 = 10_000;

/// The medians of all rounds, in nanoseconds per unit of work.
pub struct Timing {
    pub ours: f64,
    pub plain: f64,
    /// Our time divided by that of the plain work. It is computed within each round, because other
    /// load of the machine affects both alike then.
    pub ratio: f64,
}

/// CPU time of this thread: other processes do not lengthen it.
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

/// Returns how many calls fill a batch.
fn calibrate_repeats(work: &mut impl FnMut()) -> u32 {
    let mut repeats = 1;
    while repeats < MAX_REPEATS && time(work, repeats) < BATCH {
        repeats *= 2;
    }
    repeats
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Times both functions; one call of either does `units` units of work.
pub fn time_alternately(
    rounds: usize,
    units: f64,
    ours: &mut impl FnMut(),
    plain: &mut impl FnMut(),
) -> Timing {
    let (our_repeats, plain_repeats) = (calibrate_repeats(ours), calibrate_repeats(plain));
    let per_unit =
        |time: Duration, repeats: u32| time.as_nanos() as f64 / f64::from(repeats) / units;
    let times: Vec<(f64, f64)> = (0..rounds)
        .map(|_| {
            let ours = per_unit(time(ours, our_repeats), our_repeats);
            (ours, per_unit(time(plain, plain_repeats), plain_repeats))
        })
        .collect();
    Timing {
        ours: median(times.iter().map(|time| time.0).collect()),
        plain: median(times.iter().map(|time| time.1).collect()),
        ratio: median(times.iter().map(|(ours, plain)| ours / plain).collect()),
    }
}

/// Does the plain work that translations are compared with: `serde_json` parses the bytes and writes them again.
pub fn parse_and_write(body: &[u8]) {
    let tree: Value = serde_json::from_slice(black_box(body)).expect("JSON");
    black_box(serde_json::to_vec(&tree).expect("JSON"));
}
