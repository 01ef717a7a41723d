//! The idle timeout of a stream: when the client needs a keep-alive, and when the upstream has been silent for too long.

use std::future::pending;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep};

/// How long neither side of a stream may go without a byte.
pub(super) struct IdleTimeout {
    /// After so much silence the client gets a keep-alive, since intermediaries close what seems dead.
    keep_alive: Option<Duration>,
    /// After so much silence the upstream has timed out.
    upstream: Option<Duration>,
    /// Set once and then only when it fires: setting it for every chunk, as a timeout of the
    /// connection would, costs more than most chunks do. `None`: there is no limit at all.
    timer: Option<Pin<Box<Sleep>>>,
}

/// What an idle timeout asks for.
pub(super) enum Idle {
    SendKeepAlive,
    UpstreamTimedOut,
}

impl IdleTimeout {
    pub(super) fn new(keep_alive: Option<Duration>, upstream: Option<Duration>) -> IdleTimeout {
        let first = keep_alive.into_iter().chain(upstream).min();
        IdleTimeout {
            keep_alive,
            upstream,
            timer: first.map(|first| Box::pin(sleep(first))),
        }
    }

    /// Returns each time that one of the limits has passed: since the last byte to the client, or
    /// since the upstream has been waited for.
    pub(super) async fn passed(&mut self, last_sent: Instant, waiting_since: Instant) -> Idle {
        let Some(timer) = &mut self.timer else {
            return pending().await;
        };
        let keep_alive = self.keep_alive.map(|limit| last_sent + limit);
        let upstream = self.upstream.map(|limit| waiting_since + limit);
        loop {
            timer.as_mut().await;
            let now = Instant::now();
            if upstream.is_some_and(|due| due <= now) {
                return Idle::UpstreamTimedOut;
            }
            let is_due = keep_alive.is_some_and(|due| due <= now);
            let keep_alive = match is_due {
                true => self.keep_alive.map(|limit| now + limit),
                false => keep_alive,
            };
            if let Some(next) = keep_alive.into_iter().chain(upstream).min() {
                timer.as_mut().reset(next.into());
            }
            if is_due {
                return Idle::SendKeepAlive;
            }
        }
    }
}
