//! Signs of life in a stream whose upstream is silent: intermediaries close what seems dead.

use std::future::pending;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use super::Session;
use bytes::Bytes;
use pingora_core::Result;
use pingora_core::protocols::http::client::HttpSession as Upstreaming;
use tokio::time::{Sleep, sleep};

use super::drive::{client_gone, passing};
use super::exchange::Exchange;
use super::relay::write;
use super::retry::too_late;
use crate::translate::Reply;

/// How long the client of a stream has heard nothing.
pub(super) struct Silence {
    /// `None`: nobody wants to know.
    alarm: Option<Alarm>,
}

struct Alarm {
    interval: Duration,
    /// Set once and then only when it rings: setting it for every piece would cost more than
    /// most pieces do.
    bell: Pin<Box<Sleep>>,
}

impl Silence {
    pub(super) fn watched(exchange: &Exchange) -> Silence {
        let interval = exchange.snapshot.server.timeouts.keep_alive;
        let alarm = interval.map(|interval| Alarm {
            interval,
            bell: Box::pin(sleep(interval)),
        });
        Silence { alarm }
    }

    /// The next piece of a stream whose header is out. Reading is not interrupted by what is
    /// sent meanwhile: the upstream's own timeout goes on.
    pub(super) async fn next_piece(
        &mut self,
        session: &mut Session,
        exchange: &mut Exchange,
        upstream: &mut Upstreaming,
    ) -> Result<Option<Bytes>> {
        let deadline = exchange.deadline();
        let mut read = pin!(upstream.read_response_body());
        loop {
            tokio::select! {
                biased;
                piece = &mut read => return piece.map_err(|error| error.into_up()),
                gone = session.read_body_or_idle(true) => {
                    return Err(client_gone(gone));
                }
                () = passing(deadline), if deadline.is_some() => return Err(too_late()),
                () = self.lasted(exchange.last_sent) => {}
            }
            let sign = exchange.reply.as_ref().and_then(Reply::keep_alive);
            if sign.is_some() {
                write(session, exchange, sign, false).await?;
            }
        }
    }

    /// Comes back each time that it has lasted for the interval.
    async fn lasted(&mut self, last_sent: Instant) {
        let Some(alarm) = &mut self.alarm else {
            return pending().await;
        };
        loop {
            alarm.bell.as_mut().await;
            let now = Instant::now();
            let due = last_sent + alarm.interval;
            let next = if due > now { due } else { now + alarm.interval };
            alarm.bell.as_mut().reset(next.into());
            if due <= now {
                return;
            }
        }
    }
}
