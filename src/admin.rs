//! The admin port: liveness, readiness and metrics.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use jiff::Timestamp;

use crate::access::Keyring;
use crate::metrics::{CapStatus, Metrics, UpstreamStatus};
use crate::runtime::{Key, Runtime, Snapshot};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The phases of the process, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecyclePhase {
    Starting,
    Ready,
    Draining,
}

/// The state behind the admin port.
pub struct Admin {
    pub metrics: Arc<Metrics>,
    runtime: Arc<Runtime>,
    /// The keys of the store, if there is one.
    keyring: Option<Arc<Keyring>>,
    phase: AtomicU8,
}

impl Admin {
    pub fn new(
        metrics: Arc<Metrics>,
        runtime: Arc<Runtime>,
        keyring: Option<Arc<Keyring>>,
    ) -> Admin {
        Admin {
            metrics,
            runtime,
            keyring,
            phase: AtomicU8::new(LifecyclePhase::Starting as u8),
        }
    }

    pub fn phase(&self) -> LifecyclePhase {
        match self.phase.load(Ordering::Acquire) {
            0 => LifecyclePhase::Starting,
            1 => LifecyclePhase::Ready,
            _ => LifecyclePhase::Draining,
        }
    }

    /// Enters a phase, only forward: a start that completes after the shutdown signal must not make the process
    /// ready again.
    pub fn enter(&self, phase: LifecyclePhase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
    }
}

/// `/healthz`, `/readyz` and `/metrics`; every other path is 404.
pub fn router(state: Arc<Admin>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics))
        .fallback(async || (StatusCode::NOT_FOUND, "not found"))
        .with_state(state)
}

async fn readiness(State(admin): State<Arc<Admin>>) -> (StatusCode, &'static str) {
    match admin.phase() {
        LifecyclePhase::Starting => (
            StatusCode::SERVICE_UNAVAILABLE,
            "starting: the listeners are not open yet",
        ),
        LifecyclePhase::Ready => (StatusCode::OK, "ready"),
        LifecyclePhase::Draining => (
            StatusCode::SERVICE_UNAVAILABLE,
            "draining: the last requests are being finished",
        ),
    }
}

async fn metrics(State(admin): State<Arc<Admin>>) -> impl IntoResponse {
    let snapshot = admin.runtime.snapshot();
    let stored = admin.keyring.as_ref().map(|keyring| keyring.cached_keys());
    let keys = snapshot.keys.values().cloned();
    let caps = keys.chain(stored.into_iter().flatten());
    let now = Timestamp::now();
    let caps = caps.filter_map(|key| cap_status(&key, now)).collect();
    let text = admin.metrics.render(upstream_status(&snapshot), caps);
    ([(CONTENT_TYPE, OPEN_METRICS)], text)
}

fn cap_status(key: &Key, now: Timestamp) -> Option<CapStatus> {
    let cap = key.cap?;
    let used = (key.account.spent(cap.reset, now) + key.account.reserved()).to_f64();
    Some(CapStatus {
        key: key.name.clone(),
        used: match cap.amount.is_zero() {
            true => 1.0,
            false => used / cap.amount.to_f64(),
        },
    })
}

fn upstream_status(snapshot: &Snapshot) -> Vec<UpstreamStatus> {
    let mut models: HashMap<Arc<str>, Vec<_>> = HashMap::new();
    for target in snapshot.models.iter().flat_map(|model| &model.targets) {
        let of_upstream = models.entry(target.upstream.name.clone()).or_default();
        of_upstream.push((target.model.clone(), target.health.is_open()));
    }
    let upstreams = snapshot.upstreams.iter();
    upstreams
        .map(|upstream| UpstreamStatus {
            upstream: upstream.name.clone(),
            in_flight: upstream.load.in_flight(),
            waiting: upstream.load.queued(),
            down: upstream.health.as_ref().map(|_| upstream.load.is_down()),
            discovered: upstream.discovery.as_ref().map(|discovery| {
                let models = &discovery.models;
                (models.count(), models.is_failing())
            }),
            models: models.remove(&upstream.name).unwrap_or_default(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    use super::*;

    fn admin() -> Admin {
        let config = crate::config::parse("test.yaml", "{}", &|_| None);
        let runtime = Runtime::new(config.expect("an empty config is good"));
        Admin::new(Arc::default(), Arc::new(runtime), None)
    }

    async fn open(admin: Arc<Admin>) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move { axum::serve(listener, router(admin)).await });
        address
    }

    /// The whole reply to a `GET`, head and body.
    async fn answer(address: SocketAddr, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n");
        let exchange = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).expect("a connection");
            stream.write_all(request.as_bytes()).expect("sent");
            let mut reply = String::new();
            stream.read_to_string(&mut reply).expect("a reply");
            reply
        });
        exchange.await.expect("no panic")
    }

    #[track_caller]
    fn assert_plain(reply: &str, status: u16, body: &str) {
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        assert!(reply.contains("content-type: text/plain"), "{reply}");
        assert!(reply.ends_with(&format!("\r\n\r\n{body}")), "{reply}");
    }

    #[tokio::test]
    async fn ready_only_between_start_and_drain_but_always_alive() {
        let admin = Arc::new(admin());
        let address = open(admin.clone()).await;
        let starting = "starting: the listeners are not open yet";
        assert_plain(&answer(address, "/readyz").await, 503, starting);
        assert_plain(&answer(address, "/healthz").await, 200, "ok");
        admin.enter(LifecyclePhase::Ready);
        assert_plain(&answer(address, "/readyz").await, 200, "ready");
        admin.enter(LifecyclePhase::Draining);
        let draining = "draining: the last requests are being finished";
        assert_plain(&answer(address, "/readyz").await, 503, draining);
        assert_plain(&answer(address, "/healthz").await, 200, "ok");
    }

    #[test]
    fn phases_only_go_forward() {
        let admin = admin();
        assert_eq!(admin.phase(), LifecyclePhase::Starting);
        for (entered, phase) in [
            (LifecyclePhase::Ready, LifecyclePhase::Ready),
            (LifecyclePhase::Starting, LifecyclePhase::Ready),
            (LifecyclePhase::Draining, LifecyclePhase::Draining),
            (LifecyclePhase::Ready, LifecyclePhase::Draining),
        ] {
            admin.enter(entered);
            assert_eq!(admin.phase(), phase);
        }
    }

    #[tokio::test]
    async fn metrics_are_served_as_open_metrics() {
        let admin = Arc::new(admin());
        let address = open(admin.clone()).await;
        let _serving = admin.metrics.in_flight();
        let reply = answer(address, "/metrics").await;
        assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let header = format!("\ncontent-type: {content_type}\r\n");
        assert!(reply.contains(&header), "{reply}");
        assert!(
            reply.contains("\nomniglot_requests_in_flight 1\n"),
            "{reply}"
        );
        assert!(reply.ends_with("# EOF\n"), "{reply}");
    }

    #[tokio::test]
    async fn other_paths_are_not_found() {
        let address = open(Arc::new(admin())).await;
        for path in ["/", "/healthz/", "/v1/models"] {
            assert_plain(&answer(address, path).await, 404, "not found");
        }
    }
}
