//! The periods of spending caps, by the calendar of UTC.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::config::Reset;

/// The start of the period that includes `now`; `None`: the cap does not reset.
pub fn period_start(reset: Reset, now: Timestamp) -> Option<Timestamp> {
    start(first_day(reset, now)?)
}

/// The end of the period that includes `now`; `None`: the cap does not reset.
pub fn period_end(reset: Reset, now: Timestamp) -> Option<Timestamp> {
    let length = match reset {
        Reset::Never => return None,
        Reset::Daily => 1.day(),
        Reset::Monthly => 1.month(),
    };
    start(first_day(reset, now)?.checked_add(length).ok()?)
}

fn first_day(reset: Reset, now: Timestamp) -> Option<Date> {
    let today = TimeZone::UTC.to_datetime(now).date();
    match reset {
        Reset::Never => None,
        Reset::Daily => Some(today),
        Reset::Monthly => Some(today.first_of_month()),
    }
}

fn start(day: Date) -> Option<Timestamp> {
    let midnight = day.to_zoned(TimeZone::UTC).ok()?;
    Some(midnight.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn days_and_months_are_those_of_the_calendar() {
        for (reset, now, begin, end) in [
            (
                Reset::Daily,
                "2026-11-15T13:37:00Z",
                "2026-11-15",
                "2026-11-16",
            ),
            (
                Reset::Daily,
                "2026-11-15T00:00:00Z",
                "2026-11-15",
                "2026-11-16",
            ),
            (
                Reset::Daily,
                "2026-12-31T23:59:59.999Z",
                "2026-12-31",
                "2027-01-01",
            ),
            // It is the day before in UTC.
            (
                Reset::Daily,
                "2026-03-01T01:00:00+02:00",
                "2026-02-28",
                "2026-03-01",
            ),
            (
                Reset::Monthly,
                "2026-11-15T13:37:00Z",
                "2026-11-01",
                "2026-12-01",
            ),
            (
                Reset::Monthly,
                "2028-02-29T12:00:00Z",
                "2028-02-01",
                "2028-03-01",
            ),
            (
                Reset::Monthly,
                "2026-12-31T23:59:59Z",
                "2026-12-01",
                "2027-01-01",
            ),
            (
                Reset::Monthly,
                "2027-01-01T00:00:00Z",
                "2027-01-01",
                "2027-02-01",
            ),
        ] {
            let midnight = |day: &str| Some(at(&format!("{day}T00:00:00Z")));
            assert_eq!(period_start(reset, at(now)), midnight(begin), "{now}");
            assert_eq!(period_end(reset, at(now)), midnight(end), "{now}");
        }
        let now = at("2026-11-15T13:37:00Z");
        assert_eq!(
            (
                period_start(Reset::Never, now),
                period_end(Reset::Never, now)
            ),
            (None, None)
        );
    }

    #[test]
    fn the_end_of_time_has_no_next_period() {
        assert_eq!(period_end(Reset::Daily, Timestamp::MAX), None);
        assert!(
            period_start(Reset::Monthly, Timestamp::MIN)
                .is_none_or(|start| start <= Timestamp::MIN)
        );
    }
}
