//! A circuit breaker for each upstream and model.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Breaker;

/// The window over which the failure rate is counted.
const WINDOW: Duration = Duration::from_secs(30);

/// A failure rate counts only from so many requests on.
const MIN_REQUESTS: u32 = 20;

/// Every failed probe doubles the time that the breaker stays open, up to this.
const MAX_OPEN_TIME: Duration = Duration::from_secs(300);

/// The longest `retry-after` of an upstream that is honored.
const MAX_COOL_DOWN: Duration = Duration::from_secs(300);

/// The health of one model at one upstream. Outlives reloads.
pub struct Health(Mutex<BreakerState>);

struct BreakerState {
    phase: BreakerPhase,
    consecutive_failures: u32,
    window_began: Instant,
    requests: u32,
    failed: u32,
    /// Set by a `retry-after` of the upstream.
    cool_until: Option<Instant>,
    /// Since the process began.
    all_requests: u64,
    all_failed: u64,
}

/// What is known of the health of one model at one upstream, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthStatus {
    /// `closed`, `open` or `half_open`.
    pub breaker: &'static str,
    /// How long the breaker stays open.
    pub open_for: Duration,
    /// How long the upstream asked not to be asked.
    pub cool_down: Duration,
    /// In the last 30 seconds at most.
    pub recent_requests: u32,
    pub recent_failed: u32,
    /// Since the process began.
    pub requests: u64,
    pub failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerPhase {
    Closed,
    /// No request is sent while another upstream is available.
    Open {
        until: Instant,
        pause: Duration,
    },
    /// Half open: one request is the probe.
    Probing {
        since: Instant,
        pause: Duration,
    },
}

impl Default for Health {
    fn default() -> Health {
        Health(Mutex::new(BreakerState {
            phase: BreakerPhase::Closed,
            consecutive_failures: 0,
            window_began: Instant::now(),
            requests: 0,
            failed: 0,
            cool_until: None,
            all_requests: 0,
            all_failed: 0,
        }))
    }
}

impl Health {
    /// Tells whether requests may be sent to it.
    pub fn is_available(&self, now: Instant) -> bool {
        let state = self.state();
        let cool = state.cool_until.is_some_and(|until| now < until);
        !cool
            && match state.phase {
                BreakerPhase::Closed => true,
                BreakerPhase::Open { until, .. } => until <= now,
                // A probe without an outcome must not block the upstream for ever.
                BreakerPhase::Probing { since, pause } => since + pause <= now,
            }
    }

    /// Called when an attempt begins; the first after the breaker was open is the probe.
    pub fn begin_attempt(&self, now: Instant) {
        let mut state = self.state();
        if let BreakerPhase::Open { until, pause } = state.phase
            && until <= now
        {
            state.phase = BreakerPhase::Probing { since: now, pause };
        }
    }

    /// Records a successful attempt; returns whether it closed the breaker.
    pub fn record_success(&self, now: Instant) -> bool {
        let mut state = self.state();
        state.count(now, false);
        state.consecutive_failures = 0;
        let was_open = state.phase != BreakerPhase::Closed;
        if was_open {
            state.phase = BreakerPhase::Closed;
            (state.requests, state.failed) = (0, 0);
        }
        was_open
    }

    /// Records a failed attempt; returns how long the breaker stays open if this failure opened it.
    pub fn record_failure(&self, breaker: &Breaker, now: Instant) -> Option<Duration> {
        let mut state = self.state();
        state.count(now, true);
        state.consecutive_failures = state.consecutive_failures.saturating_add(1);
        let pause = match state.phase {
            BreakerPhase::Closed => {
                let too_often = state.requests >= MIN_REQUESTS
                    && u64::from(state.failed) * 100
                        >= u64::from(breaker.percent) * u64::from(state.requests);
                (state.consecutive_failures >= breaker.failures || too_often)
                    .then_some(breaker.open_for)?
            }
            BreakerPhase::Probing { pause, .. } => {
                (pause * 2).min(MAX_OPEN_TIME.max(breaker.open_for))
            }
            // A last resort: it changes nothing.
            BreakerPhase::Open { .. } => return None,
        };
        state.phase = BreakerPhase::Open {
            until: now + pause,
            pause,
        };
        Some(pause)
    }

    /// Honors a `retry-after` of the upstream.
    pub fn cool_down(&self, pause: Duration, now: Instant) {
        let until = now + pause.min(MAX_COOL_DOWN);
        let mut state = self.state();
        state.cool_until = state.cool_until.max(Some(until));
    }

    pub fn cool_down_left(&self, now: Instant) -> Duration {
        let until = self.state().cool_until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    pub fn status(&self, now: Instant) -> HealthStatus {
        let state = self.state();
        let is_recent = now.saturating_duration_since(state.window_began) <= WINDOW;
        let recent = match is_recent {
            true => (state.requests, state.failed),
            false => (0, 0),
        };
        let (breaker, open_for) = match state.phase {
            BreakerPhase::Closed => ("closed", Duration::ZERO),
            BreakerPhase::Open { until, .. } if until > now => {
                ("open", until.saturating_duration_since(now))
            }
            BreakerPhase::Open { .. } | BreakerPhase::Probing { .. } => {
                ("half_open", Duration::ZERO)
            }
        };
        let cool_down = state.cool_until.unwrap_or(now);
        HealthStatus {
            breaker,
            open_for,
            cool_down: cool_down.saturating_duration_since(now),
            recent_requests: recent.0,
            recent_failed: recent.1,
            requests: state.all_requests,
            failed: state.all_failed,
        }
    }

    pub fn is_open(&self) -> bool {
        self.state().phase != BreakerPhase::Closed
    }

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        // Nothing can panic while it is held; if it did, the counts are still counts.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BreakerState {
    fn count(&mut self, now: Instant, failed: bool) {
        if now.saturating_duration_since(self.window_began) > WINDOW {
            self.window_began = now;
            (self.requests, self.failed) = (0, 0);
        }
        self.requests = self.requests.saturating_add(1);
        self.failed = self.failed.saturating_add(u32::from(failed));
        self.all_requests = self.all_requests.saturating_add(1);
        self.all_failed = self.all_failed.saturating_add(u64::from(failed));
    }
}

#[cfg(test)]
mod tests;
