//! Requests of the gateway's own that show whether an upstream is alive, for those that name a path.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::Method;
use pingora_core::connectors::ConnectorOptions;
use pingora_core::{Error, ErrorType, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::Connections;
use super::connections::Destination;
use super::head::Head;
use super::patience::Bell;
use super::send::send;
use crate::config::HealthCheck;
use crate::json::ChunkedBytes;
use crate::runtime::{Resolver, Runtime, Upstream};

/// How soon a reloaded config is noticed.
const LOOK: Duration = Duration::from_secs(1);

pub struct Checks {
    runtime: Arc<Runtime>,
    tools: Arc<Tools>,
}

/// Not those of the requests: they belong to another thread's runtime.
struct Tools {
    options: ConnectorOptions,
    /// Made for the first check.
    connections: OnceLock<Connections>,
    resolver: Resolver,
}

impl Tools {
    fn connections(&self) -> &Connections {
        let make = || Connections::new(self.options.clone());
        self.connections.get_or_init(make)
    }
}

impl Checks {
    pub fn new(runtime: Arc<Runtime>, options: ConnectorOptions) -> Checks {
        let tools = Tools {
            options,
            connections: OnceLock::new(),
            resolver: Resolver::default(),
        };
        Checks {
            runtime,
            tools: Arc::new(tools),
        }
    }

    /// For ever; every check has a task of its own, and at most one at a time.
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
                    running.spawn(examine(self.tools.clone(), upstream.clone(), check.clone()));
                    // The timeout is never longer than this: two checks cannot overlap.
                    now + check.interval.max(check.timeout)
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
            let soonest = due.values().min().copied().unwrap_or(now + LOOK);
            sleep_until(soonest.min(now + LOOK)).await;
        }
    }
}

async fn examine(tools: Arc<Tools>, upstream: Arc<Upstream>, check: HealthCheck) {
    let asking = ask(&tools, &upstream, &check);
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

async fn ask(tools: &Tools, upstream: &Arc<Upstream>, check: &HealthCheck) -> Result<()> {
    let addresses = tools.resolver.resolve(upstream).await;
    let addresses = addresses.map_err(|reason| Error::explain(ErrorType::ConnectError, reason))?;
    let mut failure = Error::explain(ErrorType::ConnectError, "it has no address");
    for address in addresses {
        let destination = Destination {
            upstream: upstream.clone(),
            address,
            limit: check.timeout,
        };
        let line = match tools.connections().make(&destination.peer()).await {
            Ok(line) => line,
            Err(error) => {
                failure = error;
                continue;
            }
        };
        let target = format!("{}{}", upstream.base.prefix, check.path);
        let head = Head::new(Method::GET, upstream.clone(), target);
        // All of it has one limit.
        let (timeouts, mut bell) = (upstream.timeouts, Bell::default());
        let answered = send(line, head, ChunkedBytes::default(), &timeouts, &mut bell).await?;
        let mut session = answered.upstream;
        let status = session.response_header().map(|header| header.status);
        session.shutdown().await;
        return match status {
            Some(status) if status.is_success() || status.is_redirection() => Ok(()),
            status => {
                let status = status.map_or(0, |status| status.as_u16());
                Error::e_explain(ErrorType::HTTPStatus(status), "an unhealthy status")
            }
        };
    }
    Err(failure)
}
