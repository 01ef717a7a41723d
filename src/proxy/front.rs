//! A client's connection: which protocol it speaks, and its requests, one after the other.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::Method;
use pingora_core::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp};
use pingora_core::protocols::http::v2::server::H2Options;
use pingora_core::protocols::{ALPN, Stream};
use pingora_core::server::ShutdownWatch;
use pingora_core::{ErrorType, Result};
use tokio::time::{sleep, timeout};

use super::patience::Bell;
use super::{Gateway, Session};

/// What a connection of HTTP/2 begins with in the clear. There is more of it, but a request of HTTP/1.0 may be no longer.
const PREFACE: &[u8; 16] = b"PRI * HTTP/2.0\r\n";

/// How long a connection is kept open for its next request.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Said to pingora, which would set a timer for each read: ours is one for all of them.
const NO_TIMER: Option<u64> = Some(0);

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

/// Tells the protocols apart. pingora would too, but waits for the first bytes for as long as it
/// takes: whoever sends none would be kept for ever. And it would serve every request of HTTP/1.1 as
/// if it were the first, with the room it needs and all that is watched made anew.
pub struct Door(pub Arc<Front>);

#[async_trait]
impl ServerApp for Door {
    async fn process_new(
        self: &Arc<Self>,
        mut stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let front = &self.0;
        front.gateway.metrics.set_service_runtime();
        let limit = front.header_limit();
        let is_http2 = if stream.get_ssl_digest().is_some() {
            matches!(stream.selected_alpn_proto(), Some(ALPN::H2))
        } else {
            let mut first = [0; PREFACE.len()];
            let looked = timeout(limit, stream.try_peek(&mut first)).await;
            looked.ok()?.ok()?;
            front.options.h2c && first == *PREFACE
        };
        if is_http2 {
            within(limit, front.process_new(stream, shutdown)).await
        } else {
            front.converse(stream, shutdown).await;
            None
        }
    }
}

pub struct Front {
    pub gateway: Gateway,
    pub options: HttpServerOptions,
    pub h2_options: H2Options,
}

impl Front {
    fn header_limit(&self) -> Duration {
        self.gateway.runtime.snapshot().server.timeouts.header
    }

    /// All requests of a connection of HTTP/1.1; `None`: it has ended, as all do.
    async fn converse(&self, stream: Stream, shutdown: &ShutdownWatch) -> Option<()> {
        let mut stop = pin!(self.gateway.stop.notified());
        let mut watched = shutdown.clone();
        let mut leaving = pin!(watched.changed());
        let mut bell = Bell::default();
        let mut session = Session::new_http1(stream);
        let mut limit = self.header_limit();
        loop {
            session.set_keepalive(NO_TIMER);
            // Else a client that sends its next request early, or an empty line after its body,
            // is taken for one that has gone wrong, and loses the reply it is waiting for.
            session.set_pipelining_enabled(true);
            tokio::select! {
                // One that has arrived is answered all the same.
                biased;
                read = session.read_request() => self.accept(&mut session, read).await?,
                () = bell.past(Instant::now() + limit) => return None,
                _ = leaving.as_mut() => return None,
            }
            if *shutdown.borrow() {
                session.set_keepalive(None);
            }
            let stop = stop.as_mut();
            if !self.gateway.serve(&mut session, &mut bell, stop).await {
                return None;
            }
            let (stream, early) = session.finish().await.ok()??.into_parts();
            session = Session::new_http1(stream);
            if let Some(early) = early {
                session.set_pipelined_prefix(early);
            }
            // The next request may be a while in coming.
            limit = KEEP_ALIVE + self.header_limit();
        }
    }

    /// A request that can be answered; what cannot has no format, nor a body that could be told
    /// from what follows it.
    async fn accept(&self, session: &mut Session, read: Result<bool>) -> Option<()> {
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
}

/// Only for HTTP/2, where every request is a stream with a task of its own.
#[async_trait]
impl HttpServerApp for Front {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: Session,
        _shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let read = session.read_request().await;
        self.accept(&mut session, read).await?;
        let stop = pin!(self.gateway.stop.notified());
        let mut bell = Bell::default();
        if Box::pin(self.gateway.serve(&mut session, &mut bell, stop)).await
            && let Err(error) = session.finish().await
        {
            log::debug!("a stream could not be finished: {error}");
        }
        None
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
