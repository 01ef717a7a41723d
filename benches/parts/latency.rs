//! Measures latency at a fixed rate of requests: the time to the first byte, and between events.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::RunOptions;
use crate::aims::{Aim, Aims};
use crate::formats::{FORMATS, Format, KEY};
use crate::open_loop::{self, ResponseTimes, Schedule};
use crate::setup::TestSetup;
use crate::statistics::{Summary, percentile};
use crate::table::{format_number, new_table};
use crate::targets::{BARE_MIMALLOC, Target, Targets};
use crate::workload::{Request, Workload};

/// Requests per second.
const JSON_RATE: f64 = 500.0;
const STREAM_RATE: f64 = 50.0;

/// The turns of each variant in a round. The latency that a proxy adds at p99 is a small difference of large figures, which
/// takes many requests to measure.
const JSON_TURNS: usize = 16;
const STREAM_TURNS: usize = 8;

/// Short, so that the host takes no CPU from the virtual machine in most turns.
const TURN_TIME: Duration = Duration::from_millis(500);

/// How often a turn is tried. One in which the host took CPU from the virtual machine is discarded, because it says nothing
/// about the proxy.
const MAX_ATTEMPTS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum VariantKind {
    Direct,
    Bare,
    BareMimalloc,
    Nginx,
    Same,
    Translated,
}

impl VariantKind {
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

    fn is_omniglot(self) -> bool {
        matches!(self, Self::Same | Self::Translated)
    }
}

/// A variant that sends the requests of all its pairs in turn.
struct LatencyVariant<'a> {
    kind: VariantKind,
    target: &'a Target,
    pairs: Vec<(Format, Format)>,
    /// The responses of each round, in order.
    rounds: Vec<Vec<ResponseTimes>>,
    /// The number of discarded turns.
    discarded_turns: usize,
}

/// Selects the times of a response for a table.
type SelectTimes = fn(&ResponseTimes) -> Vec<Duration>;

const FIRST_BYTE: SelectTimes = |response| vec![response.first_byte];

pub async fn run(options: &RunOptions, aims: &mut Aims) -> Result<()> {
    let targets = Targets::start(options, "latency").await?;
    let json = Schedule {
        rate: options.scaled(JSON_RATE, 50.0),
        time: options.scaled(TURN_TIME, Duration::from_millis(100)),
        connections: options.scaled(32, 8),
    };
    let variants = measure(options, &targets, &Workload::json(), json, JSON_TURNS).await?;
    println!(
        "\n## Latency, JSON, {} requests/s by the clock over {} connections\n",
        json.rate, json.connections
    );
    report(&variants, "time to first byte", FIRST_BYTE);
    print_discarded_turns(&variants);
    judge(&variants, aims);

    let streams = Schedule {
        rate: STREAM_RATE,
        time: options.scaled(TURN_TIME, Duration::from_millis(100)),
        connections: options.scaled(64, 16),
    };
    let workload = Workload::paced(options.scaled(50, 5));
    let variants = measure(options, &targets, &workload, streams, STREAM_TURNS).await?;
    println!(
        "\n## Latency, {}, {} requests/s by the clock over {} connections\n",
        workload.title, streams.rate, streams.connections
    );
    report(&variants, "time to first byte", FIRST_BYTE);
    report(&variants, "time to first content", |response| {
        response.first_content.into_iter().collect()
    });
    report(&variants, "between events", |response| {
        response.between_events.clone()
    });
    print_discarded_turns(&variants);
    Ok(())
}

fn new_variants(targets: &Targets) -> Vec<LatencyVariant<'_>> {
    let variant = |kind, target| {
        let all = FORMATS.map(|client| FORMATS.map(|upstream| (client, upstream)));
        let pairs = all.into_iter().flatten();
        let is_included = |(client, upstream): &(Format, Format)| {
            (client == upstream) != (kind == VariantKind::Translated)
        };
        LatencyVariant {
            kind,
            target,
            pairs: pairs.filter(is_included).collect(),
            rounds: Vec::new(),
            discarded_turns: 0,
        }
    };
    let mut variants = vec![
        variant(VariantKind::Direct, &targets.mock),
        variant(VariantKind::Bare, &targets.bare),
        variant(VariantKind::BareMimalloc, &targets.bare_mimalloc),
    ];
    variants.extend(
        targets
            .nginx
            .as_ref()
            .map(|nginx| variant(VariantKind::Nginx, nginx)),
    );
    variants.push(variant(VariantKind::Same, &targets.omniglot));
    variants.push(variant(VariantKind::Translated, &targets.omniglot));
    variants
}

async fn measure<'a>(
    options: &RunOptions,
    targets: &'a Targets,
    workload: &Workload,
    schedule: Schedule,
    turns: usize,
) -> Result<Vec<LatencyVariant<'a>>> {
    let mut variants = new_variants(targets);
    for number in 1..=options.rounds {
        eprintln!("latency, {}, round {number}", workload.title);
        for variant in &mut variants {
            variant.rounds.push(Vec::new());
        }
        for turn in 0..turns {
            // Every other turn has the reverse order, so that no variant always follows the same one.
            let mut order: Vec<usize> = (0..variants.len()).collect();
            if turn % 2 == 1 {
                order.reverse();
            }
            for index in order {
                variants[index].run_turn(workload, schedule).await?;
            }
        }
    }
    Ok(variants)
}

