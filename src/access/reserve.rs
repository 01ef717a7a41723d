//! Reserves the maximum cost of a request from the spending cap of its key, and from that of the key's owner.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::errors::{RETRY_SOON, retry_after};
use super::leases::Leases;
use crate::model::{ApiError, ApiErrorKind, Money};
use crate::runtime::{
    CapExceeded, CappedAccount, Key, KeyReservation, Reservation, ReservationResult, ReserveError,
    period_end,
};

/// Longer than any lease request to the store takes.
const LEASE_TIMEOUT: Duration = Duration::from_millis(2500);

/// The outcome of a reservation.
pub enum Reserve {
    Ready(Option<KeyReservation>),
    /// The store is asked for a larger lease.
    Pending(PendingReservation),
}

/// A request that waits for a lease, or for two.
pub struct PendingReservation {
    key: Arc<Key>,
    most: Money,
    own: ReservedPart,
    of_owner: ReservedPart,
}

/// What a request has of one of its caps.
enum ReservedPart {
    /// There is no such cap.
    Uncapped,
    Reserved(Reservation),
    Waiting(oneshot::Receiver<ReservationResult>),
}

/// Reserves the most that a request may cost; nothing where neither its key nor the key's owner has a cap. What one of them has
/// reserved is released when the other has not enough.
pub fn reserve(
    leases: Option<&Leases>,
    key: &Arc<Key>,
    most: Money,
    now: Timestamp,
) -> Result<Reserve, ApiError> {
    if !key.is_capped() {
        return Ok(Reserve::Ready(None));
    }
    let own = reserve_of(leases, key.own_cap(), most, now)?;
    let of_owner = reserve_of(leases, key.owner_cap(), most, now)?;
    let is_waiting = |part: &ReservedPart| matches!(part, ReservedPart::Waiting(_));
    if is_waiting(&own) || is_waiting(&of_owner) {
        return Ok(Reserve::Pending(PendingReservation {
            key: key.clone(),
            most,
            own,
            of_owner,
        }));
    }
    let (own, of_owner) = (own.reserved(), of_owner.reserved());
    let reservation = KeyReservation::new(key.clone(), most, own, of_owner);
    Ok(Reserve::Ready(Some(reservation)))
}

fn reserve_of(
    leases: Option<&Leases>,
    capped: Option<CappedAccount<'_>>,
    most: Money,
    now: Timestamp,
) -> Result<ReservedPart, ApiError> {
    let Some(capped) = capped else {
        return Ok(ReservedPart::Uncapped);
    };
    let CappedAccount { account, cap, .. } = capped;
    match (account.reserve(most, cap, now), leases) {
        (Ok(reservation), leases) => {
            if let Some(leases) = leases.filter(|_| reservation.is_lease_low()) {
                leases.request(capped);
            }
            Ok(ReservedPart::Reserved(reservation))
        }
        (Err(ReserveError::NotLeased), Some(leases)) => {
            let result = account.wait_for_lease(most, cap);
            leases.request(capped);
            Ok(ReservedPart::Waiting(result))
        }
        (Err(ReserveError::CapExceeded(exceeded)), _) => {
            Err(cap_error(capped, exceeded, most, now))
        }
        (Err(ReserveError::NotLeased), None) => Err(store_unreachable(capped)),
    }
}

impl ReservedPart {
    fn reserved(self) -> Option<Reservation> {
        match self {
            ReservedPart::Reserved(reservation) => Some(reservation),
            ReservedPart::Uncapped | ReservedPart::Waiting(_) => None,
        }
    }

    async fn wait(
        self,
        capped: Option<CappedAccount<'_>>,
        most: Money,
        until: Instant,
    ) -> Result<Option<Reservation>, ApiError> {
        let (result, capped) = match (self, capped) {
            (ReservedPart::Waiting(result), Some(capped)) => (result, capped),
            (part, _) => return Ok(part.reserved()),
        };
        match timeout_at(until, result).await {
            Ok(Ok(Ok(reservation))) => Ok(Some(reservation)),
            Ok(Ok(Err(exceeded))) => Err(cap_error(capped, exceeded, most, Timestamp::now())),
            _ => Err(store_unreachable(capped)),
        }
    }
}

