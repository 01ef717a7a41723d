//! Timeouts: of one step, of silence in a stream, and steps that end early because the client has left.

use std::future::{pending, poll_fn, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pingora_core::protocols::http::ServerSession;
use pingora_core::{Error, ErrorSource, ErrorType, Result};
use pingora_timeout::timeout;
use tokio::task::yield_now;
use tokio::time::{Instant as TokioInstant, Sleep, sleep, sleep_until};

/// The error type of a step that took longer than its attempt, or its request, may take.
pub(super) const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";

/// Waits for a future for a limited time; `None`: the limit has passed. A future that is ready at
/// once, as most are, needs no timer. It is handed in pinned, because a future that is moved in
/// would be held twice.
pub(super) async fn within<T>(
    limit: impl Into<Option<Duration>>,
    mut waiting: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let at_once = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
    match (at_once, limit.into()) {
        (Poll::Ready(done), _) => Some(done),
        (Poll::Pending, Some(limit)) => timeout(limit, waiting).await.ok(),
        (Poll::Pending, None) => Some(waiting.await),
    }
}

/// A timer that serves one limit after the other. It is reset only when it fires, or would fire
/// too late: a new timer for every limit costs more than most of what is waited for.
#[derive(Default)]
pub(super) struct ReusableTimer(Option<Pin<Box<Sleep>>>);

impl ReusableTimer {
    /// Returns when this moment has passed.
    pub(super) async fn until(&mut self, moment: Instant) {
        poll_fn(|context| self.poll_until(moment, context)).await;
    }

    pub(super) fn poll_until(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        let due = moment.into();
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        loop {
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= moment {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}

/// Waits for a step until a deadline. What is ready only then comes too late: a body whose chunks are always ready would never
/// end otherwise.
pub(super) async fn before<T>(
    deadline: Option<TokioInstant>,
    step: Pin<&mut impl Future<Output = Result<T>>>,
) -> Result<T> {
    let Some(deadline) = deadline else {
        return step.await;
    };
    if TokioInstant::now() >= deadline {
        return Err(deadline_exceeded());
    }
    tokio::select! {
        biased;
        done = step => done,
        () = sleep_until(deadline) => Err(deadline_exceeded()),
    }
}

/// Runs a step towards the upstream, but ends it when the client leaves or the deadline passes.
pub(super) async fn unless_gone<T>(
    session: &mut ServerSession,
    deadline: Option<TokioInstant>,
    step: Pin<&mut impl Future<Output = Result<T>>>,
) -> Result<T> {
    tokio::select! {
        biased;
        done = before(deadline, step) => done.map_err(|error| error.into_up()),
        gone = session.read_body_or_idle(true) => Err(client_gone(gone)),
    }
}

/// Fails if the client has left by now: what follows would be done for nobody.
pub(super) async fn check_present(session: &mut ServerSession) -> Result<()> {
    // The runtime sees what has happened to the connection while this task was at work.
    yield_now().await;
    tokio::select! {
        biased;
        gone = session.read_body_or_idle(true) => Err(client_gone(gone)),
        () = ready(()) => Ok(()),
    }
}

/// Sleeps until a deadline; returns at once where there is none.
pub(super) async fn sleep_to(deadline: Option<TokioInstant>) {
    if let Some(deadline) = deadline {
        sleep_until(deadline).await;
    }
}

/// The error of a client that left, or sent more than its request, while it was waited for.
pub(super) fn client_gone(outcome: Result<Option<Bytes>>) -> Box<Error> {
    match outcome {
        Ok(_) => Error::explain(ErrorType::ConnectionClosed, "the client sent more").into_down(),
        Err(error) => error.into_down(),
    }
}

pub(super) fn deadline_exceeded() -> Box<Error> {
    let kind = ErrorType::Custom(DEADLINE_EXCEEDED);
    Error::explain(kind, "the attempt took too long").into_up()
}

pub(super) fn is_downstream(error: &Error) -> bool {
    *error.esource() == ErrorSource::Downstream
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::future::{pending, ready};
    use std::pin::pin;

    const LONG: Duration = Duration::from_secs(3600);
    const SHORT: Duration = Duration::from_millis(5);

    #[tokio::test]
    async fn a_ready_future_needs_no_limit_and_a_pending_one_has_it() {
        assert_eq!(within(Duration::ZERO, pin!(ready(7))).await, Some(7));
        assert_eq!(within(None, pin!(ready(7))).await, Some(7));
        assert_eq!(within(SHORT, pin!(pending::<u8>())).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_is_ready_too_late_does_not_count() {
        let now = TokioInstant::now();
        for (deadline, in_time) in [(None, true), (Some(now + LONG), true), (Some(now), false)] {
            let done = before(deadline, pin!(ready(Ok(7)))).await;
            assert_eq!(done.is_ok_and(|done| done == 7), in_time, "{deadline:?}");
        }
        assert!(
            before(Some(now + SHORT), pin!(pending::<Result<u8>>()))
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn a_timer_fires_for_the_moment_it_was_set_to_last() {
        let mut timer = ReusableTimer::default();
        let began = Instant::now();
        assert!(timer.until(began + LONG).now_or_never().is_none());
        timer.until(began + SHORT).await;
        assert!(began.elapsed() >= SHORT && began.elapsed() < LONG);
        // It has fired, and is set to a later moment.
        assert!(timer.until(began + LONG).now_or_never().is_none());
        timer.until(began).await;
    }
}
