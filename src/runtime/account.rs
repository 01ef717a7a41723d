//! What a key has spent, and what is held back for its requests in flight.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

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
    held: Money,
    /// The end of the day that it is of.
    day_ends: Option<Timestamp>,
    /// What was spent before this process began is in it.
    is_open: bool,
}

/// Why there is not enough for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Of the cap, what is not spent.
    pub left: Money,
    /// Of that, what is held for requests in flight, which may turn out to need less.
    pub held: Money,
}

/// Money held back for a request.
#[must_use = "the money is given back when this is dropped"]
pub struct Hold {
    account: Arc<Account>,
    amount: Money,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut ledger = self.account.ledger();
        ledger.held = ledger.held.saturating_sub(self.amount);
    }
}

impl Hold {
    /// The request has ended: what it has cost takes the place of what was held for it.
    pub fn settle(self, cost: Money, now: Timestamp) {
        // Spent first, so that at no moment less counts than was used.
        self.account.spend(cost, now);
    }
}

impl Account {
    /// Holds back what a request may cost, if that much is left.
    pub fn hold(self: &Arc<Account>, most: Money, cap: Cap, now: Timestamp) -> Result<Hold, Short> {
        let mut ledger = self.ledger();
        ledger.turn(now);
        let spent = ledger.spent_in(cap.reset);
        if spent + ledger.held + most > cap.amount {
            return Err(Short {
                left: cap.amount.saturating_sub(spent),
                held: ledger.held,
            });
        }
        ledger.held += most;
        Ok(Hold {
            account: self.clone(),
            amount: most,
        })
    }

    /// Also of keys without a cap: one may be set later.
    pub fn spend(&self, cost: Money, now: Timestamp) {
        if cost.is_zero() {
            return;
        }
        let mut ledger = self.ledger();
        ledger.turn(now);
        ledger.spent += Spending {
            ever: cost,
            month: cost,
            day: cost,
        };
    }

    /// Adds what had been spent before this process began, as of `now`; only ever once.
    pub fn open(&self, before: Spending, now: Timestamp) {
        let mut ledger = self.ledger();
        if !ledger.is_open {
            ledger.turn(now);
            ledger.spent += before;
            ledger.is_open = true;
        }
    }

    pub fn is_open(&self) -> bool {
        self.ledger().is_open
    }

    pub fn spent(&self, reset: Reset, now: Timestamp) -> Money {
        let mut ledger = self.ledger();
        ledger.turn(now);
        ledger.spent_in(reset)
    }

    /// Nothing would be forgotten with it.
    pub(super) fn is_blank(&self) -> bool {
        let ledger = self.ledger();
        ledger.spent.ever.is_zero() && ledger.held.is_zero()
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
        match self.day_ends {
            Some(end) if now < end => return,
            Some(end) => {
                self.spent.day = Money::ZERO;
                if period::begun(Reset::Monthly, now).is_some_and(|start| end <= start) {
                    self.spent.month = Money::ZERO;
                }
            }
            None => {}
        }
        self.day_ends = period::ends(Reset::Daily, now);
    }

    fn spent_in(&self, reset: Reset) -> Money {
        match reset {
            Reset::Never => self.spent.ever,
            Reset::Monthly => self.spent.month,
            Reset::Daily => self.spent.day,
        }
    }
}

#[cfg(test)]
mod tests;
