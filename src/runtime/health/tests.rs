//! When a breaker opens, who probes, and what closes it.

use super::*;

const BREAKER: Breaker = Breaker {
    failures: 3,
    percent: 50,
    open_for: Duration::from_secs(10),
};

fn open(now: Instant) -> Health {
    let health = Health::default();
    for _ in 0..2 {
        assert_eq!(health.record_failure(&BREAKER, now), None);
        assert!(health.is_available(now));
    }
    assert_eq!(health.record_failure(&BREAKER, now), Some(BREAKER.open_for));
    health
}

#[test]
fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
    let now = Instant::now();
    let health = open(now);
    assert!(!health.is_available(now));
    let health = Health::default();
    for _ in 0..9 {
        health.record_failure(&BREAKER, now);
        health.record_failure(&BREAKER, now);
        health.record_success(now);
        health.record_success(now);
        health.record_success(now);
        assert!(health.is_available(now));
    }
}

#[test]
fn a_failure_rate_opens_it_once_enough_is_known() {
    let now = Instant::now();
    let health = Health::default();
    for count in 1..MIN_REQUESTS / 2 {
        health.record_success(now);
        assert_eq!(health.record_failure(&BREAKER, now), None, "{count}");
    }
    health.record_success(now);
    assert_eq!(health.record_failure(&BREAKER, now), Some(BREAKER.open_for));
}

#[test]
fn old_failures_are_forgotten() {
    let mut now = Instant::now();
    let health = Health::default();
    for _ in 0..MIN_REQUESTS {
        health.record_success(now);
        health.record_failure(&BREAKER, now);
        now += WINDOW + Duration::from_secs(1);
    }
    assert!(health.is_available(now));
}

#[test]
fn after_the_pause_one_request_probes_and_success_closes() {
    let now = Instant::now();
    let health = open(now);
    let later = now + BREAKER.open_for;
    assert!(health.is_available(later));
    health.begin_attempt(later);
    assert!(!health.is_available(later), "one probe is enough");
    assert!(health.record_success(later));
    assert!(health.is_available(later));
    assert!(!health.is_open());
    assert!(!health.record_success(later), "no news");
}

#[test]
fn a_probe_that_fails_doubles_the_pause_up_to_a_bound() {
    let mut now = Instant::now();
    let health = open(now);
    let mut pause = BREAKER.open_for;
    for _ in 0..10 {
        now += pause;
        assert!(health.is_available(now));
        health.begin_attempt(now);
        pause = health.record_failure(&BREAKER, now).expect("open again");
        assert!(!health.is_available(now + pause - Duration::from_millis(1)));
    }
    assert_eq!(pause, MAX_OPEN_TIME);
}

#[test]
fn a_probe_that_never_ends_lets_another_one_try() {
    let now = Instant::now();
    let health = open(now);
    let later = now + BREAKER.open_for;
    health.begin_attempt(later);
    assert!(!health.is_available(later));
    assert!(health.is_available(later + BREAKER.open_for));
}

#[test]
fn a_pause_that_was_asked_for_is_kept_and_bounded() {
    let now = Instant::now();
    let health = Health::default();
    health.cool_down(Duration::from_secs(20), now);
    health.cool_down(Duration::from_secs(5), now);
    assert_eq!(health.cool_down_left(now), Duration::from_secs(20));
    assert!(!health.is_available(now + Duration::from_secs(19)));
    assert!(health.is_available(now + Duration::from_secs(20)));
    health.cool_down(Duration::from_secs(1_000_000), now);
    assert!(health.is_available(now + MAX_COOL_DOWN));
}
