//! Reloads one random config after the other under load, and checks that no request fails.

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
use crate::formats::{FORMATS, Format, KEY, Outcome};
use crate::metrics::read_metric;
use crate::mixed_load::{Baseline, wait_until_drained};
use crate::process::{Process, free_addresses, mebibytes};
use crate::setup::{ConfigOptions, TestSetup};

/// The growth of memory in the second half that is allowed, as a part of it. In the first half the heap still grows to its
/// final size. A leak of one config for each reload would be ten times as much.
const AIM: f64 = 0.05;

const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Args)]
pub struct ReloadsOptions {
    /// Number of reloads
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..))]
    reloads: u64,
    /// Number of clients, each with one request at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: u16,
}

impl ReloadsOptions {
    pub fn quick() -> Self {
        Self {
            reloads: 20,
            clients: 8,
        }
    }
}

#[derive(Default)]
struct LoadState {
    is_stopped: AtomicBool,
    responses: AtomicU64,
}

pub async fn run(options: &ReloadsOptions, directory: &Path) -> Result<()> {
    let [mock, listen, admin] = free_addresses()?;
    let setup = TestSetup {
        mock,
        listen,
        admin,
    };
    let _mock = setup.start_mock(directory).await?;
    let gateway = setup
        .start_gateway(directory, &setup.config(&ConfigOptions::SOAK))
        .await?;
    let baseline = Baseline::read(&setup, &gateway).await?;
    println!("before: {baseline}");
    let load = Arc::new(LoadState::default());
    let mut clients = JoinSet::new();
    for _ in 0..options.clients {
        clients.spawn(run_client(listen, load.clone()));
    }
    let begin = Instant::now();
    let mut halfway = 0;
    for reload in 1..=options.reloads {
        tokio::select! {
            reloaded = reload_random_config(&setup, &gateway, directory, reload) => reloaded?,
            Some(ended) = clients.join_next() => ended?.context("a request failed")?,
        }
        if reload == options.reloads / 2 {
            halfway = gateway.resource_usage()?.resident;
        }
        if reload % (options.reloads / 10).max(1) == 0 {
            let usage = gateway.resource_usage()?;
            println!(
                "{reload} reloads in {:.0} s: {usage}, {} responses",
                begin.elapsed().as_secs_f64(),
                load.responses.load(Ordering::Relaxed)
            );
        }
    }
    load.is_stopped.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended?.context("a request failed")?;
    }
    let final_memory = gateway.resource_usage()?.resident;
    fs::write(
        TestSetup::config_path(directory),
        setup.config(&ConfigOptions::SOAK),
    )?;
    reload(&setup, &gateway, options.reloads + 1).await?;
    wait_until_drained(&setup, &gateway, &baseline).await?;
    let growth = final_memory as f64 / halfway as f64 - 1.0;
    println!(
        "memory: {:.1} MiB after half of the reloads, {:.1} MiB after all: {:+.1} %, aim {:.0} %",
        mebibytes(halfway),
        mebibytes(final_memory),
        growth * 100.0,
        AIM * 100.0
    );
    ensure!(growth < AIM, "the memory grows");
    Ok(())
}

