//! Times two functions in turns and in the same run, on the clock of their own thread.

use std::hint::black_box;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde_json::Value;

const BATCH: Duration = Duration::from_millis(2);
const MOST_REPEATS: u32 = 10_000;

/// Nanoseconds for a unit of work.
pub struct Times {
    pub ours: f64,
    pub plain: f64,
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Both do their work once per call; a call counts as `share` units of work.
pub fn in_turns(
    rounds: usize,
    share: f64,
    ours: &mut impl FnMut(),
    plain: &mut impl FnMut(),
) -> Times {
    let (our_repeats, plain_repeats) = (repeats(ours), repeats(plain));
    let per_unit =
        |time: Duration, repeats: u32| time.as_nanos() as f64 / f64::from(repeats) / share;
    let times: Vec<(f64, f64)> = (0..rounds)
        .map(|_| {
            let ours = per_unit(time(ours, our_repeats), our_repeats);
            (ours, per_unit(time(plain, plain_repeats), plain_repeats))
        })
        .collect();
    Times {
        ours: median(times.iter().map(|time| time.0).collect()),
        plain: median(times.iter().map(|time| time.1).collect()),
        ratio: median(times.iter().map(|(ours, plain)| ours / plain).collect()),
    }
}

/// The plain work.
pub fn parse_and_write(body: &[u8]) {
    let tree: Value = serde_json::from_slice(black_box(body)).expect("JSON");
    black_box(serde_json::to_vec(&tree).expect("JSON"));
}
