//! Waits for a condition instead of a fixed time.

use std::time::{Duration, Instant};

/// Long enough that only a hang reaches it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Repeats a probe until it returns something.
pub async fn wait_for<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < until, "timeout while waiting for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Repeats a check until it holds.
pub async fn wait_until(what: &str, holds: impl AsyncFn() -> bool) {
    let since = Instant::now();
    while !holds().await {
        assert!(
            since.elapsed() < TIMEOUT,
            "timeout while waiting until {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
