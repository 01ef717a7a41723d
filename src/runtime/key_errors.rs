//! The errors that the requests of each key had on the present day, at this gateway.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::model::ApiErrorKind;

const DAY: i64 = 24 * 60 * 60;

/// Counts errors by key and kind.
#[derive(Debug, Default)]
pub struct KeyErrors(Mutex<ErrorsOfDay>);

#[derive(Debug, Default)]
struct ErrorsOfDay {
    /// Since 1970, in UTC.
    day: i64,
    by_key: HashMap<Arc<str>, Vec<(ApiErrorKind, u64)>>,
}

impl KeyErrors {
    pub fn count(&self, key: &Arc<str>, kind: ApiErrorKind, now: Timestamp) {
        let mut errors = self.today(now);
        let counts = errors.by_key.entry(key.clone()).or_default();
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }

    /// The errors of a key, by kind.
    pub fn of(&self, key: &str, now: Timestamp) -> Vec<(ApiErrorKind, u64)> {
        let errors = self.today(now);
        errors.by_key.get(key).cloned().unwrap_or_default()
    }

    /// Those of the day before are forgotten.
    fn today(&self, now: Timestamp) -> MutexGuard<'_, ErrorsOfDay> {
        let mut errors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let day = now.as_second().div_euclid(DAY);
        if errors.day != day {
            *errors = ErrorsOfDay {
                day,
                ..ErrorsOfDay::default()
            };
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_a_key_and_a_day() {
        let errors = KeyErrors::default();
        let [today, tomorrow] = [1, 2].map(|day| Timestamp::from_second(day * DAY - 1));
        let (today, tomorrow) = (today.expect("a time"), tomorrow.expect("a time"));
        let key: Arc<str> = "a".into();
        for kind in [
            ApiErrorKind::RateLimited,
            ApiErrorKind::Timeout,
            ApiErrorKind::RateLimited,
        ] {
            errors.count(&key, kind, today);
        }
        let counted = [(ApiErrorKind::RateLimited, 2), (ApiErrorKind::Timeout, 1)];
        assert_eq!(errors.of("a", today), counted);
        assert_eq!(errors.of("b", today), []);
        assert_eq!(errors.of("a", tomorrow), []);
    }
}
