//! Reloads under load: one random config after the other takes effect, and no request fails.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use nix::sys::signal::{Signal, kill};
use rand::RngExt as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::connection::Connection;
use crate::formats::{Ending, FORMATS, Format, KEY};
use crate::metrics::gauge;
use crate::mixed_load::{Baseline, calm};
use crate::process::{Process, free_addresses, mebibytes};
use crate::setup::{Ground, Shape};

/// By how much the memory may grow in the second half: until then the heap finds its shape, and one config that is
/// kept for each reload would be ten times as much.
const AIM: f64 = 0.05;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Args)]
pub struct Options {
    /// How many configs
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..))]
    reloads: u64,
    /// Clients, each with one request at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: u16,
}

impl Options {
    pub fn quick() -> Self {
        Self {
            reloads: 20,
            clients: 8,
        }
    }
}

#[derive(Default)]
struct Load {
    over: AtomicBool,
    answered: AtomicU64,
}

pub async fn run(options: &Options, directory: &Path) -> Result<()> {
    let [mock, listen, admin] = free_addresses()?;
    let ground = Ground {
        mock,
        listen,
        admin,
    };
    let _mock = ground.start_mock(directory).await?;
    let gateway = ground
        .start_gateway(directory, &ground.config(&Shape::SOAK))
        .await?;
    let baseline = Baseline::of(&ground, &gateway).await?;
    println!("before: {baseline}");
    let load = Arc::new(Load::default());
    let mut clients = JoinSet::new();
    for _ in 0..options.clients {
        clients.spawn(client(listen, load.clone()));
    }
    let begin = Instant::now();
    let mut halfway = 0;
    for reload in 1..=options.reloads {
        tokio::select! {
            taken = take_over(&ground, &gateway, directory, reload) => taken?,
            Some(ended) = clients.join_next() => ended?.context("a request failed")?,
        }
        if reload == options.reloads / 2 {
            halfway = gateway.vitals()?.resident;
        }
        if reload % (options.reloads / 10).max(1) == 0 {
            let vitals = gateway.vitals()?;
            println!(
                "{reload} reloads in {:.0} s: {vitals}, {} requests answered",
                begin.elapsed().as_secs_f64(),
                load.answered.load(Ordering::Relaxed)
            );
        }
    }
    load.over.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended?.context("a request failed")?;
    }
    let late = gateway.vitals()?.resident;
    fs::write(Ground::file(directory), ground.config(&Shape::SOAK))?;
    hang_up(&ground, &gateway, options.reloads + 1).await?;
    calm(&ground, &gateway, &baseline).await?;
    let growth = late as f64 / halfway as f64 - 1.0;
    println!(
        "memory: {:.1} MiB after half of the reloads, {:.1} MiB after all: {:+.1} %, aim {:.0} %",
        mebibytes(halfway),
        mebibytes(late),
        growth * 100.0,
        AIM * 100.0
    );
    ensure!(growth < AIM, "the memory grows");
    Ok(())
}

