//! The only folder that knows pingora's hooks: each is a few lines that name what happens.

mod answer;
mod archive;
mod attempt;
mod bill;
mod checks;
mod counting;
mod drive;
mod entry;
mod exchange;
mod files;
mod front;
mod intake;
mod kept;
mod later;
mod outgoing;
mod plain;
mod receipt;
mod receive;
mod relay;
mod retry;
mod route;
mod secrets;
mod settle;
mod silence;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use pingora_core::connectors::http::Connector;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use tokio::sync::Notify;
use tokio::time::timeout;

pub use archive::Archive;
pub use checks::Checks;
pub use exchange::Exchange;
pub use front::{Door, Front};
pub use settle::AccessLog;

use crate::access::Keyring;
use crate::images::{Desk, Files};
use crate::journal::Journal;
use crate::metrics::{Cause, Metrics};
use crate::model::{Fault, FaultKind};
use crate::runtime::Runtime;
use crate::translate::{Reply, ReplyKind};

/// How long an idle client connection is kept open, in seconds.
const CLIENT_KEEP_ALIVE: u64 = 75;

pub struct Gateway {
    pub runtime: Arc<Runtime>,
    pub metrics: Arc<Metrics>,
    /// The keys of the store; `None`: there is no store.
    pub keyring: Option<Arc<Keyring>>,
    /// Where kept replies outlive the process; `None`: nowhere.
    pub archive: Option<Arc<Archive>>,
    pub access_log: Option<AccessLog>,
    /// Absent: what requests took is kept in memory only.
    pub journal: Option<Arc<Journal>>,
    pub connector: Connector,
    /// Told when draining has taken long enough: what is still in flight ends with an error.
    pub stop: Arc<Notify>,
    /// And then this says so for good.
    pub stopped: Arc<AtomicBool>,
    pub desk: Arc<Desk>,
    pub files: Arc<Files>,
}

impl Gateway {
    /// Requests in flight have been told to end.
    fn is_leaving(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Keeps a fault for `fail_to_proxy`; the error says whether another attempt may follow.
    fn park(&self, exchange: &mut Exchange, mut fault: Fault) -> Box<Error> {
        if let Some(attempt) = exchange.attempt() {
            secrets::hide_in_fault(&attempt.upstream, &mut fault);
        }
        let mut error = Error::explain(ErrorType::HTTPStatus(fault.status), fault.message.clone());
        error.set_retry(
            exchange.tried > 0
                && exchange.may_try_again()
                && retry::may_be_better_elsewhere(fault.kind),
        );
        exchange.fault = Some(fault);
        error
    }
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = Exchange;

    /// The first thing that happens once a header is there.
    fn new_ctx(&self) -> Exchange {
        front::note_arrival(true);
        let (metrics, journal) = (self.metrics.clone(), self.journal.clone());
        Exchange::new(self.runtime.snapshot(), metrics, journal)
    }

    /// Everything happens here: the request is answered, or it has failed.
    async fn request_filter(&self, session: &mut Session, exchange: &mut Exchange) -> Result<bool> {
        if session.get_keepalive().is_some() {
            session.set_keepalive(Some(CLIENT_KEEP_ALIVE));
        }
        tokio::select! {
            biased;
            done = self.receive(session, exchange) => return done.map(|()| true),
            () = self.stop.notified() => {}
        }
        if exchange.writing {
            // Half of a piece is out: whatever came now would stand in the middle of it.
            return Error::e_explain(ErrorType::ConnectionClosed, "stopped while writing")
                .map_err(|error: Box<Error>| error.into_down());
        }
        let fault = Fault::new(FaultKind::Overloaded, "the gateway is shutting down");
        Err(self.park(exchange, fault))
    }

    /// The next attempt, and where it goes.
    async fn upstream_peer(
        &self,
        _session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<Box<HttpPeer>> {
        let Some(attempt) = exchange.begin_attempt() else {
            return Error::e_explain(ErrorType::InternalError, "no attempt is left");
        };
        attempt.health.begin(std::time::Instant::now());
        let limit = attempt.timeouts.connect;
        let looked_up = timeout(limit, self.runtime.names.addresses(&attempt.upstream)).await;
        match looked_up.unwrap_or_else(|_| Err("its name is not resolved in time".to_owned())) {
            Ok(mut addresses) => {
                let first = addresses.remove(0);
                exchange.other_addresses = addresses;
                let connect = attempt.timeouts.connect;
                Ok(Box::new(attempt::peer(&attempt.upstream, connect, first)))
            }
            Err(reason) => {
                log::warn!("upstream {}: {reason}", attempt.upstream.name);
                let fault = Fault::bad_gateway("the upstream cannot be reached");
                self.upstream_failed(exchange, Cause::Connect, &fault);
                Err(self.park(exchange, fault))
            }
        }
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        header: &mut RequestHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        match exchange.attempt() {
            Some(attempt) => {
                let same_format = attempt.upstream.format == exchange.format;
                let client = &session.req_header().headers;
                // What was translated is JSON; only the client's own bytes can be a form.
                let own = same_format.then_some(&exchange.body[..]);
                attempt::request_headers(header, client, attempt, own)
            }
            None => Ok(()),
        }
    }

    async fn request_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        _end: bool,
        exchange: &mut Exchange,
    ) -> Result<()> {
        match outgoing::body(&self.runtime.conversations, exchange) {
            Ok(prepared) => {
                *body = Some(prepared.body);
                exchange.losses = prepared.losses;
                exchange.memory = prepared.memory;
                exchange.operation = prepared.operation;
                Ok(())
            }
            Err(fault) => {
                exchange.withdraw_attempt();
                let mut error = self.park(exchange, fault);
                error.set_retry(exchange.may_try_again());
                Err(error)
            }
        }
    }

    /// What the upstream's header means: a reply to relay, or nothing: an error to read.
    async fn upstream_response_filter(
        &self,
        _session: &mut Session,
        header: &mut ResponseHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let status = header.status.as_u16();
        if status == 200 {
            let kind = header.headers.get(CONTENT_TYPE);
            let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or("");
            let limit = exchange.snapshot.server.body_limit;
            let (Some(wanted), Some(attempt)) = (&exchange.wanted, exchange.attempt()) else {
                return Ok(());
            };
            let asked = outgoing::asked(exchange, wanted);
            let upstream = attempt.upstream.format;
            return match Reply::choose(exchange.format, upstream, wanted, &asked, kind, limit) {
                Ok(reply) => {
                    exchange.reply = Some(reply);
                    Ok(())
                }
                Err(fault) => {
                    self.upstream_failed(exchange, Cause::Unreadable, &fault);
                    Err(self.park(exchange, fault))
                }
            };
        }
        Ok(())
    }

    async fn response_filter(
        &self,
        _session: &mut Session,
        header: &mut ResponseHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        for (name, value) in answer::request_id(exchange) {
            header.insert_header(name, value)?;
        }
        for (name, value) in answer::provenance(exchange) {
            header.insert_header(name, value)?;
        }
        for (name, value) in outgoing::lost(exchange) {
            header.insert_header(name, value)?;
        }
        for (name, value) in answer::allowance(exchange) {
            header.insert_header(name, value)?;
        }
        let reply = exchange.reply.as_ref().map(|reply| reply.kind());
        if reply == Some(ReplyKind::Whole) {
            for (name, value) in bill::headers(exchange) {
                header.insert_header(name, value)?;
            }
        }
        Ok(())
    }

    fn response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        exchange: &mut Exchange,
    ) -> Result<Option<Duration>> {
        let Some(reply) = &mut exchange.reply else {
            return Ok(None);
        };
        let kind = reply.kind();
        let pushed = reply.push(body, end);
        let watch = reply.watch();
        let (begun, told) = (watch.begun, watch.fault.clone());
        if let (Some(_), Some(attempt), Some(passed)) = (&told, exchange.attempt(), &*body)
            && let Some(hidden) = secrets::hide(&attempt.upstream, passed)
        {
            *body = Some(hidden.into());
        }
        let early = told.filter(|_| !begun && !exchange.header_sent);
        let (mut fault, cause) = match (pushed, early) {
            (_, Some(fault)) => (fault, Cause::Status),
            (Ok(()), None) => {
                let archive = self.archive.as_deref();
                kept::keep(&self.runtime.conversations, archive, exchange);
                return Ok(None);
            }
            (Err(fault), None) if end && kind == ReplyKind::Stream => (fault, Cause::Cut),
            (Err(fault), None) => (fault, Cause::Unreadable),
        };
        if relay::is_about_credentials(fault.kind) {
            fault = relay::refused_credentials(exchange.upstream_name(), fault.status);
        }
        if retry::may_be_better_elsewhere(fault.kind) {
            self.upstream_failed(exchange, cause, &fault);
        }
        Err(self.park(exchange, fault))
    }

