//! The headers that tell a caller what it may still ask for; the responses format has the same.

use std::time::Duration;

use crate::model::{Allowance, Rate};

pub fn headers(allowance: &Allowance) -> Vec<(&'static str, String)> {
    let requests = [
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
    ];
    let tokens = [
        "x-ratelimit-limit-tokens",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
    ];
    let both = [(allowance.requests, requests), (allowance.tokens, tokens)];
    let given = both
        .into_iter()
        .filter_map(|(rate, names)| Some((rate?, names)));
    given.flat_map(|(rate, names)| one(rate, names)).collect()
}

fn one(rate: Rate, names: [&'static str; 3]) -> [(&'static str, String); 3] {
    let [limit, remaining, reset] = names;
    [
        (limit, rate.limit.to_string()),
        (remaining, rate.remaining.to_string()),
        (reset, span(rate.reset)),
    ]
}

/// `20ms`, `1.5s`, `6m0s`: the way clients of this format read it.
fn span(time: Duration) -> String {
    let milliseconds = time.as_millis();
    match milliseconds {
        0..1000 => format!("{milliseconds}ms"),
        1000..60_000 => format!("{}s", milliseconds as f64 / 1000.0),
        _ => {
            let seconds = milliseconds.div_ceil(1000);
            format!("{}m{}s", seconds / 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short_and_whole() {
        let cases = [
            (0, "0ms"),
            (20, "20ms"),
            (1500, "1.5s"),
            (59_999, "59.999s"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(span(Duration::from_millis(milliseconds)), text);
        }
        assert_eq!(span(Duration::from_secs(360)), "6m0s");
        assert_eq!(span(Duration::from_millis(60_001)), "1m1s");
    }

    #[test]
    fn only_what_is_limited_is_named() {
        let rate = Rate {
            limit: 60,
            remaining: 59,
            reset: Duration::from_secs(1),
        };
        let allowance = Allowance {
            requests: Some(rate),
            tokens: None,
        };
        let expected = [
            ("x-ratelimit-limit-requests", "60".to_owned()),
            ("x-ratelimit-remaining-requests", "59".to_owned()),
            ("x-ratelimit-reset-requests", "1s".to_owned()),
        ];
        assert_eq!(headers(&allowance), expected);
        assert!(headers(&Allowance::default()).is_empty());
    }
}
