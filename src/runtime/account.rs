//! What a key has spent, and what is held back for its requests in flight.

mod lease;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use lease::{Lease, in_period};
pub use lease::{LeaseAction, ReservationResult};

use super::period;
use crate::config::Reset;
use crate::model::{Money, Spending};

/// The most that a key may spend in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    pub amount: Money,
    pub reset: Reset,
}

/// Outlives reloads. Everything about one key is decided under its one lock, so that no two
/// requests can take the same money.
#[derive(Default)]
pub struct Account(Mutex<Ledger>);

#[derive(Default)]
struct Ledger {
    /// By every period at once: when it resets may be said otherwise later.
    spent: Spending,
    /// Of that, by this process alone.
    own: Spending,
    /// Of its own, what the store has written down.
    recorded: Spending,
    held: Money,
    /// The day that it is of.
    today: Option<Today>,
    /// There once the store has told what was spent before: from then on the cap is shared with
    /// other processes.
    lease: Option<Lease>,
}

/// A day and the month it is in, looked up in the calendar once for all that is spent on it.
#[derive(Clone, Copy)]
struct Today {
    /// `None`: it is the last there is.
    ends: Option<Timestamp>,
    begun: Option<Timestamp>,
    month_begun: Option<Timestamp>,
}

impl Today {
    fn at(now: Timestamp) -> Today {
        Today {
            ends: period::period_end(Reset::Daily, now),
            begun: period::period_start(Reset::Daily, now),
            month_begun: period::period_start(Reset::Monthly, now),
        }
    }
}

/// Why there is not enough for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapExceeded {
    /// Of the cap, what is not spent.
    pub left: Money,
    /// Of that, what is held for requests in flight, which may turn out to need less.
    pub held: Money,
    /// Of the cap, what other processes have leased; `None`: they could not be asked.
    pub elsewhere: Option<Money>,
}

/// Why there is no hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveError {
    CapExceeded(CapExceeded),
    /// There is enough of the cap, but it is not leased to this process.
    NotLeased,
}

/// Money held back for a request.
#[must_use = "the money is given back when this is dropped"]
pub struct Reservation {
    account: Arc<Account>,
    amount: Money,
    /// Less than half of a slice of the cap is left beside it.
    leaves_little: bool,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.amount.is_zero() {
            self.account.ledger().release(self.amount);
        }
    }
}

impl Reservation {
    /// Where the cap is shared: it is time to ask for more of it.
    pub const fn leaves_little(&self) -> bool {
        self.leaves_little
    }

    /// The request has ended: what it has cost takes the place of what was held for it.
    pub fn settle(mut self, cost: Money, now: Timestamp) {
        // Together, so that at no moment less counts than was used.
        let mut ledger = self.account.ledger();
        ledger.spend(cost, now);
        ledger.release(std::mem::take(&mut self.amount));
    }
}

impl Account {
    /// Holds back what a request may cost, if that much is left.
    pub fn reserve(
        self: &Arc<Account>,
        most: Money,
        cap: Cap,
        now: Timestamp,
    ) -> Result<Reservation, ReserveError> {
        let mut ledger = self.ledger();
        ledger.turn(now);
        let hold = self.hold_of(&mut ledger, most, cap, now);
        hold.map_err(|short| match ledger.is_within(most, cap) {
            true => ReserveError::NotLeased,
            false => ReserveError::CapExceeded(short),
        })
    }

    fn hold_of(
        self: &Arc<Account>,
        ledger: &mut Ledger,
        most: Money,
        cap: Cap,
        now: Timestamp,
    ) -> Result<Reservation, CapExceeded> {
        if !ledger.is_within(most, cap) || !ledger.is_covered(most, cap, now) {
            let spent = in_period(&ledger.spent, cap.reset);
            return Err(CapExceeded {
                left: cap.amount.saturating_sub(spent),
                held: ledger.held,
                elsewhere: Account::elsewhere(ledger),
            });
        }
        ledger.held += most;
        Ok(Reservation {
            account: self.clone(),
            amount: most,
            leaves_little: ledger.is_low(cap, now),
        })
    }

    /// Also of keys without a cap: one may be set later.
    pub fn spend(&self, cost: Money, at: Timestamp) {
        if !cost.is_zero() {
            self.ledger().spend(cost, at);
        }
    }

    /// Adds what had been spent before this process began, as of `now`; only ever once.
    pub fn open(&self, before: Spending, now: Timestamp) {
        let mut ledger = self.ledger();
        if ledger.lease.is_none() {
            ledger.turn(now);
            ledger.spent += before;
            ledger.lease = Some(Lease::default());
        }
    }

    pub fn is_open(&self) -> bool {
        self.ledger().lease.is_some()
    }

    pub fn spent(&self, reset: Reset, now: Timestamp) -> Money {
        let mut ledger = self.ledger();
        ledger.turn(now);
        in_period(&ledger.spent, reset)
    }

    /// Nothing would be forgotten with it.
    pub(super) fn is_blank(&self) -> bool {
        let ledger = self.ledger();
        ledger.spent.total.is_zero() && ledger.held.is_zero()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Nothing can panic while it is held; if it did, the sums are still sums.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// What was spent before the current day and month began is not of them any more. A clock that
    /// goes backwards forgets nothing.
    fn turn(&mut self, now: Timestamp) {
        if let Some(Today { ends, .. }) = self.today
            && ends.is_none_or(|end| now < end)
        {
            return;
        }
        let today = Today::at(now);
        if let Some(end) = self.today.and_then(|before| before.ends) {
            let month_is_over = today.month_begun.is_some_and(|start| end <= start);
            for spending in [&mut self.spent, &mut self.own, &mut self.recorded] {
                spending.day = Money::ZERO;
                if month_is_over {
                    spending.month = Money::ZERO;
                }
            }
        }
        self.today = Some(today);
    }

    fn spend(&mut self, cost: Money, at: Timestamp) {
        self.turn(at);
        let cost = self.within(cost, at);
        self.spent += cost;
        self.own += cost;
    }

    fn release(&mut self, held: Money) {
        self.held = self.held.saturating_sub(held);
    }

    /// Whether so much more can be held of the cap.
    fn is_within(&self, most: Money, cap: Cap) -> bool {
        in_period(&self.spent, cap.reset) + self.held + most <= cap.amount
    }

    /// A cost in the periods of now that it is of: what is told late may be of the day before.
    fn within(&self, cost: Money, at: Timestamp) -> Spending {
        let since = |start: Option<Timestamp>| match start {
            Some(start) if at < start => Money::ZERO,
            _ => cost,
        };
        Spending {
            total: cost,
            month: since(self.today.and_then(|today| today.month_begun)),
            day: since(self.today.and_then(|today| today.begun)),
        }
    }

    /// So much is known to be spent; what had been known may be less, where others spend too.
    fn know(&mut self, reset: Reset, spent: Money) {
        let known = match reset {
            Reset::Never => &mut self.spent.total,
            Reset::Monthly => &mut self.spent.month,
            Reset::Daily => &mut self.spent.day,
        };
        *known = spent.max(*known);
    }
}

#[cfg(test)]
mod tests;
