//! The headers that tell a caller what it may still ask for, and when all of it is there again.

use jiff::{SignedDuration, Timestamp};

use crate::model::{Allowance, Rate};

pub fn headers(allowance: &Allowance, now: Timestamp) -> Vec<(&'static str, String)> {
    let requests = [
        "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ];
    let tokens = [
        "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    ];
    let both = [(allowance.requests, requests), (allowance.tokens, tokens)];
    let given = both
        .into_iter()
        .filter_map(|(rate, names)| Some((rate?, names)));
    given
        .flat_map(|(rate, names)| one(rate, names, now))
        .collect()
}

fn one(rate: Rate, names: [&'static str; 3], now: Timestamp) -> [(&'static str, String); 3] {
    let [limit, remaining, reset] = names;
    let wait = SignedDuration::from_secs(rate.reset.as_secs_f64().ceil() as i64);
    let full = now.checked_add(wait).unwrap_or(now);
    [
        (limit, rate.limit.to_string()),
        (remaining, rate.remaining.to_string()),
        (reset, full.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_reset_is_a_time_of_day() {
        let rate = Rate {
            limit: 200_000,
            remaining: 150_000,
            reset: Duration::from_millis(15_001),
        };
        let allowance = Allowance {
            requests: None,
            tokens: Some(rate),
        };
        let now = "2026-10-21T07:28:00Z".parse().expect("a timestamp");
        let expected = [
            ("anthropic-ratelimit-tokens-limit", "200000".to_owned()),
            ("anthropic-ratelimit-tokens-remaining", "150000".to_owned()),
            (
                "anthropic-ratelimit-tokens-reset",
                "2026-10-21T07:28:16Z".to_owned(),
            ),
        ];
        assert_eq!(headers(&allowance, now), expected);
    }
}
