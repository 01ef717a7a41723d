//! Measures how the CPU time of a function grows with the number of elements in its input.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use omniglot::model::Format;

/// How many times the elements of the larger input are those of the smaller one.
const STEP: usize = 4;

/// Work in proportion to its input takes `STEP` times as long; quadratic work 16 times.
const LIMIT: f64 = 6.0;

/// Shorter times say nothing: the clock and the caches decide.
const SHORTEST: Duration = Duration::from_micros(300);

/// How often a growth above the limit is measured again, since the machine may have been busy.
const ATTEMPTS: usize = 5;

fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("the clock of the thread")
        .into()
}

/// The shortest of several runs: nothing makes code faster than it is.
fn cpu_time(run: &dyn Fn()) -> Duration {
    let times = (0..3).map(|_| {
        let start = thread_cpu_time();
        run();
        thread_cpu_time() - start
    });
    times.min().expect("several runs")
}

/// Says how the work grows if that is too much. `work` takes a body; `body` makes one of so many elements.
pub fn excess(
    count: usize,
    body: impl Fn(usize) -> Vec<u8>,
    work: impl Fn(&[u8]),
) -> Option<String> {
    let (small, large) = (body(count), body(count * STEP));
    let mut lowest = f64::INFINITY;
    let mut last = Duration::ZERO;
    for _ in 0..ATTEMPTS {
        let (before, after) = (cpu_time(&|| work(&small)), cpu_time(&|| work(&large)));
        let growth = after.as_secs_f64() / before.max(SHORTEST).as_secs_f64();
        (lowest, last) = (lowest.min(growth), after);
        if growth <= LIMIT {
            return None;
        }
    }
    Some(format!(
        "{lowest:.1} times ({last:?} for {} bytes)",
        large.len()
    ))
}

/// All pairs of client and upstream.
pub fn pairs() -> impl Iterator<Item = (Format, Format)> {
    let all = Format::ALL.into_iter();
    all.flat_map(|from| Format::ALL.map(|to| (from, to)))
}

/// `element` for every number below `count`, as a list without its brackets.
pub fn list(count: usize, element: impl Fn(usize) -> String) -> String {
    let elements: Vec<String> = (0..count).map(element).collect();
    elements.join(",")
}

/// Fails with everything that grows too fast.
pub fn check(found: Vec<String>) {
    assert!(
        found.is_empty(),
        "of {STEP} times the elements, at most {LIMIT} times the work:\n{}",
        found.join("\n")
    );
}
