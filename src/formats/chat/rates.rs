//! The headers that tell a caller what it may still ask for; the responses format has the same.

use std::fmt;
use std::time::Duration;

use http::HeaderName;

use crate::formats::Fields;
use crate::model::{Allowance, Rate};

const REQUESTS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];
const TOKENS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

pub fn headers(allowance: &Allowance, fields: &mut Fields) {
    let mut one = |rate: Option<Rate>, names: [HeaderName; 3]| {
        let Some(rate) = rate else { return };
        let [limit, remaining, reset] = names;
        fields.say(limit, rate.limit);
        fields.say(remaining, rate.remaining);
        fields.say(reset, Span(rate.reset));
    };
    one(allowance.requests, REQUESTS);
    one(allowance.tokens, TOKENS);
}

/// `20ms`, `1.5s`, `6m0s`: the way clients of this format read it.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_millis();
        match milliseconds {
            0..1000 => write!(out, "{milliseconds}ms"),
            1000..60_000 => write!(out, "{}s", milliseconds as f64 / 1000.0),
            _ => {
                let seconds = milliseconds.div_ceil(1000);
                write!(out, "{}m{}s", seconds / 60, seconds % 60)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn spans_are_short_and_whole() {
        let cases = [
            (0, "0ms"),
            (20, "20ms"),
            (1500, "1.5s"),
            (59_999, "59.999s"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(Span(Duration::from_millis(milliseconds)).to_string(), text);
        }
        assert_eq!(Span(Duration::from_secs(360)).to_string(), "6m0s");
        assert_eq!(Span(Duration::from_millis(60_001)).to_string(), "1m1s");
    }

    fn said(allowance: &Allowance) -> HeaderMap {
        let (mut fields, mut headers) = (Fields::default(), HeaderMap::new());
        super::headers(allowance, &mut fields);
        fields
            .put_into(&mut headers)
            .expect("values that may be sent");
        headers
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
        let headers = said(&allowance);
        assert_eq!(headers["x-ratelimit-limit-requests"], "60");
        assert_eq!(headers["x-ratelimit-remaining-requests"], "59");
        assert_eq!(headers["x-ratelimit-reset-requests"], "1s");
        assert_eq!(headers.len(), 3);
        assert!(said(&Allowance::default()).is_empty());
    }
}
