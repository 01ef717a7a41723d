//! Queries that a request waits for: bounded in time, and refused at once right after an outage.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use super::database::{Store, milliseconds_now};
use super::error::StoreError;

const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

/// After an outage, queries fail at once for so many milliseconds: they would only wait too.
const OUTAGE_PAUSE: i64 = 1000;

impl Store {
    /// Runs a query within the time limit. Its failure is logged; queries that are refused after it are not.
    pub async fn query<T>(
        &self,
        query: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if milliseconds_now() < self.left_alone_until.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable);
        }
        let answer = timeout(QUERY_TIMEOUT, query).await;
        let answer = answer.unwrap_or(Err(StoreError::Unavailable));
        if let Err(error) = &answer {
            log::warn!("store: {error}");
        }
        if answer.as_ref().is_err_and(StoreError::is_outage) {
            let until = milliseconds_now() + OUTAGE_PAUSE;
            self.left_alone_until.store(until, Ordering::Relaxed);
        }
        answer
    }
}
