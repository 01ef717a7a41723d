//! Moments on the command line: a date, a full time, or a span from now.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Which side of now a span lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Ahead,
    Back,
}

/// `30d`, `2026-12-31` (its first moment in UTC) or `2026-12-31T18:00:00Z`.
pub fn moment(text: &str, side: Side, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(span) = humantime::parse_duration(text) {
        return shifted(now, span, side).ok_or_else(|| format!("{text:?} is too far away"));
    }
    // A time first: a date would be read of it, and the rest left out.
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let day = text.parse::<Date>().ok();
    let start = day.and_then(|day| day.to_zoned(TimeZone::UTC).ok());
    start
        .map(|start| start.timestamp())
        .ok_or_else(|| format!("{text:?} is no span such as 30d, and no date such as 2026-12-31"))
}

fn shifted(now: Timestamp, span: Duration, side: Side) -> Option<Timestamp> {
    match side {
        Side::Ahead => now.checked_add(span).ok(),
        Side::Back => now.checked_sub(span).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_dates_and_times_are_moments() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        for (text, side, expected) in [
            ("30d", Side::Ahead, "2026-12-15T12:00:00Z"),
            ("7d", Side::Back, "2026-11-08T12:00:00Z"),
            ("1h 30m", Side::Ahead, "2026-11-15T13:30:00Z"),
            ("2026-12-31", Side::Ahead, "2026-12-31T00:00:00Z"),
            ("2026-12-31", Side::Back, "2026-12-31T00:00:00Z"),
            (
                "2026-12-31T18:00:00+02:00",
                Side::Ahead,
                "2026-12-31T16:00:00Z",
            ),
        ] {
            let expected = expected.parse().expect("a time");
            assert_eq!(moment(text, side, now), Ok(expected), "{text}");
        }
        for wrong in ["", "soon", "30", "2026-13-01", "-7d", "999999999y"] {
            assert!(moment(wrong, Side::Ahead, now).is_err(), "{wrong}");
        }
    }
}
