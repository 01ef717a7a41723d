//! Waiting, but not for ever.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use pingora_timeout::timeout;
use tokio::time::{Sleep, sleep_until};

/// `None`: it took too long. What is there at once, as most is, needs no timer. It is handed in
/// pinned, because a future that is handed over is held twice.
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

/// A timer for one limit after the other. It is set again only when it rings, or would ring too
/// late: a timer for every limit costs more than most of what is waited for.
#[derive(Default)]
pub(super) struct Bell(Option<Pin<Box<Sleep>>>);

impl Bell {
    /// Comes back when this moment has passed.
    pub(super) async fn past(&mut self, moment: Instant) {
        let due = moment.into();
        let bell = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            if bell.deadline() > due {
                bell.as_mut().reset(due);
            }
            bell.as_mut().await;
            if Instant::now() >= moment {
                return;
            }
            bell.as_mut().reset(due);
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
    async fn what_is_there_has_no_limit_and_what_never_comes_has() {
        assert_eq!(within(Duration::ZERO, pin!(ready(7))).await, Some(7));
        assert_eq!(within(None, pin!(ready(7))).await, Some(7));
        assert_eq!(within(SHORT, pin!(pending::<u8>())).await, None);
    }

    #[tokio::test]
    async fn a_bell_rings_for_the_moment_it_was_asked_for_last() {
        let mut bell = Bell::default();
        let began = Instant::now();
        assert!(bell.past(began + LONG).now_or_never().is_none());
        bell.past(began + SHORT).await;
        assert!(began.elapsed() >= SHORT && began.elapsed() < LONG);
        // It has rung, and is asked for later.
        assert!(bell.past(began + LONG).now_or_never().is_none());
        bell.past(began).await;
    }
}
