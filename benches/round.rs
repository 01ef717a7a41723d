//! Runs the variants in turn, in short slices, so that other load of the machine affects all alike.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use crate::closed_loop::{ClosedLoop, RequestCycle};
use crate::connection::Connection;
use crate::process::Process;
use crate::statistics::Summary;
use crate::targets::Target;
use crate::workload::Request;

/// The threads that work after the response has been sent; the kernel shortens `sqlx-sqlite-worker`.
const BACKGROUND_THREADS: [&str; 2] = ["store", "sqlx-sqlite-wor"];

const WARM_UP: Duration = Duration::from_millis(200);

/// Without slices, two copies of the same proxy differed by 15 % on a busy machine; with them by at most 7 %.
const SLICE: Duration = Duration::from_millis(100);

/// A target, and the load that is sent to it.
pub struct Variant<'a> {
    pub title: String,
    pub target: &'a Target,
    pub requests: Vec<Request>,
    pub connections: u16,
}

/// The results of one variant in one round.
#[derive(Clone, Copy)]
pub struct Sample {
    pub requests_per_second: f64,
    /// CPU time for each request, that of background threads included.
    pub cpu_microseconds: f64,
    /// Of that, the time of the threads that copy usage records to the database, and of the database itself.
    pub background_microseconds: f64,
}

impl Sample {
    /// Returns the CPU time for each request without that of background threads.
    pub fn foreground(&self) -> f64 {
        self.cpu_microseconds - self.background_microseconds
    }
}

/// The samples of all rounds of one variant, in order.
#[derive(Default)]
pub struct Rounds(Vec<Sample>);

impl Rounds {
    pub fn append(&mut self, mut more: Rounds) {
        self.0.append(&mut more.0);
    }

    /// Returns the ratio of a metric to that of another variant. It is computed within each round, because other load of
    /// the machine affects both alike then.
    pub fn ratio(&self, other: &Rounds, metric: fn(&Sample) -> f64) -> Summary {
        let rounds = self.0.iter().zip(&other.0);
        Summary::of(rounds.map(|(ours, other)| metric(ours) / metric(other)))
    }

    pub fn cpu_ratio(&self, other: &Rounds) -> Summary {
        self.ratio(other, |sample| sample.cpu_microseconds)
    }

    pub fn median(&self, metric: fn(&Sample) -> f64) -> f64 {
        Summary::of(self.0.iter().map(metric)).median
    }

    /// Returns the median of the CPU time for each request, in microseconds.
    pub fn cpu(&self) -> f64 {
        self.median(|sample| sample.cpu_microseconds)
    }

    /// Returns the median of the requests per second.
    pub fn throughput(&self) -> f64 {
        self.median(|sample| sample.requests_per_second)
    }
}

/// A variant with open connections, and its totals in the current round.
struct VariantRun<'a> {
    title: String,
    target: &'a Target,
    requests: Arc<RequestCycle>,
    load: ClosedLoop,
    responses: u64,
    elapsed: Duration,
    foreground: Duration,
    /// CPU time of background threads from the start of the process to that of the round.
    background: Duration,
}

/// CPU time of a process since its start.
struct CpuTime {
    foreground: Duration,
    background: Duration,
}

impl CpuTime {
    fn of(process: &Process) -> Result<Self> {
        let background = background_cpu_time(process)?;
        let all = process.cpu_time()?;
        // The time of a background thread that has ended is known to the process only, and counts as foreground.
        let foreground = all.saturating_sub(background);
        Ok(Self {
            foreground,
            background,
        })
    }
}

