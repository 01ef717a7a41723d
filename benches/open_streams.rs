//! Opens many streams at once, each with content and then nearly silent, to measure their memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connection::Connection;
use crate::formats::Format;
use crate::process::free_addresses;
use crate::setup::{Ground, Shape};

/// What a translated stream may hold beyond what it holds in the bare proxy, in KiB.
pub const AIM: f64 = 24.0;

/// So many events have come before a stream counts as open: those before the content, and some content.
const BEGUN: usize = 6;

/// Streams that are being opened at the same time. The gateway answers with the first content,
/// which in one format comes after four other events.
const OPENING: usize = 250;

/// They go on for much longer than it takes to open them all.
const EVENTS: usize = 600;

const PATIENCE: Duration = Duration::from_secs(300);

/// What the streams are like.
pub struct Streams {
    pub count: u16,
    /// Bytes of prompt in each request.
    pub prompt: usize,
    /// Between two events.
    pub pace: Duration,
}

impl Streams {
    /// KiB that each of the open streams holds, in a process that has served nothing else; without a pair in the bare proxy.
    pub async fn held(&self, directory: &Path, pair: Option<(Format, Format)>) -> Result<f64> {
        let [mock, listen, admin] = free_addresses()?;
        let ground = Ground {
            mock,
            listen,
            admin,
        };
        let _mock = ground.start_mock(directory).await?;
        let process = match pair {
            Some(_) => {
                let config = ground.config(&Shape::SOAK);
                ground.start_gateway(directory, &config).await?
            }
            None => ground.start_bare(directory).await?,
        };
        let (client, upstream) = pair.unwrap_or((Format::Chat, Format::Chat));
        let model = Ground::model(upstream);
        let filler = "word ".repeat(self.prompt / 5);
        let short = client.request(listen, &model, "mock:events=5");
        for _ in 0..20 {
            Connection::open(listen).await?.exchange(&short).await?;
        }
        let wish = format!(
            "{filler}mock:events={EVENTS} mock:pace={}ms",
            self.pace.as_millis()
        );
        let request: Arc<[u8]> = client.request(listen, &model, &wish).into();
        let before = process.vitals()?.resident;

        let begun = Arc::new(Semaphore::new(0));
        let opening = Arc::new(Semaphore::new(OPENING));
        let mut streams = JoinSet::new();
        for _ in 0..self.count {
            let (request, opening, begun) = (request.clone(), opening.clone(), begun.clone());
            streams.spawn(async move {
                let turn = opening.acquire().await?;
                let mut connection = Connection::open(listen).await?;
                let status = connection.ask(&request).await?;
                ensure!(status == 200, "status {status}");
                drop(turn);
                let mut events = 0;
                while let Some(piece) = connection.piece().await? {
                    let before = events;
                    events += memchr::memmem::find_iter(&piece, b"data: ").count();
                    if before < BEGUN && events >= BEGUN {
                        begun.add_permits(1);
                    }
                }
                bail!("a stream ended before all were open")
            });
        }
        let all = begun.acquire_many(self.count.into());
        tokio::select! {
            opened = timeout(PATIENCE, all) => drop(opened.context("not all streams have begun")??),
            Some(ended) = streams.join_next() => { ended??; }
        }
        sleep(Duration::from_secs(1)).await;
        let resident = process.vitals()?.resident;
        streams.shutdown().await;
        Ok(resident.saturating_sub(before) as f64 / f64::from(self.count))
    }
}
