//! May this request go on? What its key has left of its spending cap.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Leases;
use super::limits::{ASK_AGAIN, again_after};
use crate::model::{ApiError, ApiErrorKind, Money};
use crate::runtime::{
    Cap, CapExceeded, Key, Reservation, ReservationResult, ReserveError, period_end,
};

/// Longer than the store is ever asked for.
const PATIENCE: Duration = Duration::from_millis(2500);

/// What was held back for a request.
pub enum Reserve {
    Ready(Option<Reservation>),
    /// The store is asked whether there is more for this process.
    Pending(PendingReservation),
}

/// A request that waits for an answer of the store.
pub struct PendingReservation {
    key: Arc<Key>,
    cap: Cap,
    most: Money,
    told: oneshot::Receiver<ReservationResult>,
}

/// Holds back the most that a request may cost; nothing where its key has no cap.
pub fn reserve(
    leases: Option<&Leases>,
    key: &Arc<Key>,
    most: Money,
    now: Timestamp,
) -> Result<Reserve, ApiError> {
    let Some(cap) = key.cap else {
        return Ok(Reserve::Ready(None));
    };
    match (key.account.reserve(most, cap, now), leases) {
        (Ok(hold), leases) => {
            if let Some(leases) = leases.filter(|_| hold.leaves_little()) {
                leases.want(key, cap);
            }
            Ok(Reserve::Ready(Some(hold)))
        }
        (Err(ReserveError::NotLeased), Some(leases)) => {
            let told = key.account.wait(most, cap);
            leases.want(key, cap);
            let key = key.clone();
            Ok(Reserve::Pending(PendingReservation {
                key,
                cap,
                most,
                told,
            }))
        }
        (Err(ReserveError::CapExceeded(short)), _) => {
            Err(refused(&key.name, cap, short, most, now))
        }
        (Err(ReserveError::NotLeased), None) => Err(unasked(&key.name, cap)),
    }
}

impl PendingReservation {
    pub async fn wait(self) -> Result<Reservation, ApiError> {
        match timeout(PATIENCE, self.told).await {
            Ok(Ok(told)) => told.map_err(|short| {
                let now = Timestamp::now();
                refused(&self.key.name, self.cap, short, self.most, now)
            }),
            _ => Err(unasked(&self.key.name, self.cap)),
        }
    }
}

fn unasked(key: &str, cap: Cap) -> ApiError {
    let amount = cap.amount;
    let message = format!(
        "what is left of the spending cap of {amount} of the API key `{key}` is shared with other gateways and \
         cannot be asked for now; try again"
    );
    again_after(ApiError::new(ApiErrorKind::RateLimited, message), ASK_AGAIN)
}

fn refused(key: &str, cap: Cap, short: CapExceeded, most: Money, now: Timestamp) -> ApiError {
    let CapExceeded {
        left,
        held,
        elsewhere,
    } = short;
    let amount = cap.amount;
    if left >= most {
        let Some(elsewhere) = elsewhere else {
            return unasked(key, cap);
        };
        // Requests seldom cost what is held for them: soon there may be enough.
        let of_others = match elsewhere.is_zero() {
            true => String::new(),
            false => format!(" and {elsewhere} by other gateways,"),
        };
        let message = format!(
            "the API key `{key}` has {left} left of its spending cap of {amount}, but {held} of it is held for \
             requests in flight{of_others} and this one may cost {most}; try again"
        );
        return again_after(ApiError::new(ApiErrorKind::RateLimited, message), ASK_AGAIN);
    }
    let end = period_end(cap.reset, now);
    let reset = match end {
        Some(end) => format!("it resets at {end}"),
        None => "it does not reset".to_owned(),
    };
    let message = if left.is_zero() {
        format!("the API key `{key}` has reached its spending cap of {amount}; {reset}")
    } else {
        format!(
            "the API key `{key}` has {left} left of its spending cap of {amount}, and this request may cost {most}: \
             ask for a shorter answer; {reset}"
        )
    };
    let mut api_error = ApiError::new(ApiErrorKind::OverQuota, message);
    api_error.retry_after = end.map(|end| until(end, now));
    api_error
}

fn until(end: Timestamp, now: Timestamp) -> Duration {
    let seconds = end.as_second().saturating_sub(now.as_second());
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Reset;

    fn money(text: &str) -> Money {
        Money::parse(text).expect("an amount")
    }

    fn told(
        reset: Reset,
        left: &str,
        held: &str,
        elsewhere: &str,
    ) -> (ApiErrorKind, String, Option<Duration>) {
        let cap = Cap {
            amount: money("25.00"),
            reset,
        };
        let short = CapExceeded {
            left: money(left),
            held: money(held),
            elsewhere: Money::parse(elsewhere),
        };
        let now = "2026-11-30T23:00:00Z".parse().expect("a time");
        let api_error = refused("dev", cap, short, money("0.04"), now);
        assert_eq!(api_error.status, 429);
        (
            api_error.kind,
            api_error.message.clone(),
            api_error.retry_after,
        )
    }

    #[test]
    fn a_key_is_told_what_it_has_left_and_when_there_will_be_more() {
        let hour = Some(Duration::from_secs(3600));
        let reached = "the API key `dev` has reached its spending cap of 25; ";
        for (reset, when, wait) in [
            (Reset::Never, "it does not reset", None),
            (Reset::Daily, "it resets at 2026-12-01T00:00:00Z", hour),
            (Reset::Monthly, "it resets at 2026-12-01T00:00:00Z", hour),
        ] {
            let expected = (ApiErrorKind::OverQuota, format!("{reached}{when}"), wait);
            assert_eq!(told(reset, "0", "0", "0"), expected);
        }
        let (kind, message, wait) = told(Reset::Never, "0.01", "0.01", "0");
        assert_eq!((kind, wait), (ApiErrorKind::OverQuota, None));
        assert!(
            message.contains("0.01 left") && message.contains("may cost 0.04"),
            "{message}"
        );
    }

    #[test]
    fn money_that_others_hold_may_come_free() {
        let (kind, message, wait) = told(Reset::Monthly, "1", "0.99", "0");
        assert_eq!((kind, wait), (ApiErrorKind::RateLimited, Some(ASK_AGAIN)));
        assert!(message.contains("0.99 of it is held"), "{message}");
        assert!(!message.contains("other gateways"), "{message}");
        let (kind, message, wait) = told(Reset::Monthly, "1", "0.5", "0.47");
        assert_eq!((kind, wait), (ApiErrorKind::RateLimited, Some(ASK_AGAIN)));
        let held = "0.5 of it is held for requests in flight and 0.47 by other gateways,";
        assert!(message.contains(held), "{message}");
        let (kind, message, wait) = told(Reset::Monthly, "1", "0", "unknown");
        assert_eq!((kind, wait), (ApiErrorKind::RateLimited, Some(ASK_AGAIN)));
        assert!(message.contains("cannot be asked for now"), "{message}");
        // What is not there need not be asked for.
        let (kind, ..) = told(Reset::Monthly, "0.01", "0", "unknown");
        assert_eq!(kind, ApiErrorKind::OverQuota);
    }
}