impl<'a> VariantRun<'a> {
    /// Opens the connections and warms up. The first response is checked completely, so that only the right one is measured.
    async fn open(variant: Variant<'a>) -> Result<Self> {
        let address = variant.target.address;
        let requests = RequestCycle::new(variant.requests);
        let request = requests.next();
        let mut connection = Connection::open(address).await?;
        let response = connection.exchange(request.bytes()).await;
        let checked = response.and_then(|response| request.check_content(response));
        checked.with_context(|| variant.title.clone())?;
        let mut load = ClosedLoop::open(address, variant.connections).await?;
        // The first request for a key or model creates its counters, which is no part of the cost of a request.
        let mut sent = 0;
        while sent < requests.count() {
            let warmed = load.run(&requests, WARM_UP).await;
            sent += warmed.with_context(|| variant.title.clone())?;
        }
        Ok(Self {
            title: variant.title,
            target: variant.target,
            requests,
            load,
            responses: 0,
            elapsed: Duration::ZERO,
            foreground: Duration::ZERO,
            background: CpuTime::of(&variant.target.process)?.background,
        })
    }

    /// Sends load for `time` and adds the results to the totals of the round.
    async fn run(&mut self, time: Duration) -> Result<()> {
        let before = CpuTime::of(&self.target.process)?;
        let begin = Instant::now();
        let responses = self.load.run(&self.requests, time).await;
        self.elapsed += begin.elapsed();
        self.responses += responses.with_context(|| self.title.clone())?;
        let after = CpuTime::of(&self.target.process)?;
        self.foreground += after.foreground.saturating_sub(before.foreground);
        Ok(())
    }

    /// Ends the round. Background work counts from one round to the next, because it goes on while other variants run.
    fn take_sample(&mut self) -> Result<Sample> {
        let responses = f64::from(u32::try_from(std::mem::take(&mut self.responses))?);
        ensure!(responses > 0.0, "{}: no response", self.title);
        let elapsed = std::mem::take(&mut self.elapsed);
        let foreground = std::mem::take(&mut self.foreground);
        let total = CpuTime::of(&self.target.process)?;
        let before = std::mem::replace(&mut self.background, total.background);
        let background = total.background.saturating_sub(before);
        let per_request = |time: Duration| time.as_secs_f64() * 1e6 / responses;
        Ok(Sample {
            requests_per_second: responses / elapsed.as_secs_f64(),
            cpu_microseconds: per_request(foreground + background),
            background_microseconds: per_request(background),
        })
    }
}

/// Returns the CPU time of the background threads since the start of the process.
fn background_cpu_time(process: &Process) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{}/task", process.id()?))? {
        let thread = thread?.path();
        let name = fs::read_to_string(thread.join("comm"))?;
        if BACKGROUND_THREADS.contains(&name.trim_end()) {
            let times = fs::read_to_string(thread.join("schedstat"))?;
            let nanoseconds = times.split(' ').next().unwrap_or_default();
            sum += Duration::from_nanos(nanoseconds.parse()?);
        }
    }
    Ok(sum)
}

/// Runs every variant for `time` in each round; the results are in the order of the variants.
pub async fn measure(
    variants: Vec<Variant<'_>>,
    rounds: u16,
    time: Duration,
) -> Result<Vec<Rounds>> {
    measure_with_pause(variants, rounds, time, Duration::ZERO).await
}

/// Does the same with a pause after every round, in which background work of the variants ends.
pub async fn measure_with_pause(
    variants: Vec<Variant<'_>>,
    rounds: u16,
    time: Duration,
    pause: Duration,
) -> Result<Vec<Rounds>> {
    let mut runs = Vec::with_capacity(variants.len());
    for variant in variants {
        runs.push(VariantRun::open(variant).await?);
    }
    let mut results: Vec<Rounds> = runs.iter().map(|_| Rounds(Vec::new())).collect();
    for _ in 0..rounds {
        let mut left = time;
        let mut is_backwards = false;
        while !left.is_zero() {
            let slice = left.min(SLICE);
            // Every other slice has the reverse order, so that no variant always follows the same one.
            let mut order: Vec<usize> = (0..runs.len()).collect();
            if is_backwards {
                order.reverse();
            }
            for number in order {
                runs[number].run(slice).await?;
            }
            is_backwards = !is_backwards;
            left -= slice;
        }
        sleep(pause).await;
        for (run, result) in runs.iter_mut().zip(&mut results) {
            result.0.push(run.take_sample()?);
        }
    }
    Ok(results)
}
