//! Reads the lists of models of upstreams with `discover`, in the background.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pingora_core::connectors::ConnectorOptions;
use pingora_core::{Error, ErrorType, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::background_client::BackgroundClient;
use super::upstream::redact;
use crate::runtime::{Runtime, Upstream};

/// How soon a reloaded config is noticed.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// For all pages of a list.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A list that cannot be read is read again this soon.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// All pages of a list together.
const MAX_LIST: usize = 4 << 20;

const MAX_PAGES: usize = 100;

/// Keeps the lists of all upstreams with `discover` fresh.
pub struct ModelDiscovery {
    runtime: Arc<Runtime>,
    client: Arc<BackgroundClient>,
}

impl ModelDiscovery {
    pub fn new(runtime: Arc<Runtime>, options: ConnectorOptions) -> ModelDiscovery {
        ModelDiscovery {
            runtime,
            client: Arc::new(BackgroundClient::new(options)),
        }
    }

    /// Runs for ever; every list is read by a task of its own, and by one at a time.
    pub async fn run(&self) {
        // When each list is read next; `None`: it is being read.
        let mut due: HashMap<String, Option<Instant>> = HashMap::new();
        let mut running: JoinSet<(String, Instant)> = JoinSet::new();
        loop {
            let now = Instant::now();
            let snapshot = self.runtime.snapshot();
            let mut next: HashMap<String, Option<Instant>> = HashMap::new();
            for upstream in &snapshot.upstreams {
                let Some(discovery) = &upstream.discovery else {
                    continue;
                };
                let key = discovery.key.clone();
                let at = due.get(&key).copied().unwrap_or(Some(now));
                let at = match at {
                    Some(at) if at <= now => {
                        running.spawn(refresh(self.client.clone(), upstream.clone()));
                        None
                    }
                    at => at,
                };
                next.insert(key, at);
            }
            due = next;
            let soonest = due.values().flatten().min().copied();
            let soonest = soonest.unwrap_or(now + RELOAD_INTERVAL);
            let waiting = sleep_until(soonest.min(now + RELOAD_INTERVAL));
            tokio::select! {
                () = waiting => {}
                Some(Ok((key, at))) = running.join_next() => {
                    if let Some(known) = due.get_mut(&key) {
                        *known = Some(at);
                    }
                }
            }
        }
    }
}

/// Reads the list of an upstream; returns its key, and when it is to be read again.
async fn refresh(client: Arc<BackgroundClient>, upstream: Arc<Upstream>) -> (String, Instant) {
    let Some(discovery) = &upstream.discovery else {
        return (String::new(), Instant::now());
    };
    let (name, models) = (&upstream.name, &discovery.models);
    let read = timeout(READ_TIMEOUT, read_list(&client, &upstream)).await;
    let read = read.unwrap_or_else(|_| Err("it took too long".to_owned()));
    let mut interval = discovery.settings.interval;
    match read.and_then(|names| discovery.selected(names)) {
        Ok(names) => {
            let count = names.len();
            if models.set(names) {
                log::info!("upstream {name}: it lists {count} models that are served");
            }
        }
        Err(reason) => {
            interval = interval.min(RETRY_INTERVAL);
            if models.set_failed() {
                let reason = redact::redact_log(&upstream, &reason);
                log::warn!("upstream {name}: its list of models cannot be read: {reason}");
            }
        }
    }
    (discovery.key.clone(), Instant::now() + interval)
}

async fn read_list(client: &BackgroundClient, upstream: &Upstream) -> Result<Vec<String>, String> {
    let (mut names, mut left, mut next) = (Vec::new(), MAX_LIST, None::<String>);
    for _ in 0..MAX_PAGES {
        let path = upstream.format.model_list_path(next.as_deref());
        let body = read_page(client, upstream, &path, left).await;
        let body = body.map_err(|error| error.to_string())?;
        left -= body.len();
        let page = upstream.format.decode_model_list(&body);
        let page = page.ok_or("its response is no list of models")?;
        names.extend(page.names);
        match page.next {
            // A server that does not know the parameter sends the first page for ever.
            Some(token) if next.as_ref() != Some(&token) => next = Some(token),
            _ => return Ok(names),
        }
    }
    Err(format!("it has more than {MAX_PAGES} pages"))
}

async fn read_page(
    client: &BackgroundClient,
    upstream: &Upstream,
    path: &str,
    limit: usize,
) -> Result<Vec<u8>> {
    let field = upstream.format.model_list_header();
    let connect = upstream.timeouts.connect;
    let mut session = client.get(upstream, path, field, connect).await?;
    let status = session
        .response_header()
        .map_or(0, |header| header.status.as_u16());
    let mut body = Vec::new();
    if status == 200 {
        while let Some(chunk) = session.read_response_body().await? {
            if body.len() + chunk.len() > limit {
                session.shutdown().await;
                return Error::e_explain(ErrorType::InvalidHTTPHeader, "it is larger than 4 MiB");
            }
            body.extend_from_slice(&chunk);
        }
    }
    session.shutdown().await;
    match status {
        200 => Ok(body),
        status => Error::e_explain(ErrorType::HTTPStatus(status), "a status that is not 200"),
    }
}
