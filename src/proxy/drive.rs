//! The forwarding loop: the steps of each attempt, with the header held until there is
//! something true to say, and every failure before that handed to the next attempt.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use super::Session;
use bytes::Bytes;
use pingora_core::protocols::http::client::HttpSession as Upstreaming;
use pingora_core::{Error, ErrorSource, ErrorType, Result};
use tokio::time::{Instant, sleep_until};

use super::Gateway;
use super::attempt;
use super::connections::{Destination, Line};
use super::context::RequestContext;
use super::counting;
use super::essentials::Essentials;
use super::patience::within;
use super::plain::Plain;
use super::{relay, retry, send};
use crate::json::ChunkedBytes;
use crate::translate::ResponseMode;

/// A stream's first events hold no content. They wait this long for some, so that a stream
/// which fails at once can still be answered by another upstream.
const HOLD: Duration = Duration::from_secs(1);

impl Gateway {
    /// Attempts in order, until one has answered or none is left.
    pub(super) async fn drive(
        &self,
        session: &mut Session,
        exchange: &mut RequestContext,
    ) -> Result<()> {
        loop {
            let outcome = self.attempt(session, exchange).await;
            exchange.place = None;
            match outcome {
                // A step may have allowed it before the header went out.
                Err(error) if error.retry() && exchange.may_try_again() => {
                    exchange.delete_response();
                    if !self.pause(session, exchange).await? {
                        return Err(error);
                    }
                    log::info!(
                        "{}: upstream {} failed, trying the next: {error}",
                        exchange.request_id,
                        exchange.upstream_name()
                    );
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, session: &mut Session, exchange: &mut RequestContext) -> Result<()> {
        if counting::is_ours(exchange) {
            return counting::estimate(self, session, exchange).await;
        }
        let mut destination = self.next_destination(exchange).await?;
        let body = self.prepare(exchange)?;
        exchange.place = Some(self.enter_upstream(session, exchange).await?);
        // On the heap, like all that is large and soon over: in place it would make every stream hold
        // it, and every call from here outwards copy it.
        let asking = Box::pin(self.ask(session, exchange, &mut destination, &body));
        let mut upstream = asking.await?;
        // The reply may take hours, and what was asked may be many megabytes.
        drop(body);
        let outcome = match self.relay(session, exchange, &mut upstream).await {
            Ok(()) if exchange.unfinished => {
                upstream.shutdown().await;
                Ok(())
            }
            Ok(()) => {
                Box::pin(self.connections.release(*upstream, &destination)).await;
                Ok(())
            }
            Err(error) => {
                upstream.shutdown().await;
                Err(self.failed(error, exchange))
            }
        };
        if !outcome.as_ref().is_err_and(|error| is_downstream(error)) {
            self.upstream_served(exchange);
        }
        outcome
    }

    /// With whether the connection has been used before, which a fresh one has not.
    async fn connect(&self, to: &Destination, fresh: bool) -> Result<(Line, bool)> {
        if !fresh && let Some(line) = self.connections.at_hand(to).await? {
            return Ok((line, true));
        }
        // The largest of all futures by far, and few need it.
        let making = async { self.connections.make(&to.peer()).await };
        Ok((Box::pin(making).await?, false))
    }

    /// Connects, sends the request and waits for the header. A pooled connection that turns
    /// out to be dead is no failure of the upstream: the same request goes out on a new one,
    /// and only once more, since a new one cannot have died in the pool.
    async fn ask(
        &self,
        session: &mut Session,
        exchange: &mut RequestContext,
        destination: &mut Destination,
        body: &ChunkedBytes,
    ) -> Result<Box<Upstreaming>> {
        let mut fresh = false;
        loop {
            let connected = {
                let connecting = pin!(self.connect(destination, fresh));
                unless_gone(session, exchange.deadline(), connecting).await
            };
            let (line, reused) = match connected {
                Ok(connected) => connected,
                Err(error) if is_downstream(&error) => return Err(error),
                Err(error) => match attempt::elsewhere(exchange, &error) {
                    Some(address) => {
                        destination.address = address;
                        continue;
                    }
                    None => return Err(self.failed(error, exchange)),
                },
            };
            let attempt = exchange.attempt().ok_or_else(no_attempt)?;
            let timeouts = attempt.timeouts;
            let client = session.req_header();
            let header = attempt::request(exchange, attempt, client, body.len())?;
            exchange.asked_at = Some(std::time::Instant::now());
            let deadline = exchange.deadline();
            let sent = {
                let sending = pin!(send::send(
                    line,
                    header,
                    body.clone(),
                    &timeouts,
                    &mut exchange.bell
                ));
                unless_gone(session, deadline, sending).await
            };
            match sent {
                Ok(answered) => {
                    exchange.unfinished = !answered.is_sent;
                    return Ok(answered.upstream);
                }
                Err(error) if reused && may_be_stale(&error) => fresh = true,
                Err(error) => return Err(self.failed(error, exchange)),
            }
        }
    }

    async fn relay(
        &self,
        session: &mut Session,
        exchange: &mut RequestContext,
        upstream: &mut Upstreaming,
    ) -> Result<()> {
        let header = upstream.response_header().ok_or_else(no_attempt)?;
        let header = Essentials::of(header);
        let limit = exchange.snapshot.server.body_limit;
        let plain = Plain::of(header.coding.as_ref(), limit)?;
        self.understand(&header, exchange)?;
        match exchange.reply.as_ref().map(|reply| reply.kind()) {
            None => relay::error(self, session, exchange, upstream, &header, plain).await,
            Some(ResponseMode::Whole) => {
                relay::whole(self, session, exchange, upstream, header, plain).await
            }
            Some(ResponseMode::Stream) => {
                relay::stream(self, session, exchange, upstream, header, plain).await
            }
        }
    }
}

/// Runs a step towards the upstream, but stops at once when the client goes away, or in time.
pub(super) async fn unless_gone<T>(
    session: &mut Session,
    deadline: Option<Instant>,
    step: Pin<&mut impl Future<Output = Result<T>>>,
) -> Result<T> {
    tokio::select! {
        biased;
        done = step => done.map_err(|error| error.into_up()),
        gone = session.read_body_or_idle(true) => Err(client_gone(gone)),
        () = passing(deadline), if deadline.is_some() => Err(retry::too_late()),
    }
}

pub(super) async fn passing(moment: Option<Instant>) {
    if let Some(moment) = moment {
        sleep_until(moment).await;
    }
}

/// The next piece of a reply, unless the upstream is silent for too long.
pub(super) async fn piece(
    upstream: &mut Upstreaming,
    limit: Option<Duration>,
) -> Result<Option<Bytes>> {
    match within(limit, pin!(upstream.read_response_body())).await {
        Some(piece) => piece,
        None => Error::e_explain(ErrorType::ReadTimedout, "no piece of the reply in time"),
    }
}

/// The next piece of a stream whose header is still held; `None` in the first place: the hold is over.
pub(super) async fn piece_or_hold(
    session: &mut Session,
    upstream: &mut Upstreaming,
    limit: Option<Duration>,
    held_since: Option<Instant>,
    deadline: Option<Instant>,
) -> Result<Option<Option<Bytes>>> {
    let mut read = pin!(piece(upstream, limit));
    let enough = held_since.map(|since| since + HOLD);
    tokio::select! {
        biased;
        piece = &mut read => piece.map(Some).map_err(|error| error.into_up()),
        gone = session.read_body_or_idle(true) => Err(client_gone(gone)),
        () = passing(deadline), if deadline.is_some() => Err(retry::too_late()),
        () = passing(enough), if enough.is_some() => Ok(None),
    }
}

pub(super) fn client_gone(outcome: Result<Option<Bytes>>) -> Box<Error> {
    match outcome {
        Ok(_) => Error::explain(ErrorType::ConnectionClosed, "the client sent more").into_down(),
        Err(error) => error.into_down(),
    }
}

pub(super) fn is_downstream(error: &Error) -> bool {
    *error.esource() == ErrorSource::Downstream
}

/// Whether the error is what a connection shows that died in the pool.
fn may_be_stale(error: &Error) -> bool {
    !is_downstream(error)
        && !matches!(
            error.etype(),
            ErrorType::ReadTimedout | ErrorType::WriteTimedout | ErrorType::Custom(retry::TOO_LATE)
        )
}

pub(super) fn no_attempt() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "no attempt is under way")
}
