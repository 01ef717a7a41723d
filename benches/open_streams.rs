//! Opens many slow streams at once to measure their memory.

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
use crate::setup::{ConfigOptions, TestSetup};

/// The memory that a translated stream may need beyond one through the bare proxy, in KiB.
pub const AIM: f64 = 24.0;

/// The number of events after which a stream counts as open: those before the content, and some content.
const OPEN_EVENTS: usize = 6;

/// The number of streams that are opened at the same time. The gateway sends the head of a response with its first content,
/// which in one format comes after four other events.
const MAX_OPENING: usize = 250;

/// The events of each stream, so many that it lasts much longer than it takes to open them all.
const EVENTS: usize = 600;

const OPEN_TIMEOUT: Duration = Duration::from_secs(300);

/// The number and the kind of streams to open.
pub struct OpenStreams {
    pub count: u16,
    /// Bytes of prompt in each request.
    pub prompt: usize,
    /// The time between two events.
    pub pace: Duration,
}

impl OpenStreams {
    /// Returns the KiB of memory for each open stream, in a new process: of the gateway, or of the bare proxy if there is no pair.
    pub async fn measure_memory(
        &self,
        directory: &Path,
        pair: Option<(Format, Format)>,
    ) -> Result<f64> {
        let [mock, listen, admin] = free_addresses()?;
        let setup = TestSetup {
            mock,
            listen,
            admin,
        };
        let _mock = setup.start_mock(directory).await?;
        let process = match pair {
            Some(_) => {
                let config = setup.config(&ConfigOptions::SOAK);
                setup.start_gateway(directory, &config).await?
            }
            None => setup.start_bare(directory).await?,
        };
        let (client, upstream) = pair.unwrap_or((Format::Chat, Format::Chat));
        let model = TestSetup::model(upstream);
        let filler = "word ".repeat(self.prompt / 5);
        let short = client.encode_stream_request(listen, &model, "mock:events=5");
        for _ in 0..20 {
            Connection::open(listen).await?.exchange(&short).await?;
        }
        let directives = format!(
            "{filler}mock:events={EVENTS} mock:pace={}ms",
            self.pace.as_millis()
        );
        let request: Arc<[u8]> = client
            .encode_stream_request(listen, &model, &directives)
            .into();
        let before = process.resource_usage()?.resident;

        let open = Arc::new(Semaphore::new(0));
        let opening = Arc::new(Semaphore::new(MAX_OPENING));
        let mut streams = JoinSet::new();
        for _ in 0..self.count {
            let (request, opening, open) = (request.clone(), opening.clone(), open.clone());
            streams.spawn(async move {
                let permit = opening.acquire().await?;
                let mut connection = Connection::open(listen).await?;
                let status = connection.send_request(&request).await?;
                ensure!(status == 200, "status {status}");
                drop(permit);
                let mut events = 0;
                while let Some(chunk) = connection.read_body().await? {
                    let before = events;
                    events += memchr::memmem::find_iter(&chunk, b"data: ").count();
                    if before < OPEN_EVENTS && events >= OPEN_EVENTS {
                        open.add_permits(1);
                    }
                }
                bail!("a stream ended before all were open")
            });
        }
        let all = open.acquire_many(self.count.into());
        tokio::select! {
            opened = timeout(OPEN_TIMEOUT, all) => drop(opened.context("timeout before all streams were open")??),
            Some(ended) = streams.join_next() => { ended??; }
        }
        sleep(Duration::from_secs(1)).await;
        let resident = process.resource_usage()?.resident;
        streams.shutdown().await;
        Ok(resident.saturating_sub(before) as f64 / f64::from(self.count))
    }
}