impl PendingReservation {
    pub async fn wait(self) -> Result<KeyReservation, ApiError> {
        let PendingReservation {
            key,
            most,
            own,
            of_owner,
        } = self;
        let until = Instant::now() + LEASE_TIMEOUT;
        let own = own.wait(key.own_cap(), most, until).await?;
        let of_owner = of_owner.wait(key.owner_cap(), most, until).await?;
        Ok(KeyReservation::new(key, most, own, of_owner))
    }
}

fn store_unreachable(capped: CappedAccount<'_>) -> ApiError {
    let amount = capped.cap.amount;
    let message = format!(
        "what is left of the spending cap of {amount} of {capped} is shared with other gateways and cannot be asked \
         for now; try again"
    );
    retry_after(
        ApiError::new(ApiErrorKind::RateLimited, message),
        RETRY_SOON,
    )
}

/// What a request may do that could cost more than is left of a cap.
pub const SHORTER_ANSWER: &str = "ask for a shorter answer";

fn cap_error(
    capped: CappedAccount<'_>,
    exceeded: CapExceeded,
    most: Money,
    now: Timestamp,
) -> ApiError {
    let CapExceeded {
        left,
        reserved,
        leased_elsewhere,
    } = exceeded;
    let cap = capped.cap;
    let amount = cap.amount;
    if left >= most {
        let Some(leased_elsewhere) = leased_elsewhere else {
            return store_unreachable(capped);
        };
        // Requests mostly cost less than is reserved for them: soon there may be enough.
        let held = match (reserved.is_zero(), leased_elsewhere.is_zero()) {
            (false, true) => format!("{reserved} of it is held for requests in flight"),
            (false, false) => format!(
                "{reserved} of it is held for requests in flight and {leased_elsewhere} by other gateways,"
            ),
            (true, false) => format!("{leased_elsewhere} of it is held by other gateways"),
            (true, true) => return store_unreachable(capped),
        };
        let message = format!(
            "{capped} has {left} left of its spending cap of {amount}, but {held} and this request may cost {most}; \
             try again"
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
        format!("{capped} has reached its spending cap of {amount}; {reset}")
    } else {
        format!(
            "{capped} has {left} left of its spending cap of {amount}, and this request may cost {most}: \
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
    use crate::model::CapKind;
    use crate::runtime::{Account, Cap};

    fn money(text: &str) -> Money {
        Money::parse(text).expect("an amount")
    }

    fn cap_error_of(
        reset: Reset,
        left: &str,
        held: &str,
        elsewhere: &str,
    ) -> (ApiErrorKind, String, Option<Duration>) {
        cap_error_for(CapKind::Key, reset, left, held, elsewhere)
    }

    fn cap_error_for(
        kind: CapKind,
        reset: Reset,
        left: &str,
        held: &str,
        elsewhere: &str,
    ) -> (ApiErrorKind, String, Option<Duration>) {
        let cap = Cap {
            amount: money("25.00"),
            reset,
        };
        let capped = CappedAccount {
            kind,
            id: &"id".into(),
            name: "dev",
            cap,
            account: &Arc::<Account>::default(),
        };
        let exceeded = CapExceeded {
            left: money(left),
            reserved: money(held),
            leased_elsewhere: Money::parse(elsewhere),
        };
        let now = "2026-11-30T23:00:00Z".parse().expect("a time");
        let api_error = cap_error(capped, exceeded, money("0.04"), now);
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

    #[test]
    fn the_cap_of_the_account_is_named() {
        let (kind, message, _) = cap_error_for(CapKind::Account, Reset::Never, "0", "0", "0");
        assert_eq!(kind, ApiErrorKind::OverQuota);
        let reached = "the account `dev` of this API key has reached its spending cap of 25; it does not reset";
        assert_eq!(message, reached);
    }
}
