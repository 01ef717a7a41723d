//! Questions that a request waits for: never for long, and not at all right after an outage.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use super::{Store, StoreError, milliseconds_now};

const PATIENCE: Duration = Duration::from_secs(3);

/// After an outage nothing is asked for this long, in milliseconds: others would only wait too.
const LEFT_ALONE: i64 = 1000;

impl Store {
    /// Failures are logged here, those that follow on one are not.
    pub async fn query<T>(
        &self,
        question: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if milliseconds_now() < self.left_alone_until.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable);
        }
        let answer = timeout(PATIENCE, question).await;
        let answer = answer.unwrap_or(Err(StoreError::Unavailable));
        if let Err(error) = &answer {
            log::warn!("store: {error}");
        }
        if answer.as_ref().is_err_and(StoreError::is_outage) {
            let until = milliseconds_now() + LEFT_ALONE;
            self.left_alone_until.store(until, Ordering::Relaxed);
        }
        answer
    }
}
