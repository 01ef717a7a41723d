//! Buckets fill up again with time, refused requests cost nothing, and permits come back.

use super::*;

const LIMITS: Limits = Limits {
    requests_per_minute: Some(60),
    tokens_per_minute: Some(6000),
    concurrency: Some(2),
};

fn only(requests: Option<u64>, tokens: Option<u64>, concurrency: Option<u64>) -> Limits {
    Limits {
        requests_per_minute: requests,
        tokens_per_minute: tokens,
        concurrency,
    }
}

#[test]
fn a_minute_of_requests_and_then_one_a_second() {
    let limiter = Arc::new(KeyLimiter::default());
    let limits = only(Some(60), None, None);
    let mut now = Instant::now();
    for _ in 0..60 {
        assert!(limiter.admit(&limits, now).is_ok());
    }
    let second = Duration::from_secs(1);
    assert_eq!(
        limiter.admit(&limits, now).err(),
        Some(LimitReached::Requests(second))
    );
    now += second;
    assert!(limiter.admit(&limits, now).is_ok());
    assert!(limiter.admit(&limits, now).is_err());
}

#[test]
fn tokens_are_charged_afterwards_and_a_debt_is_worked_off() {
    let limiter = Arc::new(KeyLimiter::default());
    let limits = only(None, Some(6000), None);
    let now = Instant::now();
    assert!(limiter.admit(&limits, now).is_ok());
    limiter.charge_tokens(&limits, 9000, now);
    let Some(LimitReached::Tokens(wait)) = limiter.admit(&limits, now).err() else {
        panic!("a key in debt was admitted");
    };
    assert_eq!(wait.as_millis(), 30_010);
    assert!(limiter.admit(&limits, now + wait).is_ok());
}

#[test]
fn concurrency_is_given_back_when_the_permit_is_dropped() {
    let limiter = Arc::new(KeyLimiter::default());
    let now = Instant::now();
    let first = limiter.admit(&LIMITS, now).expect("free");
    let second = limiter.admit(&LIMITS, now).expect("free");
    assert_eq!(
        limiter.admit(&LIMITS, now).err(),
        Some(LimitReached::Concurrency)
    );
    assert_eq!(limiter.in_flight(), 2);
    drop((first, second));
    assert_eq!(limiter.in_flight(), 0);
    assert!(limiter.admit(&LIMITS, now).is_ok());
}

#[test]
fn a_refused_request_costs_nothing() {
    let limiter = Arc::new(KeyLimiter::default());
    let now = Instant::now();
    limiter.charge_tokens(&LIMITS, 6000, now);
    let before = limiter.rate_limit_status(&LIMITS, now);
    for _ in 0..100 {
        assert!(matches!(
            limiter.admit(&LIMITS, now),
            Err(LimitReached::Tokens(_))
        ));
    }
    assert_eq!(limiter.rate_limit_status(&LIMITS, now), before);
    assert_eq!(limiter.in_flight(), 0);
}

#[test]
fn the_allowance_says_what_is_left_and_when_all_is_back() {
    let limiter = Arc::new(KeyLimiter::default());
    let now = Instant::now();
    let _permit = limiter.admit(&LIMITS, now);
    limiter.charge_tokens(&LIMITS, 1500, now);
    let allowance = limiter.rate_limit_status(&LIMITS, now);
    let requests = RateLimit {
        limit: 60,
        remaining: 59,
        reset: Duration::from_secs(1),
    };
    let tokens = RateLimit {
        limit: 6000,
        remaining: 4500,
        reset: Duration::from_secs(15),
    };
    assert_eq!(allowance.requests, Some(requests));
    assert_eq!(allowance.tokens, Some(tokens));
    assert_eq!(
        limiter.rate_limit_status(&only(None, None, Some(2)), now),
        RateLimitStatus::default()
    );
}
