//! Measures one worker thread against one for each core.

use std::net::SocketAddr;

use anyhow::{Result, bail};

use super::Terms;
use crate::cores::OneCore;
use crate::formats::{Format, KEY};
use crate::round::{Entry, measure};
use crate::setup::Ground;
use crate::sink::Sink;
use crate::table::{figure, table};
use crate::targets::{SHAPE, Target, start_bare, start_mock, start_omniglot};
use crate::work::{Request, Work};

/// So many that to translate them is nearly all there is to do.
const TOOLS: usize = 200;

/// The same proxy with one thread and with all.
struct Pair {
    one: Target,
    all: Target,
}

enum Proxy {
    Bare,
    Omniglot,
}

pub async fn run(terms: &Terms) -> Result<()> {
    eprintln!("threads");
    let cores = std::thread::available_parallelism()?;
    let mock = start_mock(&terms.room("threads")?).await?;
    let sink = Sink::open().await?;
    let bare = pair(terms, "bare", Proxy::Bare, mock.address).await?;
    let ours = pair(terms, "ours", Proxy::Omniglot, mock.address).await?;
    let laden = pair(terms, "laden", Proxy::Omniglot, sink.address).await?;
    let (chat, messages): (Asking, Asking) = (
        |address| short(address, Format::Chat),
        |address| short(address, Format::Messages),
    );
    let legs = [
        ("bare pingora, chat", &bare, chat),
        ("omniglot, chat → chat", &ours, chat),
        ("omniglot, chat → messages", &ours, messages),
        ("omniglot, 200 tools, chat → native", &laden, tools),
    ];
    let mut table = table(
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
    for (title, Pair { one, all }, request) in legs {
        let entry = |threads: &'static str, target| Entry {
            title: format!("{title}, {threads}"),
            target,
            requests: vec![request(target.address)],
            connections: terms.connections * 4,
        };
        let entries = vec![entry("one thread", one), entry("all threads", all)];
        let found = measure(entries, terms.rounds, terms.time * 2).await?;
        let [one, all] = &found[..] else {
            bail!("a leg without rounds");
        };
        table.add_row([
            title.to_owned(),
            all.cpu_ratio(one).ratio(),
            all.ratio(one, |sample| sample.requests_per_second).ratio(),
            figure(Some(all.cpu()), 1),
            figure(Some(one.cpu()), 1),
            figure(Some(all.speed()), 0),
            figure(Some(one.speed()), 0),
        ]);
    }
    println!(
        "\n## Scale: {cores} worker threads against one\n\n{table}\n\n\
         The load and the mock run on the same {cores} cores: requests/s show what is left of these, CPU time what a thread \
         more costs. The requests with {TOOLS} tools go to an upstream that reads nothing: nearly all of their work is the gateway's."
    );
    for (title, target) in [("one", &ours.one), ("all", &ours.all)] {
        println!("omniglot, {title}: {}", target.process.vitals()?);
    }
    Ok(())
}

async fn pair(terms: &Terms, name: &str, proxy: Proxy, upstream: SocketAddr) -> Result<Pair> {
    let start = async |room: String| {
        let room = terms.room(&room)?;
        match proxy {
            Proxy::Bare => start_bare(upstream, &room).await,
            Proxy::Omniglot => start_omniglot(upstream, &room, &SHAPE, "").await,
        }
    };
    let one = {
        let core = OneCore::hold()?;
        let one = start(format!("threads-{name}-one")).await?;
        core.lift(one.process.id()?)?;
        one
    };
    let all = start(format!("threads-{name}-all")).await?;
    Ok(Pair { one, all })
}

/// What is asked of a proxy.
type Asking = fn(SocketAddr) -> Request;

fn short(proxy: SocketAddr, upstream: Format) -> Request {
    let model = Ground::model(upstream);
    Request::new(&Work::json(), Format::Chat, &model, KEY, proxy)
}

fn tools(proxy: SocketAddr) -> Request {
    Request::with_tools(TOOLS, &Ground::model(Format::Native), proxy)
}
