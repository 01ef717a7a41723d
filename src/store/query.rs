//! Queries that a request waits for: bounded in time and for each key, and refused at once right after an outage.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::query_shares::QueryShares;

const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

/// After an outage, queries fail at once for so many milliseconds: they would only wait too.
const OUTAGE_PAUSE: i64 = 1000;

/// What the queries of requests tell of the store.
#[derive(Default)]
pub(super) struct QueryState {
    shares: QueryShares,
    /// After an outage, queries fail at once until this time. All times in milliseconds since 1970.
    left_alone_until: AtomicI64,
    /// When a query was answered last.
    answered_at: AtomicI64,
    /// Whose query had no answer in time, since one was answered.
    late: Mutex<Option<String>>,
}

impl QueryState {
    fn note_answer(&self) {
        self.answered_at
            .store(milliseconds_now(), Ordering::Relaxed);
        let late = self.late.lock();
        *late.unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Tells whether a query that was late since `started` shows an outage: nobody was answered meanwhile, and it is
    /// late for more than one key, or for the gateway itself. What one key asks for may only be slow.
    fn is_outage(&self, owner: &str, started: i64) -> bool {
        if self.answered_at.load(Ordering::Relaxed) >= started {
            return false;
        }
        let late = self.late.lock();
        let before = late
            .unwrap_or_else(PoisonError::into_inner)
            .replace(owner.to_owned());
        owner.is_empty() || before.is_some_and(|before| before != owner)
    }
}

impl Store {
    /// Runs a query of a key, or of the gateway itself if the owner is empty, within the time limit; few of one key run
    /// at once. Its failure is logged; queries that are refused after an outage are not.
    pub async fn query<T>(
        &self,
        owner: &str,
        query: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let state = &self.queries;
        if milliseconds_now() < state.left_alone_until.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable);
        }
        let mut started = None;
        let bounded = async {
            let _share = match owner.is_empty() {
                true => None,
                false => Some(state.shares.acquire(owner).await),
            };
            started = Some(milliseconds_now());
            query.await
        };
        let answer = timeout(QUERY_TIMEOUT, bounded).await;
        let answer = answer.unwrap_or(Err(StoreError::Unavailable));
        let error = match &answer {
            Ok(_) => {
                state.note_answer();
                return answer;
            }
            Err(error) => error,
        };
        log::warn!("store: {error}");
        let is_outage = match (started, error.is_late()) {
            (Some(started), true) => state.is_outage(owner, started),
            // It has waited for other queries of its key.
            (None, _) => false,
            (Some(_), false) => error.is_outage(),
        };
        if is_outage {
            let until = milliseconds_now() + OUTAGE_PAUSE;
            state.left_alone_until.store(until, Ordering::Relaxed);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_queries_of_one_key_are_no_outage() {
        let state = QueryState::default();
        let started = milliseconds_now() - 3000;
        assert!(!state.is_outage("slow", started));
        assert!(!state.is_outage("slow", started));
        assert!(state.is_outage("other", started));
        assert!(state.is_outage("", started));
        // Somebody was answered while they waited.
        state.note_answer();
        assert!(!state.is_outage("other", started));
        assert!(!state.is_outage("", started));
        assert!(!state.is_outage("slow", milliseconds_now() + 1));
    }
}
