//! Whether an upstream has lately done its work: a breaker for each upstream and model.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Breaker;

/// The failure rate is that of the requests of this long.
const WINDOW: Duration = Duration::from_secs(30);

/// A rate over fewer requests says nothing.
const ENOUGH: u32 = 20;

/// Every probe that fails doubles the pause, up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// An upstream may ask for a pause, but not for the day.
const LONGEST_COOL_DOWN: Duration = Duration::from_secs(300);

/// Outlives reloads. Locked for a few instructions at the end of each attempt.
pub struct Health(Mutex<State>);

struct State {
    phase: Phase,
    in_a_row: u32,
    window_began: Instant,
    seen: u32,
    failed: u32,
    /// The upstream itself has asked for a pause.
    cool_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    /// Nothing is sent while another upstream is there.
    Open {
        until: Instant,
        pause: Duration,
    },
    /// One request is finding out.
    Probing {
        since: Instant,
        pause: Duration,
    },
}

impl Default for Health {
    fn default() -> Health {
        Health(Mutex::new(State {
            phase: Phase::Closed,
            in_a_row: 0,
            window_began: Instant::now(),
            seen: 0,
            failed: 0,
            cool_until: None,
        }))
    }
}

impl Health {
    /// Whether it may stand in its usual place among the upstreams to try.
    pub fn is_available(&self, now: Instant) -> bool {
        let state = self.state();
        let cool = state.cool_until.is_some_and(|until| now < until);
        !cool
            && match state.phase {
                Phase::Closed => true,
                Phase::Open { until, .. } => until <= now,
                // A probe that never came back must not lock the door for ever.
                Phase::Probing { since, pause } => since + pause <= now,
            }
    }

    /// An attempt begins; the first one after a pause is the probe that others wait for.
    pub fn begin(&self, now: Instant) {
        let mut state = self.state();
        if let Phase::Open { until, pause } = state.phase
            && until <= now
        {
            state.phase = Phase::Probing { since: now, pause };
        }
    }

    /// Returns whether this closed the breaker.
    pub fn succeeded(&self, now: Instant) -> bool {
        let mut state = self.state();
        state.count(now, false);
        state.in_a_row = 0;
        let was_open = state.phase != Phase::Closed;
        if was_open {
            state.phase = Phase::Closed;
            (state.seen, state.failed) = (0, 0);
        }
        was_open
    }

    /// Returns how long the upstream is left alone if this failure opened the breaker.
    pub fn failed(&self, breaker: &Breaker, now: Instant) -> Option<Duration> {
        let mut state = self.state();
        state.count(now, true);
        state.in_a_row = state.in_a_row.saturating_add(1);
        let pause = match state.phase {
            Phase::Closed => {
                let too_often = state.seen >= ENOUGH
                    && u64::from(state.failed) * 100
                        >= u64::from(breaker.percent) * u64::from(state.seen);
                (state.in_a_row >= breaker.failures || too_often).then_some(breaker.open_for)?
            }
            Phase::Probing { pause, .. } => (pause * 2).min(LONGEST_PAUSE.max(breaker.open_for)),
            // Asked as a last resort: that changes nothing.
            Phase::Open { .. } => return None,
        };
        state.phase = Phase::Open {
            until: now + pause,
            pause,
        };
        Some(pause)
    }

    /// The upstream has said when it wants to be asked again.
    pub fn cool_down(&self, pause: Duration, now: Instant) {
        let until = now + pause.min(LONGEST_COOL_DOWN);
        let mut state = self.state();
        state.cool_until = state.cool_until.max(Some(until));
    }

    pub fn cool_down_left(&self, now: Instant) -> Duration {
        let until = self.state().cool_until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    pub fn is_open(&self) -> bool {
        self.state().phase != Phase::Closed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing can panic while it is held; if it did, the counts are still counts.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self, now: Instant, failed: bool) {
        if now.saturating_duration_since(self.window_began) > WINDOW {
            self.window_began = now;
            (self.seen, self.failed) = (0, 0);
        }
        self.seen = self.seen.saturating_add(1);
        self.failed = self.failed.saturating_add(u32::from(failed));
    }
}

#[cfg(test)]
mod tests;
