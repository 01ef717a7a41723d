//! What the queries of requests tell of the store: whose run now, and whether it is away.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::query_shares::QueryShares;

/// After an outage, queries fail at once for so many milliseconds: they would only wait too.
const OUTAGE_PAUSE: i64 = 1000;

/// What is known of the store. All times in milliseconds since 1970.
#[derive(Default)]
pub(super) struct QueryState {
    pub(super) shares: QueryShares,
    /// After an outage, queries fail at once until this time.
    left_alone_until: AtomicI64,
    /// When a query was answered last.
    answered_at: AtomicI64,
    /// Whose query had no answer in time, since one was answered.
    late: Mutex<Option<String>>,
}

impl QueryState {
    pub(super) fn is_left_alone(&self, now: i64) -> bool {
        now < self.left_alone_until.load(Ordering::Relaxed)
    }

    pub(super) fn leave_alone(&self, now: i64) {
        let until = now + OUTAGE_PAUSE;
        self.left_alone_until.store(until, Ordering::Relaxed);
    }

    pub(super) fn note_answer(&self, now: i64) {
        self.answered_at.store(now, Ordering::Relaxed);
        let late = self.late.lock();
        *late.unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Tells whether a query that was late since `started` shows an outage: nobody was answered meanwhile, and it is
    /// late for more than one key, or for the gateway itself. What one key asks for may only be slow.
    pub(super) fn is_outage(&self, owner: &str, started: i64) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_queries_of_one_key_are_no_outage() {
        let state = QueryState::default();
        assert!(!state.is_outage("slow", 1000));
        assert!(!state.is_outage("slow", 1000));
        assert!(state.is_outage("other", 1000));
        assert!(state.is_outage("", 1000));
        // Somebody was answered while they waited.
        state.note_answer(2000);
        assert!(!state.is_outage("other", 1000));
        assert!(!state.is_outage("", 1000));
        assert!(!state.is_outage("slow", 3000));
        assert!(state.is_outage("other", 3000));
    }

    #[test]
    fn a_store_that_is_away_is_left_alone_for_a_second() {
        let state = QueryState::default();
        assert!(!state.is_left_alone(1000));
        state.leave_alone(1000);
        assert!(state.is_left_alone(1999));
        assert!(!state.is_left_alone(2000));
    }
}
