//! The `x-ratelimit-…` response headers, which the responses format shares.

use std::time::Duration;

use http::HeaderName;

use crate::formats::HeaderFields;
use crate::model::{RateLimit, RateLimitStatus};

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

/// Encodes the limits of a client; those that do not exist have no headers.
pub(in crate::formats) fn encode_rate_limit_headers(
    allowance: &RateLimitStatus,
    fields: &mut HeaderFields,
) {
    let mut encode = |rate: Option<RateLimit>, names: [HeaderName; 3]| {
        let Some(rate) = rate else { return };
        let [limit, remaining, reset] = names;
        fields.insert_number(limit, rate.limit, "");
        fields.insert_number(remaining, rate.remaining, "");
        encode_duration(rate.reset, reset, fields);
    };
    encode(allowance.requests, REQUESTS);
    encode(allowance.tokens, TOKENS);
}

/// Encodes a duration as the vendor does: `20ms`, `1.5s`, `6m0s`.
fn encode_duration(duration: Duration, name: HeaderName, fields: &mut HeaderFields) {
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match milliseconds {
        0..1000 => fields.insert_number(name, milliseconds, "ms"),
        1000..60_000 => fields.insert(name, format_args!("{}s", milliseconds as f64 / 1000.0)),
        _ => {
            let seconds = milliseconds.div_ceil(1000);
            let (minutes, seconds) = (seconds / 60, seconds % 60);
            fields.insert(name, format_args!("{minutes}m{seconds}s"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn durations_have_the_units_of_the_vendor() {
        let cases = [
            (0, "0ms"),
            (20, "20ms"),
            (1500, "1.5s"),
            (59_999, "59.999s"),
            (60_001, "1m1s"),
            (360_000, "6m0s"),
        ];
        for (milliseconds, text) in cases {
            let rate = RateLimit {
                limit: 60,
                remaining: 0,
                reset: Duration::from_millis(milliseconds),
            };
            let headers = encoded(&RateLimitStatus {
                requests: None,
                tokens: Some(rate),
            });
            assert_eq!(headers["x-ratelimit-reset-tokens"], text);
        }
    }

    fn encoded(allowance: &RateLimitStatus) -> HeaderMap {
        let (mut fields, mut headers) = (HeaderFields::default(), HeaderMap::new());
        super::encode_rate_limit_headers(allowance, &mut fields);
        fields
            .insert_into(&mut headers)
            .expect("values that may be sent");
        headers
    }

    #[test]
    fn only_existing_limits_have_headers() {
        let rate = RateLimit {
            limit: 60,
            remaining: 59,
            reset: Duration::from_secs(1),
        };
        let allowance = RateLimitStatus {
            requests: Some(rate),
            tokens: None,
        };
        let headers = encoded(&allowance);
        assert_eq!(headers["x-ratelimit-limit-requests"], "60");
        assert_eq!(headers["x-ratelimit-remaining-requests"], "59");
        assert_eq!(headers["x-ratelimit-reset-requests"], "1s");
        assert_eq!(headers.len(), 3);
        assert!(encoded(&RateLimitStatus::default()).is_empty());
    }
}
