//! Reserves the maximum cost of a request from the spending cap of its key.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::errors::{RETRY_SOON, retry_after};
use super::leases::Leases;
use crate::model::{ApiError, ApiErrorKind, Money};
use crate::runtime::{
    Cap, CapExceeded, Key, Reservation, ReservationResult, ReserveError, period_end,
};

/// Longer than any lease request to the store takes.
const LEASE_TIMEOUT: Duration = Duration::from_millis(2500);

/// The outcome of a reservation.
pub enum Reserve {
    Ready(Option<Reservation>),
    /// The store is asked for a larger lease.
    Pending(PendingReservation),
}

/// A request that waits for a lease.
pub struct PendingReservation {
    key: Arc<Key>,
    cap: Cap,
    most: Money,
    result: oneshot::Receiver<ReservationResult>,
}

/// Reserves the most that a request may cost; nothing where its key has no cap.
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
        (Ok(reservation), leases) => {
            if let Some(leases) = leases.filter(|_| reservation.is_lease_low()) {
                leases.request(key, cap);
            }
            Ok(Reserve::Ready(Some(reservation)))
        }
        (Err(ReserveError::NotLeased), Some(leases)) => {
            let result = key.account.wait_for_lease(most, cap);
            leases.request(key, cap);
            let key = key.clone();
            Ok(Reserve::Pending(PendingReservation {
                key,
                cap,
                most,
                result,
            }))
        }
        (Err(ReserveError::CapExceeded(exceeded)), _) => {
            Err(cap_error(&key.name, cap, exceeded, most, now))
        }
        (Err(ReserveError::NotLeased), None) => Err(store_unreachable(&key.name, cap)),
    }
}

impl PendingReservation {
    pub async fn wait(self) -> Result<Reservation, ApiError> {
        match timeout(LEASE_TIMEOUT, self.result).await {
            Ok(Ok(result)) => result.map_err(|exceeded| {
                let now = Timestamp::now();
                cap_error(&self.key.name, self.cap, exceeded, self.most, now)
            }),
            _ => Err(store_unreachable(&self.key.name, self.cap)),
        }
    }
}

fn store_unreachable(key: &str, cap: Cap) -> ApiError {
    let amount = cap.amount;
    let message = format!(
        "what is left of the spending cap of {amount} of the API key `{key}` is shared with other gateways and \
         cannot be asked for now; try again"
    );
    retry_after(
        ApiError::new(ApiErrorKind::RateLimited, message),
        RETRY_SOON,
    )
}

/// What a request may do that could cost more than is left of a cap.
pub const SHORTER_ANSWER: &str = "ask for a shorter answer";

fn cap_error(key: &str, cap: Cap, exceeded: CapExceeded, most: Money, now: Timestamp) -> ApiError {
    let CapExceeded {
        left,
        reserved,
        leased_elsewhere,
    } = exceeded;
    let amount = cap.amount;
    if left >= most {
        let Some(leased_elsewhere) = leased_elsewhere else {
            return store_unreachable(key, cap);
        };
        // Requests mostly cost less than is reserved for them: soon there may be enough.
        let held = match (reserved.is_zero(), leased_elsewhere.is_zero()) {
            (false, true) => format!("{reserved} of it is held for requests in flight"),
            (false, false) => format!(
                "{reserved} of it is held for requests in flight and {leased_elsewhere} by other gateways,"
            ),
            (true, false) => format!("{leased_elsewhere} of it is held by other gateways"),
            (true, true) => return store_unreachable(key, cap),
        };
        let message = format!(
            "the API key `{key}` has {left} left of its spending cap of {amount}, but {held} and this request may \
             cost {most}; try again"
        );
        return retry_after(
            ApiError::new(ApiErrorKind::RateLimited, message),
            RETRY_SOON,
        );
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
             {SHORTER_ANSWER}; {reset}"
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

    fn cap_error_of(
        reset: Reset,
        left: &str,
        held: &str,
        elsewhere: &str,
    ) -> (ApiErrorKind, String, Option<Duration>) {
        let cap = Cap {
            amount: money("25.00"),
            reset,
        };
        let exceeded = CapExceeded {
            left: money(left),
            reserved: money(held),
            leased_elsewhere: Money::parse(elsewhere),
        };
        let now = "2026-11-30T23:00:00Z".parse().expect("a time");
        let api_error = cap_error("dev", cap, exceeded, money("0.04"), now);
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
            assert_eq!(cap_error_of(reset, "0", "0", "0"), expected);
        }
        let (kind, message, wait) = cap_error_of(Reset::Never, "0.01", "0.01", "0");
        assert_eq!((kind, wait), (ApiErrorKind::OverQuota, None));
        assert!(
            message.contains("0.01 left") && message.contains("may cost 0.04"),
            "{message}"
        );
    }

    #[test]
    fn money_that_others_hold_may_come_free() {
        let (kind, message, wait) = cap_error_of(Reset::Monthly, "1", "0.99", "0");
        assert_eq!((kind, wait), (ApiErrorKind::RateLimited, Some(RETRY_SOON)));
        assert!(message.contains("0.99 of it is held"), "{message}");
        assert!(!message.contains("other gateways"), "{message}");
        let (kind, message, wait) = cap_error_of(Reset::Monthly, "1", "0.5", "0.47");
        assert_eq!((kind, wait), (ApiErrorKind::RateLimited, Some(RETRY_SOON)));
        let held = "0.5 of it is held for requests in flight and 0.47 by other gateways,";
        assert!(message.contains(held), "{message}");
        let (_, message, _) = cap_error_of(Reset::Monthly, "1", "0", "0.97");
        let held = "but 0.97 of it is held by other gateways and this request may cost 0.04";
        assert!(message.contains(held), "{message}");
        let (_, message, _) = cap_error_of(Reset::Monthly, "1", "0", "0");
        assert!(message.contains("cannot be asked for now"), "{message}");
        let (kind, message, wait) = cap_error_of(Reset::Monthly, "1", "0", "unknown");
        assert_eq!((kind, wait), (ApiErrorKind::RateLimited, Some(RETRY_SOON)));
        assert!(message.contains("cannot be asked for now"), "{message}");
        // What is not there need not be asked for.
        let (kind, ..) = cap_error_of(Reset::Monthly, "0.01", "0", "unknown");
        assert_eq!(kind, ApiErrorKind::OverQuota);
    }
}