    fn fail_to_connect(
        &self,
        session: &mut Session,
        peer: &HttpPeer,
        exchange: &mut Exchange,
        error: Box<Error>,
    ) -> Box<Error> {
        self.error_while_proxy(peer, session, error, exchange, false)
    }

    /// Every failure of an upstream passes here once, and is given its meaning.
    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        _session: &mut Session,
        mut error: Box<Error>,
        exchange: &mut Exchange,
        _reused: bool,
    ) -> Box<Error> {
        if drive::is_downstream(&error) {
            error.set_retry(false);
            return error;
        }
        if exchange.fault.is_some() {
            return error;
        }
        let Some(attempt) = exchange.attempt().cloned() else {
            error.set_retry(false);
            return error;
        };
        let (fault, cause) = attempt::meaning(&error, &attempt.timeouts);
        // What an unreadable header holds may name an account: it is not for the log.
        match error.etype() {
            ErrorType::InvalidHTTPHeader => {
                log::warn!("upstream {}: unreadable header", attempt.upstream.name);
            }
            _ => {
                let said = error.to_string();
                let said = secrets::hide_in_text(&attempt.upstream, &said);
                log::warn!("upstream {}: {said}", attempt.upstream.name);
            }
        }
        self.upstream_failed(exchange, cause, &fault);
        self.park(exchange, fault)
    }

    /// The one place where a fault is told.
    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        exchange: &mut Exchange,
    ) -> FailToProxy {
        exchange.told = exchange.fault.as_ref().map(|fault| fault.kind);
        let told = match exchange.fault.take() {
            Some(fault) => answer::fault(session, exchange, &fault).await.is_ok(),
            None if drive::is_downstream(error) => {
                exchange.client_left = true;
                exchange.status = 499;
                false
            }
            None => {
                log::error!("{}: {error}", exchange.request_id);
                let fault = Fault::new(FaultKind::Internal, "the gateway failed");
                answer::fault(session, exchange, &fault).await.is_ok()
            }
        };
        FailToProxy {
            error_code: exchange.status,
            can_reuse_downstream: told,
        }
    }

    /// Faults are told to clients and counted; what needs a person's eye was logged where it happened.
    fn suppress_error_log(&self, _: &Session, _: &Exchange, _: &Error) -> bool {
        true
    }

    async fn logging(&self, session: &mut Session, _: Option<&Error>, exchange: &mut Exchange) {
        settle::settle(self, session, exchange);
    }
}
