//! The connection before its request: how long a client may take to send a header.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::Method;
use pingora_core::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::v2::server::H2Options;
use pingora_core::server::ShutdownWatch;
use pingora_core::{ErrorType, Result};
use tokio::time::{sleep, timeout};

use super::{CLIENT_KEEP_ALIVE, Gateway, Session};

/// So many bytes tell HTTP/2 from HTTP/1.1; no request is shorter.
const PREFACE: usize = 24;

tokio::task_local! {
    /// Whether what this task waits for has arrived.
    static ARRIVED: Arc<AtomicBool>;
}

/// Says inside of `within` whether its limit still counts.
fn note_arrival(arrived: bool) {
    // Outside of it nothing is waited for.
    let _ = ARRIVED.try_with(|flag| flag.store(arrived, Ordering::Relaxed));
}

/// pingora has no limit for what comes before HTTP/2's first request. Here all of it has to arrive
/// in time, or the connection is dropped with the task.
async fn within<T>(limit: Duration, serving: impl Future<Output = Option<T>>) -> Option<T> {
    let arrived = Arc::new(AtomicBool::new(true));
    let mut serving = pin!(ARRIVED.scope(arrived.clone(), serving));
    let mut late = pin!(sleep(limit));
    poll_fn(|context| {
        if let Poll::Ready(done) = serving.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        if !arrived.load(Ordering::Relaxed) && late.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}

/// Waits for the first bytes of a connection. In the clear pingora looks at them too, and over
/// TLS it waits for those of HTTP/2, but for as long as it takes: whoever sends none would be
/// kept for ever.
pub struct Door(pub Arc<Front>);

#[async_trait]
impl ServerApp for Door {
    async fn process_new(
        self: &Arc<Self>,
        mut stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let gateway = &self.0.gateway;
        gateway.metrics.note_service();
        let limit = gateway.runtime.snapshot().server.timeouts.header;
        if stream.get_ssl_digest().is_none() {
            let mut first = [0; PREFACE];
            let looked = timeout(limit, stream.try_peek(&mut first)).await;
            looked.ok()?.ok()?;
        }
        within(limit, self.0.process_new(stream, shutdown)).await
    }
}

pub struct Front {
    pub gateway: Gateway,
    pub options: HttpServerOptions,
    pub h2_options: H2Options,
}

#[async_trait]
impl HttpServerApp for Front {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: Session,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let mut limit = self.gateway.runtime.snapshot().server.timeouts.header;
        if session.get_keepalive() == Some(CLIENT_KEEP_ALIVE) {
            // The next request may be a while in coming.
            limit += Duration::from_secs(CLIENT_KEEP_ALIVE);
        } else {
            session.set_keepalive(None);
            session.set_read_timeout(Some(limit));
        }
        // Else a client that sends its next request early, or an empty line after its body,
        // is taken for one that has gone wrong, and loses the reply it is waiting for.
        session.set_pipelining_enabled(true);
        // On the heap once, instead of moved from hand to hand.
        Box::pin(self.gateway.serve(session, limit, shutdown)).await
    }

    /// pingora asks for these when it is about to wait for the first bytes of HTTP/2 …
    fn h2_options(&self) -> Option<H2Options> {
        note_arrival(false);
        Some(self.h2_options.clone())
    }

    /// … and for these when they are there.
    fn server_options(&self) -> Option<&HttpServerOptions> {
        note_arrival(true);
        Some(&self.options)
    }
}

/// Waits for a request on a connection, whose header must be whole within the limit; `None`: there
/// will be none that can be answered.
pub(super) async fn await_request(
    session: &mut Session,
    limit: Duration,
    shutdown: &ShutdownWatch,
) -> Option<()> {
    let mut shutdown = shutdown.clone();
    let late = Instant::now() + limit;
    let read = {
        let mut reading = pin!(session.read_request());
        // Where no byte comes, pingora's own timeout ends it; each that comes is a look at the
        // clock, so that none is read for longer. A timer for every request would cost more.
        let in_time = poll_fn(|context| match reading.as_mut().poll(context) {
            Poll::Pending if Instant::now() > late => Poll::Ready(None),
            polled => polled.map(Some),
        });
        tokio::select! {
            // One that has arrived is answered all the same.
            biased;
            read = in_time => read?,
            _ = shutdown.changed() => return None,
        }
    };
    // Without a format, and without a body that could be told from what follows it.
    let refusal = match read {
        Ok(true) if session.req_header().method == Method::CONNECT => 405,
        Ok(true) => return Some(()),
        Ok(false) => return None,
        Err(error) if matches!(error.etype(), ErrorType::InvalidHTTPHeader) => 400,
        Err(error) => {
            log::debug!("a client's connection broke: {error}");
            session.shutdown().await;
            return None;
        }
    };
    let told: Result<()> = session.respond_error(refusal).await;
    if let Err(error) = told {
        log::debug!("a client could not be told {refusal}: {error}");
    }
    session.shutdown().await;
    None
}
