//! May this request go on? What its key has left of its spending cap.

use std::time::Duration;

use jiff::Timestamp;

use super::limits::{ASK_AGAIN, again_after};
use crate::model::{Fault, FaultKind, Money};
use crate::runtime::{Cap, Hold, Key, Short, ends};

/// Holds back the most that a request may cost; nothing where its key has no cap.
pub fn reserve(key: &Key, most: Money, now: Timestamp) -> Result<Option<Hold>, Fault> {
    let Some(cap) = key.cap else {
        return Ok(None);
    };
    let held = key.account.hold(most, cap, now);
    held.map(Some)
        .map_err(|short| refused(&key.name, cap, short, most, now))
}

fn refused(key: &str, cap: Cap, short: Short, most: Money, now: Timestamp) -> Fault {
    let Short { left, held } = short;
    let amount = cap.amount;
    if left >= most && !held.is_zero() {
        // Requests seldom cost what is held for them: soon there may be enough.
        let message = format!(
            "the API key `{key}` has {left} left of its spending cap of {amount}, but {held} of it is held for \
             requests in flight and this one may cost {most}; try again"
        );
        return again_after(Fault::new(FaultKind::RateLimited, message), ASK_AGAIN);
    }
    let end = ends(cap.reset, now);
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
    let mut fault = Fault::new(FaultKind::OverQuota, message);
    fault.retry_after = end.map(|end| until(end, now));
    fault
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

    fn told(reset: Reset, left: &str, held: &str) -> (FaultKind, String, Option<Duration>) {
        let cap = Cap {
            amount: money("25.00"),
            reset,
        };
        let short = Short {
            left: money(left),
            held: money(held),
        };
        let now = "2026-11-30T23:00:00Z".parse().expect("a time");
        let fault = refused("dev", cap, short, money("0.04"), now);
        assert_eq!(fault.status, 429);
        (fault.kind, fault.message, fault.retry_after)
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
            let expected = (FaultKind::OverQuota, format!("{reached}{when}"), wait);
            assert_eq!(told(reset, "0", "0"), expected);
        }
        let (kind, message, wait) = told(Reset::Never, "0.01", "0.01");
        assert_eq!((kind, wait), (FaultKind::OverQuota, None));
        assert!(
            message.contains("0.01 left") && message.contains("may cost 0.04"),
            "{message}"
        );
    }

    #[test]
    fn money_that_others_hold_may_come_free() {
        let (kind, message, wait) = told(Reset::Monthly, "1", "0.99");
        assert_eq!((kind, wait), (FaultKind::RateLimited, Some(ASK_AGAIN)));
        assert!(message.contains("0.99 of it is held"), "{message}");
    }
}
