//! Measures added latency: requests at a fixed rate, and the time of first bytes and events.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Terms;
use crate::aims::{Aim, Aims};
use crate::formats::{FORMATS, Format, KEY};
use crate::open_loop::{self, Observation, Schedule};
use crate::setup::Ground;
use crate::statistics::{Spread, percentile};
use crate::table::{figure, table};
use crate::targets::{BARE_MIMALLOC, Field, Target};
use crate::work::{Request, Work};

/// Requests per second.
const JSON_RATE: f64 = 500.0;
const STREAM_RATE: f64 = 50.0;

/// Of each leg in a round. What is added at the 99th of a hundred is a small difference of large figures, and takes many
/// requests to be told.
const JSON_TURNS: usize = 16;
const STREAM_TURNS: usize = 8;

/// Short, so that most of them pass while the host leaves this machine alone.
const TURN: Duration = Duration::from_millis(500);

/// A turn in which the host took the machine away says nothing of any proxy and does not count. There are so many
/// attempts at an undisturbed one.
const ATTEMPTS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Bare,
    BareMimalloc,
    Nginx,
    Same,
    Translated,
}

impl Way {
    fn title(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Bare => "bare pingora",
            Self::BareMimalloc => BARE_MIMALLOC,
            Self::Nginx => "nginx",
            Self::Same => "omniglot, same format",
            Self::Translated => "omniglot, translated",
        }
    }

    fn is_ours(self) -> bool {
        matches!(self, Self::Same | Self::Translated)
    }
}

/// One leg: its requests take turns, so that one run holds all of its pairs.
struct Leg<'a> {
    way: Way,
    target: &'a Target,
    pairs: Vec<(Format, Format)>,
    /// Rounds in order.
    found: Vec<Vec<Observation>>,
    /// Turns that the host disturbed.
    disturbed: usize,
}

/// The times of an answer that a table is about.
type Times = fn(&Observation) -> Vec<Duration>;

const FIRST_BYTE: Times = |answer| vec![answer.first_byte];

pub async fn run(terms: &Terms, aims: &mut Aims) -> Result<()> {
    let field = Field::start(terms, "latency").await?;
    let json = Schedule {
        rate: terms.scaled(JSON_RATE, 50.0),
        time: terms.scaled(TURN, Duration::from_millis(100)),
        connections: terms.scaled(32, 8),
    };
    let legs = measure(terms, &field, &Work::json(), json, JSON_TURNS).await?;
    println!(
        "\n## Latency, JSON, {} requests/s by the clock over {} connections\n",
        json.rate, json.connections
    );
    report(&legs, "time to first byte", FIRST_BYTE);
    tell_of_host(&legs);
    judge(&legs, aims);

    let streams = Schedule {
        rate: STREAM_RATE,
        time: terms.scaled(TURN, Duration::from_millis(100)),
        connections: terms.scaled(64, 16),
    };
    let work = Work::paced(terms.scaled(50, 5));
    let legs = measure(terms, &field, &work, streams, STREAM_TURNS).await?;
    println!(
        "\n## Latency, {}, {} requests/s by the clock over {} connections\n",
        work.title, streams.rate, streams.connections
    );
    report(&legs, "time to first byte", FIRST_BYTE);
    report(&legs, "time to first content", |answer| {
        answer.first_content.into_iter().collect()
    });
    report(&legs, "between events", |answer| answer.gaps.clone());
    tell_of_host(&legs);
    Ok(())
}

fn legs(field: &Field) -> Vec<Leg<'_>> {
    let leg = |way, target| {
        let all = FORMATS.map(|client| FORMATS.map(|upstream| (client, upstream)));
        let pairs = all.into_iter().flatten();
        let is_in = |(client, upstream): &(Format, Format)| {
            (client == upstream) != (way == Way::Translated)
        };
        Leg {
            way,
            target,
            pairs: pairs.filter(is_in).collect(),
            found: Vec::new(),
            disturbed: 0,
        }
    };
    let mut legs = vec![
        leg(Way::Direct, &field.mock),
        leg(Way::Bare, &field.bare),
        leg(Way::BareMimalloc, &field.bare_mimalloc),
    ];
    legs.extend(field.nginx.as_ref().map(|nginx| leg(Way::Nginx, nginx)));
    legs.push(leg(Way::Same, &field.omniglot));
    legs.push(leg(Way::Translated, &field.omniglot));
    legs
}

async fn measure<'a>(
    terms: &Terms,
    field: &'a Field,
    work: &Work,
    schedule: Schedule,
    turns: usize,
) -> Result<Vec<Leg<'a>>> {
    let mut legs = legs(field);
    for number in 1..=terms.rounds {
        eprintln!("latency, {}, round {number}", work.title);
        for leg in &mut legs {
            leg.found.push(Vec::new());
        }
        for turn in 0..turns {
            // There and back: no leg always comes after the same one.
            let mut order: Vec<usize> = (0..legs.len()).collect();
            if turn % 2 == 1 {
                order.reverse();
            }
            for place in order {
                legs[place].observe(work, schedule).await?;
            }
        }
    }
    Ok(legs)
}

