//! Times on the command line: a date, a full time, or a duration from now.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Whether a duration counts into the future or the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Future,
    Past,
}

/// `30d`, `2026-12-31` (its first moment in UTC) or `2026-12-31T18:00:00Z`.
pub fn parse_time(text: &str, direction: Direction, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(span) = humantime::parse_duration(text) {
        return shifted(now, span, direction).ok_or_else(|| format!("{text:?} is too far away"));
    }
    // A full time first: as a date its rest would be ignored.
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let day = text.parse::<Date>().ok();
    let start = day.and_then(|day| day.to_zoned(TimeZone::UTC).ok());
    start
        .map(|start| start.timestamp())
        .ok_or_else(|| format!("{text:?} is no span such as 30d, and no date such as 2026-12-31"))
}

fn shifted(now: Timestamp, span: Duration, direction: Direction) -> Option<Timestamp> {
    match direction {
        Direction::Future => now.checked_add(span).ok(),
        Direction::Past => now.checked_sub(span).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_dates_and_times_are_parsed() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        for (text, direction, expected) in [
            ("30d", Direction::Future, "2026-12-15T12:00:00Z"),
            ("7d", Direction::Past, "2026-11-08T12:00:00Z"),
            ("1h 30m", Direction::Future, "2026-11-15T13:30:00Z"),
            ("2026-12-31", Direction::Future, "2026-12-31T00:00:00Z"),
            ("2026-12-31", Direction::Past, "2026-12-31T00:00:00Z"),
            (
                "2026-12-31T18:00:00+02:00",
                Direction::Future,
                "2026-12-31T16:00:00Z",
            ),
        ] {
            let expected = expected.parse().expect("a time");
            assert_eq!(parse_time(text, direction, now), Ok(expected), "{text}");
        }
        for wrong in ["", "soon", "30", "2026-13-01", "-7d", "999999999y"] {
            assert!(
                parse_time(wrong, Direction::Future, now).is_err(),
                "{wrong}"
            );
        }
    }
}
