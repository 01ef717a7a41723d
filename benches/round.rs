//! One round of one kind of work: the legs take turns in short slices, so that what else the machine does meets all alike.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::leg::{Leg, Target};
use crate::load::{Crew, Tally};
use crate::table::Sample;
use crate::work::{Request, Work};

const WARM_UP: Duration = Duration::from_millis(300);

/// Measured in one piece each, two copies of the same proxy differed by 15 % on a busy machine; in slices by at most 7 %.
const SLICE: Duration = Duration::from_millis(250);

/// One leg in this round: its connections, and what they brought so far.
struct Course<'a> {
    target: &'a Target,
    work: Work,
    request: Arc<Request>,
    crew: Crew,
    tally: Tally,
    elapsed: Duration,
    cpu: Option<Duration>,
}

impl<'a> Course<'a> {
    async fn open(target: &'a Target, work: Work, connections: u16) -> Result<Self> {
        let request = Arc::new(Request::new(work, target.address));
        let mut crew = Crew::open(target.address, connections.into()).await?;
        let mut tally = crew.drive(&request, WARM_UP).await;
        tally.latencies.clear();
        Ok(Self {
            target,
            work,
            request,
            crew,
            tally,
            elapsed: Duration::ZERO,
            cpu: target.process.is_some().then_some(Duration::ZERO),
        })
    }

    async fn run(&mut self, time: Duration) -> Result<()> {
        let cpu_before = self.target.cpu_time()?;
        let begin = Instant::now();
        let tally = self.crew.drive(&self.request, time).await;
        self.elapsed += begin.elapsed();
        if let (Some(cpu), Some(before), Some(after)) =
            (&mut self.cpu, cpu_before, self.target.cpu_time()?)
        {
            *cpu += after - before;
        }
        self.tally.latencies.extend(tally.latencies);
        self.tally.failures.extend(tally.failures);
        Ok(())
    }

    fn sample(self) -> Result<Sample> {
        let Tally {
            mut latencies,
            failures,
        } = self.tally;
        let (leg, work) = (self.target.leg.title(), self.work.title());
        if let Some(first) = failures.first() {
            eprintln!("{leg}, {work}: {} failures; first: {first}", failures.len());
        }
        if latencies.is_empty() {
            bail!("{leg}: no answer to {work}");
        }
        latencies.sort_unstable();
        let answers = f64::from(u32::try_from(latencies.len())?);
        Ok(Sample {
            requests_per_second: answers / self.elapsed.as_secs_f64(),
            cpu_microseconds: self.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / answers),
            median_latency: latencies[latencies.len() / 2],
            slow_latency: latencies[latencies.len() * 99 / 100],
            failures: failures.len(),
        })
    }
}

/// Measures every target for this time in all.
pub async fn measure(
    targets: &[&Target],
    work: Work,
    connections: u16,
    time: Duration,
) -> Result<Vec<(Leg, Sample)>> {
    let mut courses = Vec::with_capacity(targets.len());
    for target in targets {
        courses.push(Course::open(target, work, connections).await?);
    }
    let mut left = time;
    while !left.is_zero() {
        let slice = left.min(SLICE);
        for course in &mut courses {
            course.run(slice).await?;
        }
        // There and back: no leg always comes after the same one.
        courses.reverse();
        left -= slice;
    }
    courses
        .into_iter()
        .map(|course| Ok((course.target.leg, course.sample()?)))
        .collect()
}
