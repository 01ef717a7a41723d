//! The rate limit headers of a response: limits, what remains of them, and when they are reset.

use http::HeaderName;
use jiff::{SignedDuration, Timestamp};

use crate::formats::HeaderFields;
use crate::model::{RateLimit, RateLimitStatus};

const REQUESTS: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-ratelimit-requests-limit"),
    HeaderName::from_static("anthropic-ratelimit-requests-remaining"),
    HeaderName::from_static("anthropic-ratelimit-requests-reset"),
];
const TOKENS: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-ratelimit-tokens-limit"),
    HeaderName::from_static("anthropic-ratelimit-tokens-remaining"),
    HeaderName::from_static("anthropic-ratelimit-tokens-reset"),
];

/// Encodes the rate limits of a client.
pub(super) fn encode_rate_limits(
    allowance: &RateLimitStatus,
    now: Timestamp,
    fields: &mut HeaderFields,
) {
    let mut encode = |rate: Option<RateLimit>, names: [HeaderName; 3]| {
        let Some(rate) = rate else { return };
        let [limit, remaining, reset] = names;
        fields.insert_number(limit, rate.limit, "");
        fields.insert_number(remaining, rate.remaining, "");
        let wait = SignedDuration::from_secs(rate.reset.as_secs_f64().ceil() as i64);
        let full = now.checked_add(wait).unwrap_or(now);
        // Whole seconds: a timestamp is formatted with its fraction.
        fields.insert(
            reset,
            Timestamp::from_second(full.as_second()).unwrap_or(full),
        );
    };
    encode(allowance.requests, REQUESTS);
    encode(allowance.tokens, TOKENS);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use http::HeaderMap;

    #[test]
    fn the_reset_is_a_timestamp() {
        let rate = RateLimit {
            limit: 200_000,
            remaining: 150_000,
            reset: Duration::from_millis(15_001),
        };
        let allowance = RateLimitStatus {
            requests: None,
            tokens: Some(rate),
        };
        let now = "2026-10-21T07:28:00.25Z".parse().expect("a timestamp");
        let (mut fields, mut headers) = (HeaderFields::default(), HeaderMap::new());
        encode_rate_limits(&allowance, now, &mut fields);
        fields
            .insert_into(&mut headers)
            .expect("values that may be sent");
        assert_eq!(headers["anthropic-ratelimit-tokens-limit"], "200000");
        assert_eq!(headers["anthropic-ratelimit-tokens-remaining"], "150000");
        let reset = &headers["anthropic-ratelimit-tokens-reset"];
        assert_eq!(reset, "2026-10-21T07:28:16Z");
        assert_eq!(headers.len(), 3);
    }
}