/// Runs a client until the load is stopped; every response must be complete.
async fn run_client(address: SocketAddr, load: Arc<LoadState>) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    while !load.is_stopped.load(Ordering::Relaxed) {
        let pick = || FORMATS[rand::rng().random_range(0..FORMATS.len())];
        let (client, upstream) = (pick(), pick());
        let request = client.encode_stream_request(
            address,
            &TestSetup::model(upstream),
            "mock:events=5 mock:pace=20ms",
        );
        let response = timeout(TIMEOUT, connection.exchange(&request)).await;
        let response = response.context("timeout of a response")??;
        let outcome = client.classify_response(200, response);
        ensure!(
            outcome == Outcome::Complete,
            "{} from {}: {outcome:?}: {}",
            client.name(),
            upstream.name(),
            String::from_utf8_lossy(response)
        );
        load.responses.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Replaces the config file by a random one and reloads it.
async fn reload_random_config(
    setup: &TestSetup,
    gateway: &Process,
    directory: &Path,
    number: u64,
) -> Result<()> {
    let next = directory.join("next.yaml");
    fs::write(&next, random_config(setup))?;
    fs::rename(next, TestSetup::config_path(directory))?;
    reload(setup, gateway, number).await
}

/// Sends SIGHUP and waits until `number` configs have been loaded. One that is refused is a mistake of this bench.
async fn reload(setup: &TestSetup, gateway: &Process, number: u64) -> Result<()> {
    kill(gateway.id()?, Signal::SIGHUP)?;
    let since = Instant::now();
    let count = |outcome: &str| format!("omniglot_config_reloads_total{{outcome=\"{outcome}\"}}");
    while read_metric(setup.admin, &count("taken")).await? < number {
        ensure!(
            read_metric(setup.admin, &count("refused")).await? == 0,
            "a config was refused\n{}",
            gateway.output()
        );
        ensure!(
            since.elapsed() < TIMEOUT,
            "timeout of a reload after SIGHUP"
        );
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

fn pick<T: Copy>(choices: &[T]) -> T {
    choices[rand::rng().random_range(0..choices.len())]
}

fn random_up_to(maximum: u32) -> u32 {
    rand::rng().random_range(1..=maximum)
}

/// Returns a config with the key and the models of the load, on upstreams that work; everything else is random.
fn random_config(setup: &TestSetup) -> String {
    let mut text = format!(
        "server: {{listen: \"{}\", admin: \"{}\", body_limit: {}MiB, on_unsupported: {}, timeouts: {{header: {}s}}{}}}\n\
         keys:\n  - {{name: bench, secret: {KEY}}}\n",
        setup.listen,
        setup.admin,
        random_up_to(64),
        pick(&["report", "reject"]),
        9 + random_up_to(20),
        pick(&["", ", max_in_flight: 5000"]),
    );
    for number in 0..random_up_to(20) {
        text += &format!(
            "  - {{name: other-{number}, secret: secret-{number}, models: [\"to-*\"], limits: {{requests_per_minute: {}}}}}\n",
            random_up_to(1000)
        );
    }
    text += "upstreams:\n";
    let mut models = String::new();
    for format in FORMATS {
        let upstreams = random_up_to(4);
        for number in 1..=upstreams {
            text += &random_upstream(setup, format, number);
        }
        models += &random_model(format, &TestSetup::model(format), upstreams, "");
        let spare = format!("spare-{}", format.name());
        models += &random_model(format, &spare, upstreams, "");
        for extra in 0..random_up_to(5) {
            let id = format!("extra-{}-{extra}", format.name());
            models += &random_model(format, &id, upstreams, &format!(", fallbacks: [{spare}]"));
        }
    }
    format!("{text}models:\n{models}")
}

fn random_upstream(setup: &TestSetup, format: Format, number: u32) -> String {
    let (name, base, mock) = (format.name(), format.base_path(), setup.mock);
    let models_path = match format {
        Format::Chat | Format::Responses => "/models",
        Format::Messages => "/v1/models",
        Format::Native => "/v1beta/models",
    };
    let health = format!(
        ", health: {{path: {models_path}, interval: {}s}}",
        5 + random_up_to(5)
    );
    let concurrency = format!(", max_in_flight: {}, queue: 1000", 500 + random_up_to(500));
    format!(
        "  - {{name: {name}-{number}, format: {name}, base_url: \"http://{mock}{base}\", \
         timeouts: {{connect: {}s, idle: {}s}}{}{}{}{}}}\n",
        10 + random_up_to(10),
        60 + random_up_to(60),
        pick(&[
            "",
            ", breaker: off",
            ", breaker: {failures: 3, open_for: 2s}"
        ]),
        pick(&["", &health]),
        pick(&["", &concurrency]),
        pick(&[
            "",
            ", auth: {bearer: some-token}",
            ", headers: {x-team: blue}"
        ]),
    )
}

fn random_model(format: Format, id: &str, upstreams: u32, more_config: &str) -> String {
    let first = random_up_to(upstreams);
    let upstreams: Vec<String> = (first..=upstreams)
        .map(|number| {
            format!(
                "{{name: {}-{number}, model: theirs-{}, weight: {}, priority: {}}}",
                format.name(),
                random_up_to(3),
                random_up_to(9),
                random_up_to(3) - 1
            )
        })
        .collect();
    format!(
        "  - {{id: {id}, balance: {}, max_output_tokens: {}, upstreams: [{}]{more_config}}}\n",
        pick(&["weighted", "least_in_flight", "key", "{header: x-session}"]),
        1000 + random_up_to(4000),
        upstreams.join(", ")
    )
}