/// For how long, in hundredths of a second of each core, the host has kept this virtual machine from running so far.
fn stolen() -> Result<u64> {
    let times = fs::read_to_string("/proc/stat")?;
    let stolen = times.split_whitespace().nth(8);
    Ok(stolen.context("no time that was stolen")?.parse()?)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn sorted(times: impl Iterator<Item = Duration>) -> Vec<f64> {
    let mut times: Vec<f64> = times.map(milliseconds).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn find<'a, 'b>(legs: &'b [Leg<'a>], way: Way) -> Option<&'b Leg<'a>> {
    legs.iter().find(|leg| leg.way == way)
}

impl Leg<'_> {
    /// One turn, which belongs to the round that has begun last.
    async fn observe(&mut self, work: &Work, schedule: Schedule) -> Result<()> {
        let address = self.target.address;
        let request = |&(client, upstream): &(Format, Format)| {
            Request::new(work, client, &Ground::model(upstream), KEY, address)
        };
        let requests: Arc<[Request]> = self.pairs.iter().map(request).collect();
        for _ in 0..ATTEMPTS {
            let requests = requests.clone();
            let before = stolen()?;
            let run = move || open_loop::run(address, &requests, schedule);
            let found = tokio::task::spawn_blocking(run).await?;
            let found = found.context(self.way.title())?;
            if stolen()? == before {
                let round = self.found.last_mut().context("no round has begun")?;
                round.extend(found);
                return Ok(());
            }
            self.disturbed += 1;
        }
        Ok(())
    }

    /// Milliseconds in order, of one pair or of all.
    fn times(&self, times: Times, pair: Option<usize>) -> Vec<f64> {
        let answers = self.found.iter().flatten();
        let answers = answers.filter(|answer| pair.is_none_or(|pair| answer.request == pair));
        sorted(answers.flat_map(times))
    }
}

/// All samples of all rounds together; then every pair by itself.
fn report(legs: &[Leg<'_>], what: &str, times: Times) {
    let header = [
        what,
        "50 % to bare",
        "99 % to bare",
        "50 % ms",
        "99 % ms",
        "99.9 % ms",
        "samples",
    ];
    let mut table = table(1, &header);
    let bare = find(legs, Way::Bare);
    let mut add = |title: String, leg: &Leg<'_>, pair: Option<usize>| {
        // A pair is held against the bare proxy on the same upstream.
        let upstream = pair.map(|pair| leg.pairs[pair].1);
        let place = |bare: &Leg<'_>| bare.pairs.iter().position(|pair| Some(pair.1) == upstream);
        let bare = bare.map(|bare| bare.times(times, place(bare)));
        let bare = bare.unwrap_or_default();
        let found = leg.times(times, pair);
        let to_bare = |part| Some(percentile(&found, part)? / percentile(&bare, part)?);
        table.add_row([
            title,
            figure(to_bare(50.0), 2),
            figure(to_bare(99.0), 2),
            figure(percentile(&found, 50.0), 3),
            figure(percentile(&found, 99.0), 3),
            figure(percentile(&found, 99.9), 3),
            found.len().to_string(),
        ]);
    };
    for leg in legs {
        add(leg.way.title().to_owned(), leg, None);
    }
    for leg in legs.iter().filter(|leg| leg.way.is_ours()) {
        for (number, (client, upstream)) in leg.pairs.iter().enumerate() {
            let title = format!("{} → {}", client.name(), upstream.name());
            add(title, leg, Some(number));
        }
    }
    println!("{table}\n");
}

fn tell_of_host(legs: &[Leg<'_>]) {
    let disturbed = legs.iter().filter(|leg| leg.disturbed > 0);
    let disturbed = disturbed.map(|leg| format!("{} {}", leg.way.title(), leg.disturbed));
    let disturbed: Vec<String> = disturbed.collect();
    if !disturbed.is_empty() {
        let disturbed = disturbed.join("; ");
        println!("Turns that do not count, because the host took the machine away: {disturbed}\n");
    }
}

/// The 99th of a hundred in every round, and of all rounds together what it adds to the direct way.
fn judge(legs: &[Leg<'_>], aims: &mut Aims) {
    let (Some(bare), Some(direct)) = (find(legs, Way::Bare), find(legs, Way::Direct)) else {
        return;
    };
    let slow = |answers: &[Observation]| {
        let times = sorted(answers.iter().map(|answer| answer.first_byte));
        percentile(&times, 99.0)
    };
    let pooled = |leg: &Leg<'_>| percentile(&leg.times(FIRST_BYTE, None), 99.0);
    for leg in legs.iter().filter(|leg| leg.way.is_ours()) {
        let title = leg.way.title();
        let rounds = leg.found.iter().zip(&bare.found);
        let ratios = rounds.filter_map(|(ours, bare)| Some(slow(ours)? / slow(bare)?));
        let ratios: Vec<f64> = ratios.collect();
        if !ratios.is_empty() {
            aims.judge(Aim::FirstByte, Spread::of(ratios).median, title);
        }
        let (Some(ours), Some(bare), Some(direct)) = (pooled(leg), pooled(bare), pooled(direct))
        else {
            continue;
        };
        let (ours, bare) = (ours - direct, bare - direct);
        let added = format!(
            "{title}: {:.0} µs added, bare {:.0} µs",
            ours * 1e3,
            bare * 1e3
        );
        if bare > 0.0 {
            aims.judge(Aim::AddedFirstByte, ours / bare, added);
        } else {
            println!("{added}: a proxy that adds nothing in the noise is no yardstick\n");
        }
    }
}
