//! Runs the legs in turns of short slices in every round, so that other load of the machine meets all alike.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use crate::connection::Connection;
use crate::load::{Crew, Questions};
use crate::process::Process;
use crate::statistics::Spread;
use crate::targets::Target;
use crate::work::Request;

/// Those that work when the answer is out; `sqlx-sqlite-worker` as the kernel keeps it.
const LATER: [&str; 2] = ["store", "sqlx-sqlite-wor"];

const WARM_UP: Duration = Duration::from_millis(200);

/// Measured in one piece each, two copies of the same proxy differed by 15 % on a busy machine; in slices by at most 7 %.
const SLICE: Duration = Duration::from_millis(100);

/// One leg: whom to ask, what, and over how many connections.
pub struct Entry<'a> {
    pub title: String,
    pub target: &'a Target,
    pub requests: Vec<Request>,
    pub connections: u16,
}

/// What one leg did in one round.
#[derive(Clone, Copy)]
pub struct Sample {
    pub requests_per_second: f64,
    /// For a request.
    pub cpu_microseconds: f64,
    /// Of that, what the threads took that carry receipts to the database, and the database itself.
    pub later_microseconds: f64,
}

impl Sample {
    /// What is left without what is done later.
    pub fn answering(&self) -> f64 {
        self.cpu_microseconds - self.later_microseconds
    }
}

/// All rounds of one leg, in order.
#[derive(Default)]
pub struct Rounds(Vec<Sample>);

impl Rounds {
    pub fn append(&mut self, mut more: Rounds) {
        self.0.append(&mut more.0);
    }

    /// Formed within each round: what else the machine did then met both.
    pub fn ratio(&self, other: &Rounds, figure: fn(&Sample) -> f64) -> Spread {
        let rounds = self.0.iter().zip(&other.0);
        Spread::of(rounds.map(|(ours, other)| figure(ours) / figure(other)))
    }

    pub fn cpu_ratio(&self, other: &Rounds) -> Spread {
        self.ratio(other, |sample| sample.cpu_microseconds)
    }

    pub fn median(&self, figure: fn(&Sample) -> f64) -> f64 {
        Spread::of(self.0.iter().map(figure)).median
    }

    pub fn cpu(&self) -> f64 {
        self.median(|sample| sample.cpu_microseconds)
    }

    pub fn speed(&self) -> f64 {
        self.median(|sample| sample.requests_per_second)
    }
}

struct Course<'a> {
    title: String,
    target: &'a Target,
    questions: Arc<Questions>,
    crew: Crew,
    answers: u64,
    elapsed: Duration,
    answering: Duration,
    /// Since the process began.
    later: Duration,
}

/// CPU time of a process so far.
struct Spent {
    answering: Duration,
    later: Duration,
}

impl Spent {
    fn by(process: &Process) -> Result<Self> {
        let later = later(process)?;
        let all = process.cpu_time()?;
        // A thread that has ended takes its time with it, which then counts for the answers.
        let answering = all.saturating_sub(later);
        Ok(Self { answering, later })
    }
}

impl<'a> Course<'a> {
    /// The first answer is read closely, so that nothing is measured that is not the right one.
    async fn open(entry: Entry<'a>) -> Result<Self> {
        let address = entry.target.address;
        let questions = Questions::new(entry.requests);
        let request = questions.next();
        let mut connection = Connection::open(address).await?;
        let answer = connection.exchange(request.bytes()).await;
        let checked = answer.and_then(|answer| request.check_whole(answer));
        checked.with_context(|| entry.title.clone())?;
        let mut crew = Crew::open(address, entry.connections).await?;
        // What is asked for the first time makes its counters and the like, which is not what a request costs.
        let mut asked = 0;
        while asked < questions.count() {
            let warmed = crew.drive(&questions, WARM_UP).await;
            asked += warmed.with_context(|| entry.title.clone())?;
        }
        Ok(Self {
            title: entry.title,
            target: entry.target,
            questions,
            crew,
            answers: 0,
            elapsed: Duration::ZERO,
            answering: Duration::ZERO,
            later: Spent::by(&entry.target.process)?.later,
        })
    }

    async fn run(&mut self, time: Duration) -> Result<()> {
        let before = Spent::by(&self.target.process)?;
        let begin = Instant::now();
        let driven = self.crew.drive(&self.questions, time).await;
        self.elapsed += begin.elapsed();
        self.answers += driven.with_context(|| self.title.clone())?;
        let after = Spent::by(&self.target.process)?;
        self.answering += after.answering.saturating_sub(before.answering);
        Ok(())
    }

    /// What is done later counts from one round to the next, whoever has his turn meanwhile.
    fn take_sample(&mut self) -> Result<Sample> {
        let answers = f64::from(u32::try_from(std::mem::take(&mut self.answers))?);
        ensure!(answers > 0.0, "{}: no answer", self.title);
        let elapsed = std::mem::take(&mut self.elapsed);
        let answering = std::mem::take(&mut self.answering);
        let spent = Spent::by(&self.target.process)?;
        let before = std::mem::replace(&mut self.later, spent.later);
        let later = spent.later.saturating_sub(before);
        let of_one = |time: Duration| time.as_secs_f64() * 1e6 / answers;
        Ok(Sample {
            requests_per_second: answers / elapsed.as_secs_f64(),
            cpu_microseconds: of_one(answering + later),
            later_microseconds: of_one(later),
        })
    }
}

/// CPU time so far of those threads that work later.
fn later(process: &Process) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{}/task", process.id()?))? {
        let thread = thread?.path();
        let name = fs::read_to_string(thread.join("comm"))?;
        if LATER.contains(&name.trim_end()) {
            let times = fs::read_to_string(thread.join("schedstat"))?;
            let nanoseconds = times.split(' ').next().unwrap_or_default();
            sum += Duration::from_nanos(nanoseconds.parse()?);
        }
    }
    Ok(sum)
}

/// Every leg for this time in each round; what comes back is in the order of the entries.
pub async fn measure(entries: Vec<Entry<'_>>, rounds: u16, time: Duration) -> Result<Vec<Rounds>> {
    measure_with_rest(entries, rounds, time, Duration::ZERO).await
}

/// The same with a pause after every round, for legs that do some of their work later.
pub async fn measure_with_rest(
    entries: Vec<Entry<'_>>,
    rounds: u16,
    time: Duration,
    rest: Duration,
) -> Result<Vec<Rounds>> {
    let mut courses = Vec::with_capacity(entries.len());
    for entry in entries {
        courses.push(Course::open(entry).await?);
    }
    let mut results: Vec<Rounds> = courses.iter().map(|_| Rounds(Vec::new())).collect();
    for _ in 0..rounds {
        let mut left = time;
        let mut is_backwards = false;
        while !left.is_zero() {
            let slice = left.min(SLICE);
            // There and back: no leg always comes after the same one.
            let mut order: Vec<usize> = (0..courses.len()).collect();
            if is_backwards {
                order.reverse();
            }
            for number in order {
                courses[number].run(slice).await?;
            }
            is_backwards = !is_backwards;
            left -= slice;
        }
        sleep(rest).await;
        for (course, result) in courses.iter_mut().zip(&mut results) {
            result.0.push(course.take_sample()?);
        }
    }
    Ok(results)
}
