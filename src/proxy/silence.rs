//! Streams in which nothing comes: signs of life for a client, since intermediaries close what seems
//! dead, and an end to waiting for an upstream that is.

use std::future::pending;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use super::Session;
use bytes::Bytes;
use pingora_core::protocols::http::client::HttpSession as Upstreaming;
use pingora_core::{Error, ErrorType, Result};
use tokio::time::{Sleep, sleep};

use super::context::RequestContext;
use super::drive::{client_gone, passing};
use super::relay::write;
use super::retry::too_late;
use crate::translate::ResponseTranslator;

/// How long the client of a stream has heard nothing, and the gateway nothing of its upstream.
pub(super) struct Silence {
    /// After so much of it, the client gets a sign of life.
    sign: Option<Duration>,
    /// After so much of it, the upstream is given up.
    end: Option<Duration>,
    /// Set once and then only when it rings: setting it for every piece, as a timeout of the
    /// connection would, costs more than most pieces do. `None`: nobody wants to know.
    bell: Option<Pin<Box<Sleep>>>,
}

/// What it was too long for.
enum Lasted {
    Client,
    Upstream,
}

impl Silence {
    pub(super) fn watched(exchange: &RequestContext) -> Silence {
        let sign = exchange.snapshot.server.timeouts.keep_alive;
        let end = exchange.later_silence();
        let first = sign.into_iter().chain(end).min();
        Silence {
            sign,
            end,
            bell: first.map(|first| Box::pin(sleep(first))),
        }
    }

    /// The next piece of a stream whose header is out. Reading is not interrupted by what is
    /// sent meanwhile: the time of the upstream goes on.
    pub(super) async fn next_piece(
        &mut self,
        session: &mut Session,
        exchange: &mut RequestContext,
        upstream: &mut Upstreaming,
    ) -> Result<Option<Bytes>> {
        let deadline = exchange.deadline();
        let since = Instant::now();
        let mut read = pin!(upstream.read_response_body());
        loop {
            let lasted = tokio::select! {
                biased;
                piece = &mut read => return piece.map_err(|error| error.into_up()),
                gone = session.read_body_or_idle(true) => {
                    return Err(client_gone(gone));
                }
                () = passing(deadline), if deadline.is_some() => return Err(too_late()),
                lasted = self.lasted(exchange.last_sent, since) => lasted,
            };
            let sign = match lasted {
                Lasted::Upstream => return Err(too_silent()),
                Lasted::Client => exchange
                    .reply
                    .as_ref()
                    .and_then(ResponseTranslator::keep_alive),
            };
            if sign.is_some() {
                write(session, exchange, sign, false).await?;
            } else {
                // There is none in this format; it is as good as sent.
                exchange.last_sent = Instant::now();
            }
        }
    }

    /// Comes back each time that it has lasted too long since then for one of them.
    async fn lasted(&mut self, sent: Instant, asked: Instant) -> Lasted {
        let Some(bell) = &mut self.bell else {
            return pending().await;
        };
        let sign = self.sign.map(|limit| sent + limit);
        let end = self.end.map(|limit| asked + limit);
        loop {
            bell.as_mut().await;
            let now = Instant::now();
            if end.is_some_and(|due| due <= now) {
                return Lasted::Upstream;
            }
            let is_due = sign.is_some_and(|due| due <= now);
            let sign = match is_due {
                true => self.sign.map(|limit| now + limit),
                false => sign,
            };
            if let Some(next) = sign.into_iter().chain(end).min() {
                bell.as_mut().reset(next.into());
            }
            if is_due {
                return Lasted::Client;
            }
        }
    }
}

fn too_silent() -> Box<Error> {
    Error::explain(ErrorType::ReadTimedout, "no piece of the stream in time").into_up()
}