/// Returns the CPU time that the host has taken from this virtual machine since boot, in hundredths of a second.
fn steal_time() -> Result<u64> {
    let times = fs::read_to_string("/proc/stat")?;
    let steal = times.split_whitespace().nth(8);
    Ok(steal.context("no steal time in /proc/stat")?.parse()?)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn sorted(times: impl Iterator<Item = Duration>) -> Vec<f64> {
    let mut times: Vec<f64> = times.map(milliseconds).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn find_variant<'a, 'b>(
    variants: &'b [LatencyVariant<'a>],
    kind: VariantKind,
) -> Option<&'b LatencyVariant<'a>> {
    variants.iter().find(|variant| variant.kind == kind)
}

impl LatencyVariant<'_> {
    /// Runs one turn and adds its responses to the current round.
    async fn run_turn(&mut self, workload: &Workload, schedule: Schedule) -> Result<()> {
        let address = self.target.address;
        let request = |&(client, upstream): &(Format, Format)| {
            Request::new(workload, client, &TestSetup::model(upstream), KEY, address)
        };
        let requests: Arc<[Request]> = self.pairs.iter().map(request).collect();
        for _ in 0..MAX_ATTEMPTS {
            let requests = requests.clone();
            let before = steal_time()?;
            let run = move || open_loop::run(address, &requests, schedule);
            let responses = tokio::task::spawn_blocking(run).await?;
            let responses = responses.context(self.kind.title())?;
            if steal_time()? == before {
                let round = self.rounds.last_mut().context("no current round")?;
                round.extend(responses);
                return Ok(());
            }
            self.discarded_turns += 1;
        }
        Ok(())
    }

    /// Returns the sorted milliseconds of one pair or of all.
    fn times(&self, select: SelectTimes, pair: Option<usize>) -> Vec<f64> {
        let responses = self.rounds.iter().flatten();
        let responses =
            responses.filter(|response| pair.is_none_or(|pair| response.request == pair));
        sorted(responses.flat_map(select))
    }
}

/// Prints a table of all samples of all rounds: first every variant, then every pair.
fn report(variants: &[LatencyVariant<'_>], title: &str, select: SelectTimes) {
    let header = [
        title,
        "p50 to bare",
        "p99 to bare",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "samples",
    ];
    let mut table = new_table(1, &header);
    let bare = find_variant(variants, VariantKind::Bare);
    let mut add = |title: String, variant: &LatencyVariant<'_>, pair: Option<usize>| {
        // A pair is compared with the bare proxy on the same upstream.
        let upstream = pair.map(|pair| variant.pairs[pair].1);
        let same_upstream =
            |bare: &LatencyVariant<'_>| bare.pairs.iter().position(|pair| Some(pair.1) == upstream);
        let bare = bare.map(|bare| bare.times(select, same_upstream(bare)));
        let bare = bare.unwrap_or_default();
        let times = variant.times(select, pair);
        let to_bare = |percent| Some(percentile(&times, percent)? / percentile(&bare, percent)?);
        table.add_row([
            title,
            format_number(to_bare(50.0), 2),
            format_number(to_bare(99.0), 2),
            format_number(percentile(&times, 50.0), 3),
            format_number(percentile(&times, 99.0), 3),
            format_number(percentile(&times, 99.9), 3),
            times.len().to_string(),
        ]);
    };
    for variant in variants {
        add(variant.kind.title().to_owned(), variant, None);
    }
    for variant in variants.iter().filter(|variant| variant.kind.is_omniglot()) {
        for (number, (client, upstream)) in variant.pairs.iter().enumerate() {
            let title = format!("{} → {}", client.name(), upstream.name());
            add(title, variant, Some(number));
        }
    }
    println!("{table}\n");
}

fn print_discarded_turns(variants: &[LatencyVariant<'_>]) {
    let counts = variants
        .iter()
        .filter(|variant| variant.discarded_turns > 0);
    let counts =
        counts.map(|variant| format!("{} {}", variant.kind.title(), variant.discarded_turns));
    let counts: Vec<String> = counts.collect();
    if !counts.is_empty() {
        let counts = counts.join("; ");
        println!(
            "Turns that do not count, because the host took CPU from the virtual machine: {counts}\n"
        );
    }
}

/// Judges p99 of the time to first byte in every round and, over all rounds, the part that is added to direct.
fn judge(variants: &[LatencyVariant<'_>], aims: &mut Aims) {
    let (Some(bare), Some(direct)) = (
        find_variant(variants, VariantKind::Bare),
        find_variant(variants, VariantKind::Direct),
    ) else {
        return;
    };
    let p99 = |responses: &[ResponseTimes]| {
        let times = sorted(responses.iter().map(|response| response.first_byte));
        percentile(&times, 99.0)
    };
    let p99_of_all =
        |variant: &LatencyVariant<'_>| percentile(&variant.times(FIRST_BYTE, None), 99.0);
    for variant in variants.iter().filter(|variant| variant.kind.is_omniglot()) {
        let title = variant.kind.title();
        let rounds = variant.rounds.iter().zip(&bare.rounds);
        let ratios = rounds.filter_map(|(ours, bare)| Some(p99(ours)? / p99(bare)?));
        let ratios: Vec<f64> = ratios.collect();
        if !ratios.is_empty() {
            aims.judge(Aim::FirstByte, Summary::of(ratios).median, title);
        }
        let (Some(ours), Some(bare), Some(direct)) =
            (p99_of_all(variant), p99_of_all(bare), p99_of_all(direct))
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
            println!("{added}: no ratio, because bare pingora adds nothing beyond the noise\n");
        }
    }
}