/// One client, until it is told to stop; every answer must be whole.
async fn client(address: SocketAddr, load: Arc<Load>) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    while !load.over.load(Ordering::Relaxed) {
        let pick = || FORMATS[rand::rng().random_range(0..FORMATS.len())];
        let (client, upstream) = (pick(), pick());
        let request = client.request(
            address,
            &Ground::model(upstream),
            "mock:events=5 mock:pace=20ms",
        );
        let answer = timeout(PATIENCE, connection.exchange(&request)).await;
        let answer = answer.context("an answer takes too long")??;
        let ending = client.ending(200, answer);
        ensure!(
            ending == Ending::Whole,
            "{} from {}: {ending:?}: {}",
            client.name(),
            upstream.name(),
            String::from_utf8_lossy(answer)
        );
        load.answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

async fn take_over(
    ground: &Ground,
    gateway: &Process,
    directory: &Path,
    number: u64,
) -> Result<()> {
    let next = directory.join("next.yaml");
    fs::write(&next, random_config(ground))?;
    fs::rename(next, Ground::file(directory))?;
    hang_up(ground, gateway, number).await
}

/// Returns when as many configs have been taken; one that is refused is a mistake of this bench.
async fn hang_up(ground: &Ground, gateway: &Process, number: u64) -> Result<()> {
    kill(gateway.id()?, Signal::SIGHUP)?;
    let since = Instant::now();
    let count = |outcome: &str| format!("omniglot_config_reloads_total{{outcome=\"{outcome}\"}}");
    while gauge(ground.admin, &count("taken")).await? < number {
        ensure!(
            gauge(ground.admin, &count("refused")).await? == 0,
            "a config is refused\n{}",
            gateway.output()
        );
        ensure!(since.elapsed() < PATIENCE, "SIGHUP is not heard");
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

fn one_of<T: Copy>(choices: &[T]) -> T {
    choices[rand::rng().random_range(0..choices.len())]
}

fn up_to(most: u32) -> u32 {
    rand::rng().random_range(1..=most)
}

/// Always with the key and the models of the load, on upstreams that work; all else as it comes.
fn random_config(ground: &Ground) -> String {
    let mut text = format!(
        "server: {{listen: \"{}\", admin: \"{}\", body_limit: {}MiB, on_unsupported: {}, timeouts: {{header: {}s}}{}}}\n\
         keys:\n  - {{name: bench, secret: {KEY}}}\n",
        ground.listen,
        ground.admin,
        up_to(64),
        one_of(&["report", "reject"]),
        9 + up_to(20),
        one_of(&["", ", max_in_flight: 5000"]),
    );
    for number in 0..up_to(20) {
        text += &format!(
            "  - {{name: other-{number}, secret: secret-{number}, models: [\"to-*\"], limits: {{requests_per_minute: {}}}}}\n",
            up_to(1000)
        );
    }
    text += "upstreams:\n";
    let mut models = String::new();
    for format in FORMATS {
        let places = up_to(4);
        for place in 1..=places {
            text += &random_upstream(ground, format, place);
        }
        models += &random_model(format, &Ground::model(format), places, "");
        let spare = format!("spare-{}", format.name());
        models += &random_model(format, &spare, places, "");
        for extra in 0..up_to(5) {
            let id = format!("extra-{}-{extra}", format.name());
            models += &random_model(format, &id, places, &format!(", fallbacks: [{spare}]"));
        }
    }
    format!("{text}models:\n{models}")
}

fn random_upstream(ground: &Ground, format: Format, place: u32) -> String {
    let (name, base, mock) = (format.name(), format.base(), ground.mock);
    let list = match format {
        Format::Chat | Format::Responses => "/models",
        Format::Messages => "/v1/models",
        Format::Native => "/v1beta/models",
    };
    let health = format!(", health: {{path: {list}, interval: {}s}}", 5 + up_to(5));
    let room = format!(", max_in_flight: {}, queue: 1000", 500 + up_to(500));
    format!(
        "  - {{name: {name}-{place}, format: {name}, base_url: \"http://{mock}{base}\", \
         timeouts: {{connect: {}s, idle: {}s}}{}{}{}{}}}\n",
        10 + up_to(10),
        60 + up_to(60),
        one_of(&[
            "",
            ", breaker: off",
            ", breaker: {failures: 3, open_for: 2s}"
        ]),
        one_of(&["", &health]),
        one_of(&["", &room]),
        one_of(&[
            "",
            ", auth: {bearer: some-token}",
            ", headers: {x-team: blue}"
        ]),
    )
}

fn random_model(format: Format, id: &str, places: u32, rest: &str) -> String {
    let first = up_to(places);
    let upstreams: Vec<String> = (first..=places)
        .map(|place| {
            format!(
                "{{name: {}-{place}, model: theirs-{}, weight: {}, priority: {}}}",
                format.name(),
                up_to(3),
                up_to(9),
                up_to(3) - 1
            )
        })
        .collect();
    format!(
        "  - {{id: {id}, balance: {}, max_output_tokens: {}, upstreams: [{}]{rest}}}\n",
        one_of(&["weighted", "least_in_flight", "key", "{header: x-session}"]),
        1000 + up_to(4000),
        upstreams.join(", ")
    )
}
