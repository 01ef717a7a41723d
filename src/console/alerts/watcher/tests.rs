//! Which thresholds are told, and when.

use super::*;
use crate::config::Reset;
use crate::model::Money;
use crate::store::AlertSubject;

fn money(text: &str) -> Money {
    Money::parse(text).expect("an amount")
}

/// An alert at 50, 80 and 100 percent of 10, of which something was told.
fn alert(spent: &str, period: &str, fired: (&str, u8)) -> WatchedAlert {
    WatchedAlert {
        id: "a".to_owned(),
        subject: AlertSubject::Key("k".to_owned()),
        account: "ada".to_owned(),
        key: Some("ada/k".to_owned()),
        percents: vec![50, 80, 100],
        cap: money("10"),
        reset: Reset::Monthly,
        spent: money(spent),
        period: period.to_owned(),
        fired: FiredThreshold {
            period: fired.0.to_owned(),
            percent: fired.1,
        },
    }
}

#[test]
fn the_highest_threshold_is_told_once_in_a_period() {
    for (spent, period, fired, expected) in [
        ("4.999999999", "2026-11", ("-", 0), None),
        // To the last digit.
        ("5", "2026-11", ("-", 0), Some((50, true))),
        ("5", "2026-11", ("2026-11", 50), None),
        // It jumps over two.
        ("10", "2026-11", ("2026-11", 50), Some((100, true))),
        ("11", "2026-11", ("2026-11", 100), None),
        // The next period, at its beginning and later.
        ("0", "2026-12", ("2026-11", 100), None),
        ("8.5", "2026-12", ("2026-11", 100), Some((80, true))),
        // The cap was raised: what is no longer reached can be reached again.
        ("6", "2026-11", ("2026-11", 100), Some((50, false))),
        ("1", "2026-11", ("2026-11", 100), Some((0, false))),
        // A clock that is behind tells nothing again.
        ("9", "2026-11", ("2026-12", 50), None),
        // Another kind of period.
        ("9", "2026-11-18", ("2026-11", 80), Some((80, true))),
        ("9", "", ("2026-11", 100), Some((80, true))),
        ("9", "", ("", 80), None),
    ] {
        let step = next_step(&alert(spent, period, fired));
        let found = step.as_ref().map(|step| (step.fired.percent, step.is_told));
        assert_eq!(found, expected, "{spent} in {period:?} after {fired:?}");
        assert!(step.is_none_or(|step| step.fired.period == period));
    }
}
