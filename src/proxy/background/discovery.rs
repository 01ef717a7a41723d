//! Reads the lists of models of upstreams with `discover`, in the background.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pingora_core::connectors::ConnectorOptions;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::background_client::BackgroundClient;
use super::listed_models::list_models;
use crate::proxy::upstream::redact;
use crate::runtime::{Runtime, Upstream};

/// How soon a reloaded config is noticed.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// A list that cannot be read is read again this soon.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

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
    let read = list_models(&client, &upstream).await;
    let read = read.map_err(|failure| failure.to_string());
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
