//! Measures the time to the first response, the memory of the idle demo, and the size of the binary.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use super::RunOptions;
use crate::aims::{Aim, Aims};
use crate::connection::Connection;
use crate::formats::{Conversation, Format, KEY};
use crate::process::{Process, free_addresses, gateway_binary, mebibytes};
use crate::setup::TestSetup;
use crate::statistics::Summary;
use crate::table::{format_number, new_table};
use crate::targets::{CONFIG_OPTIONS, start_mock};

/// The address, key and model of the demo, as it prints them when it starts.
const DEMO: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const DEMO_KEY: &str = "omniglot-demo-key";
const DEMO_MODEL: &str = "demo-chat";

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The time after the first response until the process counts as idle.
const IDLE_DELAY: Duration = Duration::from_secs(1);

pub async fn run(options: &RunOptions, aims: &mut Aims) -> Result<()> {
    let starts = options.scaled(10, 1);
    let directory = options.create_directory("start")?;
    let mut table = new_table(1, &["start", "median", "minimum", "maximum"]);
    let mut add = |title: &str, summary: Summary| {
        let values = [summary.median, summary.minimum, summary.maximum];
        let [median, minimum, maximum] = values.map(|value| format_number(Some(value), 1));
        table.add_row([title.to_owned(), median, minimum, maximum]);
    };

    let (times, resident) = measure_demo(&directory, starts).await?;
    let (times, resident) = (Summary::of(times), Summary::of(resident));
    add("demo: ms to first response", times);
    add("demo: resident MiB when idle after it", resident);
    aims.judge(
        Aim::Start,
        times.median,
        format!("median of {starts} starts"),
    );
    aims.judge(
        Aim::IdleDemo,
        resident.median,
        format!("median of {starts} starts"),
    );

    let times = measure_configured(&directory, starts).await?;
    add(
        "with the config of this bench: ms to first response",
        Summary::of(times),
    );
    let (size, kind) = binary_size(&directory)?;
    aims.judge(Aim::Binary, size, kind);
    println!("\n## Start and size\n\n{table}\n\nbinary: {size:.1} MiB, {kind}");
    Ok(())
}

/// Returns the milliseconds to the first response of each start, and the MiB of resident memory some time after it.
async fn measure_demo(directory: &Path, starts: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    // Tests that use the same ports take the same lock.
    let lock = std::env::temp_dir().join("omniglot-demo-test.lock");
    let lock = File::options().create(true).append(true).open(lock)?;
    lock.lock()?;
    let request = encode_hello(DEMO, DEMO_KEY, DEMO_MODEL);
    let (mut times, mut resident) = (Vec::new(), Vec::new());
    for number in 1..=starts {
        eprintln!("start of the demo, {number}");
        let is_in_use = Connection::open(DEMO).await.is_ok();
        ensure!(
            !is_in_use,
            "another process listens on {DEMO}, which the demo needs"
        );
        let mut command = Command::new(gateway_binary());
        command.current_dir(directory);
        let begin = Instant::now();
        let process = Process::start("demo", &mut command, directory)?;
        wait_for_response(DEMO, &request, begin, &process).await?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        sleep(IDLE_DELAY).await;
        resident.push(mebibytes(process.resource_usage()?.resident));
    }
    Ok((times, resident))
}

/// Returns the milliseconds to the first response of each start with the config of the benchmark.
async fn measure_configured(directory: &Path, starts: usize) -> Result<Vec<f64>> {
    let mock = start_mock(directory).await?;
    let mut times = Vec::new();
    for number in 1..=starts {
        eprintln!("start with a config, {number}");
        let [listen, admin] = free_addresses()?;
        let setup = TestSetup {
            mock: mock.address,
            listen,
            admin,
        };
        let file = directory.join("start.yaml");
        fs::write(&file, setup.config(&CONFIG_OPTIONS))?;
        let request = encode_hello(listen, KEY, &TestSetup::model(Format::Chat));
        let mut command = Command::new(gateway_binary());
        command.arg("run").arg("-c").arg(file);
        let begin = Instant::now();
        let process = Process::start("start", &mut command, directory)?;
        wait_for_response(listen, &request, begin, &process).await?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}

fn encode_hello(address: SocketAddr, key: &str, model: &str) -> Vec<u8> {
    let conversation = Conversation {
        model,
        stream: false,
        system: "",
        turns: &["Hello"],
    };
    Format::Chat.encode_request(address, key, &conversation)
}

/// Sends the request every millisecond until its response is a 200.
async fn wait_for_response(
    address: SocketAddr,
    request: &[u8],
    begin: Instant,
    process: &Process,
) -> Result<()> {
    loop {
        let attempt = async {
            let mut connection = Connection::open(address).await?;
            connection.exchange(request).await?;
            anyhow::Ok(())
        };
        let Err(failure) = attempt.await else {
            return Ok(());
        };
        ensure!(
            begin.elapsed() < START_TIMEOUT,
            "timeout before the first response: {failure:#}\n{}",
            process.output()
        );
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the size of the binary in MiB, stripped if the program `strip` is installed, and whether it is.
fn binary_size(directory: &Path) -> Result<(f64, &'static str)> {
    let stripped = directory.join("stripped");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&stripped).arg(gateway_binary());
    let run = strip.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_stripped = run.is_ok_and(|status| status.success());
    let (file, kind) = if is_stripped {
        (stripped, "stripped")
    } else {
        (gateway_binary(), "not stripped: strip is not installed")
    };
    let bytes = fs::metadata(file)
        .context("cannot read the size of the binary")?
        .len();
    Ok((mebibytes(bytes / 1024), kind))
}
