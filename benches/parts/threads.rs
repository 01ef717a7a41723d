//! Measures one worker thread against one for each core.

use std::net::SocketAddr;

use anyhow::{Result, bail};

use super::RunOptions;
use crate::cores::OneCore;
use crate::formats::{Format, KEY};
use crate::round::{Variant, measure};
use crate::setup::TestSetup;
use crate::sink::Sink;
use crate::table::{format_number, new_table};
use crate::targets::{CONFIG_OPTIONS, Target, start_bare, start_mock, start_omniglot};
use crate::workload::{Request, Workload};

/// So many that nearly all of the CPU time is that of their translation.
const TOOLS: usize = 200;

/// The same proxy with one worker thread, and with one for each core.
struct ThreadTargets {
    one: Target,
    all: Target,
}

/// A kind of proxy to start.
enum Proxy {
    Bare,
    Omniglot,
}

pub async fn run(options: &RunOptions) -> Result<()> {
    eprintln!("threads");
    let cores = std::thread::available_parallelism()?;
    let mock = start_mock(&options.create_directory("threads")?).await?;
    let sink = Sink::start().await?;
    let bare = start_both(options, "bare", Proxy::Bare, mock.address).await?;
    let omniglot = start_both(options, "omniglot", Proxy::Omniglot, mock.address).await?;
    let omniglot_to_sink =
        start_both(options, "omniglot-to-sink", Proxy::Omniglot, sink.address).await?;
    let (chat, messages): (EncodeRequest, EncodeRequest) = (
        |address| small_request(address, Format::Chat),
        |address| small_request(address, Format::Messages),
    );
    let variants = [
        ("bare pingora, chat", &bare, chat),
        ("omniglot, chat → chat", &omniglot, chat),
        ("omniglot, chat → messages", &omniglot, messages),
        (
            "omniglot, 200 tools, chat → native",
            &omniglot_to_sink,
            request_with_tools,
        ),
    ];
    let mut table = new_table(
        1,
        &[
            "JSON",
            "CPU to one thread",
            "requests/s to one thread",
            "CPU µs/request",
            "with one",
            "requests/s",
            "with one",
        ],
    );
    for (title, ThreadTargets { one, all }, request) in variants {
        let variant = |threads: &'static str, target| Variant {
            title: format!("{title}, {threads}"),
            target,
            requests: vec![request(target.address)],
            connections: options.connections * 4,
        };
        let both = vec![variant("one thread", one), variant("all threads", all)];
        let results = measure(both, options.rounds, options.time * 2).await?;
        let [one, all] = &results[..] else {
            bail!("a variant without results");
        };
        table.add_row([
            title.to_owned(),
            all.cpu_ratio(one).format_ratio(),
            all.ratio(one, |sample| sample.requests_per_second)
                .format_ratio(),
            format_number(Some(all.cpu()), 1),
            format_number(Some(one.cpu()), 1),
            format_number(Some(all.throughput()), 0),
            format_number(Some(one.throughput()), 0),
        ]);
    }
    println!(
        "\n## Scale: {cores} worker threads against one\n\n{table}\n\n\
         The load and the mock run on the same {cores} cores: requests/s show what is left of these, CPU time what a thread \
         more costs. The requests with {TOOLS} tools go to an upstream that parses nothing: nearly all of their workload is the gateway's."
    );
    for (title, target) in [("one", &omniglot.one), ("all", &omniglot.all)] {
        println!("omniglot, {title}: {}", target.process.resource_usage()?);
    }
    Ok(())
}

/// Starts a proxy with one worker thread, and another with one for each core.
async fn start_both(
    options: &RunOptions,
    name: &str,
    proxy: Proxy,
    upstream: SocketAddr,
) -> Result<ThreadTargets> {
    let start = async |name: String| {
        let directory = options.create_directory(&name)?;
        match proxy {
            Proxy::Bare => start_bare(upstream, &directory).await,
            Proxy::Omniglot => start_omniglot(upstream, &directory, &CONFIG_OPTIONS, "").await,
        }
    };
    let one = {
        let core = OneCore::restrict()?;
        let one = start(format!("threads-{name}-one")).await?;
        core.release(one.process.id()?)?;
        one
    };
    let all = start(format!("threads-{name}-all")).await?;
    Ok(ThreadTargets { one, all })
}

/// Encodes a request to the proxy at an address.
type EncodeRequest = fn(SocketAddr) -> Request;

fn small_request(proxy: SocketAddr, upstream: Format) -> Request {
    let model = TestSetup::model(upstream);
    Request::new(&Workload::json(), Format::Chat, &model, KEY, proxy)
}

fn request_with_tools(proxy: SocketAddr) -> Request {
    Request::with_tools(TOOLS, &TestSetup::model(Format::Native), proxy)
}
