//! What a key has spent, and what is held back for its requests in flight.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::period;
use crate::config::Reset;
use crate::model::Money;

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
    spent: Money,
    held: Money,
    /// Since when that has been spent.
    since: Option<Timestamp>,
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
    pub fn settle(self, cost: Money, reset: Reset, now: Timestamp) {
        // Spent first, so that at no moment less counts than was used.
        self.account.spend(cost, reset, now);
    }
}

impl Account {
    /// Holds back what a request may cost, if that much is left.
    pub fn hold(self: &Arc<Account>, most: Money, cap: Cap, now: Timestamp) -> Result<Hold, Short> {
        let mut ledger = self.ledger();
        ledger.turn(cap.reset, now);
        if ledger.spent + ledger.held + most > cap.amount {
            return Err(Short {
                left: cap.amount.saturating_sub(ledger.spent),
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
    pub fn spend(&self, cost: Money, reset: Reset, now: Timestamp) {
        if cost.is_zero() {
            return;
        }
        let mut ledger = self.ledger();
        ledger.turn(reset, now);
        ledger.spent += cost;
    }

    pub fn spent(&self, reset: Reset, now: Timestamp) -> Money {
        let mut ledger = self.ledger();
        ledger.turn(reset, now);
        ledger.spent
    }

    /// Nothing would be forgotten with it.
    pub(super) fn is_blank(&self) -> bool {
        let ledger = self.ledger();
        ledger.spent.is_zero() && ledger.held.is_zero()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Nothing can panic while it is held; if it did, the sums are still sums.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// What was spent before the current period began is forgotten. A clock that goes backwards
    /// forgets nothing.
    fn turn(&mut self, reset: Reset, now: Timestamp) {
        let since = *self.since.get_or_insert(now);
        if let Some(start) = period::begun(reset, now).filter(|start| since < *start) {
            self.spent = Money::ZERO;
            self.since = Some(start);
        }
    }
}

#[cfg(test)]
mod tests;
