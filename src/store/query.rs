//! Queries that a request waits for: bounded in time and for each key, and refused at once right after an outage.

use std::time::Duration;

use tokio::time::timeout;

use super::database::{Store, milliseconds_now};
use super::error::StoreError;

const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

impl Store {
    /// Counts the queries of a key as those of a person's account; `None`: as its own.
    pub fn share_queries(&self, key: &str, account: Option<&str>) {
        self.queries.shares.set_account(key, account);
    }

    /// Runs a query of a key, or of the gateway itself if the owner is empty, within the time limit; few of one key, or of
    /// the keys of one person, run at once. Its failure is logged; queries that are refused after an outage are not.
    pub async fn query<T>(
        &self,
        owner: &str,
        query: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let state = &self.queries;
        if state.is_left_alone(milliseconds_now()) {
            return Err(StoreError::Unavailable);
        }
        let account = state.shares.account(owner);
        let owner = account.as_deref().unwrap_or(owner);
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
                state.note_answer(milliseconds_now());
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
            state.leave_alone(milliseconds_now());
        }
        answer
    }
}
