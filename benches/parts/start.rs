//! Measures the time to the first response, the idle demo, and the size of the binary.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use super::Terms;
use crate::aims::{Aim, Aims};
use crate::connection::Connection;
use crate::formats::{Format, KEY, Question};
use crate::process::{Process, free_addresses, mebibytes};
use crate::setup::Ground;
use crate::statistics::Spread;
use crate::table::{figure, table};
use crate::targets::{SHAPE, start_mock};

const BINARY: &str = env!("CARGO_BIN_EXE_omniglot");

/// The demo has no config: its address, key and model are what its greeting says.
const DEMO: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const DEMO_KEY: &str = "omniglot-demo-key";
const DEMO_MODEL: &str = "demo-chat";

const PATIENCE: Duration = Duration::from_secs(30);

/// Until what a start has touched is settled.
const REST: Duration = Duration::from_secs(1);

pub async fn run(terms: &Terms, aims: &mut Aims) -> Result<()> {
    let starts = terms.scaled(10, 1);
    let room = terms.room("start")?;
    let mut found = table(1, &["start", "median", "least", "most"]);
    let mut add = |title: &str, spread: Spread, digits| {
        let cells = [spread.median, spread.least, spread.most].map(|one| figure(Some(one), digits));
        let [median, least, most] = cells;
        found.add_row([title.to_owned(), median, least, most]);
    };

    let (times, resident) = demo(&room, starts).await?;
    let (times, resident) = (Spread::of(times), Spread::of(resident));
    add("demo: ms to first answer", times, 1);
    add("demo: resident MiB when idle after it", resident, 1);
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

    let times = configured(&room, starts).await?;
    add(
        "with the config of this bench: ms to first answer",
        Spread::of(times),
        1,
    );
    let (size, how) = binary_size(&room)?;
    aims.judge(Aim::Binary, size, how);
    println!("\n## Start and size\n\n{found}\n\nbinary: {size:.1} MiB, {how}");
    Ok(())
}

/// Milliseconds to the first answer, and the memory some time after it.
async fn demo(room: &Path, starts: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    // Tests that use the same ports hold the same lock.
    let lock = std::env::temp_dir().join("omniglot-demo-test.lock");
    let lock = File::options().create(true).append(true).open(lock)?;
    lock.lock()?;
    let request = hello(DEMO, DEMO_KEY, DEMO_MODEL);
    let (mut times, mut resident) = (Vec::new(), Vec::new());
    for number in 1..=starts {
        eprintln!("start of the demo, {number}");
        let taken = Connection::open(DEMO).await.is_ok();
        ensure!(
            !taken,
            "another process listens on {DEMO}, which the demo needs"
        );
        let mut command = Command::new(BINARY);
        command.current_dir(room);
        let begin = Instant::now();
        let process = Process::start("demo", &mut command, room)?;
        first_answer(DEMO, &request, begin, &process).await?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        sleep(REST).await;
        resident.push(mebibytes(process.vitals()?.resident));
    }
    Ok((times, resident))
}

async fn configured(room: &Path, starts: usize) -> Result<Vec<f64>> {
    let mock = start_mock(room).await?;
    let mut times = Vec::new();
    for number in 1..=starts {
        eprintln!("start with a config, {number}");
        let [listen, admin] = free_addresses()?;
        let ground = Ground {
            mock: mock.address,
            listen,
            admin,
        };
        let file = room.join("start.yaml");
        fs::write(&file, ground.config(&SHAPE))?;
        let request = hello(listen, KEY, &Ground::model(Format::Chat));
        let mut command = Command::new(BINARY);
        command.arg("run").arg("-c").arg(file);
        let begin = Instant::now();
        let process = Process::start("start", &mut command, room)?;
        first_answer(listen, &request, begin, &process).await?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}

fn hello(address: SocketAddr, key: &str, model: &str) -> Vec<u8> {
    let question = Question {
        model,
        stream: false,
        system: "",
        turns: &["Hello"],
    };
    Format::Chat.wire(address, key, &question)
}

/// Tries every millisecond.
async fn first_answer(
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
            begin.elapsed() < PATIENCE,
            "no first answer: {failure:#}\n{}",
            process.output()
        );
        thread::sleep(Duration::from_millis(1));
    }
}

/// In MiB, without symbols where these can be taken away, and whether they were.
fn binary_size(room: &Path) -> Result<(f64, &'static str)> {
    let stripped = room.join("stripped");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&stripped).arg(BINARY);
    let run = strip.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_stripped = run.is_ok_and(|status| status.success());
    let (file, how) = if is_stripped {
        (stripped.as_path(), "stripped")
    } else {
        (Path::new(BINARY), "as it was built: there is no strip here")
    };
    let bytes = fs::metadata(file).context("the binary is gone")?.len();
    Ok((mebibytes(bytes / 1024), how))
}
