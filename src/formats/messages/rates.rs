//! The headers that tell a caller what it may still ask for, and when all of it is there again.

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

pub fn headers(allowance: &RateLimitStatus, now: Timestamp, fields: &mut HeaderFields) {
    let mut one = |rate: Option<RateLimit>, names: [HeaderName; 3]| {
        let Some(rate) = rate else { return };
        let [limit, remaining, reset] = names;
        fields.measure(limit, rate.limit, "");
        fields.measure(remaining, rate.remaining, "");
        let wait = SignedDuration::from_secs(rate.reset.as_secs_f64().ceil() as i64);
        let full = now.checked_add(wait).unwrap_or(now);
        // To the second: a timestamp is written with what it has of it.
        fields.say(
            reset,
            Timestamp::from_second(full.as_second()).unwrap_or(full),
        );
    };
    one(allowance.requests, REQUESTS);
    one(allowance.tokens, TOKENS);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use http::HeaderMap;

    #[test]
    fn the_reset_is_a_time_of_day() {
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
        let (mut fields, mut said) = (HeaderFields::default(), HeaderMap::new());
        headers(&allowance, now, &mut fields);
        fields.put_into(&mut said).expect("values that may be sent");
        assert_eq!(said["anthropic-ratelimit-tokens-limit"], "200000");
        assert_eq!(said["anthropic-ratelimit-tokens-remaining"], "150000");
        let reset = &said["anthropic-ratelimit-tokens-reset"];
        assert_eq!(reset, "2026-10-21T07:28:16Z");
        assert_eq!(said.len(), 3);
    }
}
