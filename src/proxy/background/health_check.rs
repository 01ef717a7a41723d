//! Health checks: requests of the gateway's own to upstreams whose config names a path.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pingora_core::connectors::ConnectorOptions;
use pingora_core::{Error, ErrorType, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::background_client::BackgroundClient;
use crate::config::HealthCheck;
use crate::runtime::{Runtime, Upstream};

/// How soon a reloaded config is noticed.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// Checks all upstreams that have a health check, each in its own interval.
pub struct HealthChecks {
    runtime: Arc<Runtime>,
    client: Arc<BackgroundClient>,
}

impl HealthChecks {
    pub fn new(runtime: Arc<Runtime>, options: ConnectorOptions) -> HealthChecks {
        HealthChecks {
            runtime,
            client: Arc::new(BackgroundClient::new(options)),
        }
    }

    /// Runs for ever; every check has a task of its own, and at most one per upstream at a time.
    pub async fn run(&self) {
        let mut due: HashMap<Arc<str>, Instant> = HashMap::new();
        let mut running = JoinSet::new();
        loop {
            let now = Instant::now();
            let snapshot = self.runtime.snapshot();
            let checked = snapshot.upstreams.iter();
            let checked =
                checked.filter_map(|upstream| Some((upstream, upstream.health.as_ref()?)));
            let mut next: HashMap<Arc<str>, Instant> = HashMap::new();
            for (upstream, check) in checked {
                let at = due.get(&upstream.name).copied().unwrap_or(now);
                let at = if at <= now {
                    running.spawn(check_upstream(
                        self.client.clone(),
                        upstream.clone(),
                        check.clone(),
                    ));
                    // The timeout is never longer than this: two checks cannot overlap.
                    now + check.interval
                } else {
                    at
                };
                next.insert(upstream.name.clone(), at);
            }
            for upstream in &snapshot.upstreams {
                if upstream.health.is_none() {
                    upstream.load.set_down(false);
                }
            }
            due = next;
            while running.try_join_next().is_some() {}
            let soonest = due.values().min().copied().unwrap_or(now + RELOAD_INTERVAL);
            sleep_until(soonest.min(now + RELOAD_INTERVAL)).await;
        }
    }
}

async fn check_upstream(
    client: Arc<BackgroundClient>,
    upstream: Arc<Upstream>,
    check: HealthCheck,
) {
    let asking = request(&client, &upstream, &check);
    let outcome = timeout(check.timeout, asking)
        .await
        .unwrap_or_else(|_| Error::e_explain(ErrorType::ReadTimedout, "no answer in time"));
    let news = upstream.load.set_down(outcome.is_err());
    let name = &upstream.name;
    match outcome {
        Err(error) if news => log::warn!("upstream {name}: its health check fails: {error}"),
        Ok(()) if news => log::info!("upstream {name}: its health check succeeds again"),
        _ => {}
    }
}

async fn request(
    client: &BackgroundClient,
    upstream: &Upstream,
    check: &HealthCheck,
) -> Result<()> {
    let mut session = client
        .get(upstream, &check.path, None, check.timeout)
        .await?;
    let status = session.response_header().map(|header| header.status);
    session.shutdown().await;
    match status {
        Some(status) if status.is_success() || status.is_redirection() => Ok(()),
        status => {
            let status = status.map_or(0, |status| status.as_u16());
            Error::e_explain(ErrorType::HTTPStatus(status), "an unhealthy status")
        }
    }
}
