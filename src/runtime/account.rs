//! What a key has spent, and what is held back for its requests in flight.

mod lease;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use lease::{Lease, in_period};
pub use lease::{Told, Wish};

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
    /// The end of the day that it is of.
    day_ends: Option<Timestamp>,
    /// There once the store has told what was spent before: from then on the cap is shared with
    /// other processes.
    lease: Option<Lease>,
}

/// Why there is not enough for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Of the cap, what is not spent.
    pub left: Money,
    /// Of that, what is held for requests in flight, which may turn out to need less.
    pub held: Money,
    /// Of the cap, what other processes have leased; `None`: they could not be asked.
    pub elsewhere: Option<Money>,
}

/// Why there is no hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Short(Short),
    /// There is enough of the cap, but it is not leased to this process.
    Unleased,
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
    pub fn hold(
        self: &Arc<Account>,
        most: Money,
        cap: Cap,
        now: Timestamp,
    ) -> Result<Hold, Refused> {
        let mut ledger = self.ledger();
        ledger.turn(now);
        let is_within = in_period(&ledger.spent, cap.reset) + ledger.held + most <= cap.amount;
        if is_within && !ledger.is_covered(most, cap, now) {
            return Err(Refused::Unleased);
        }
        self.hold_of(&mut ledger, most, cap, now)
            .map_err(Refused::Short)
    }

    fn hold_of(
        self: &Arc<Account>,
        ledger: &mut Ledger,
        most: Money,
        cap: Cap,
        now: Timestamp,
    ) -> Result<Hold, Short> {
        let spent = in_period(&ledger.spent, cap.reset);
        let is_within = spent + ledger.held + most <= cap.amount;
        if !is_within || !ledger.is_covered(most, cap, now) {
            return Err(Short {
                left: cap.amount.saturating_sub(spent),
                held: ledger.held,
                elsewhere: Account::elsewhere(ledger),
            });
        }
        ledger.held += most;
        Ok(Hold {
            account: self.clone(),
            amount: most,
        })
    }

    /// Also of keys without a cap: one may be set later.
    pub fn spend(&self, cost: Money, at: Timestamp) {
        if cost.is_zero() {
            return;
        }
        let mut ledger = self.ledger();
        ledger.turn(at);
        let cost = ledger.within(cost, at);
        ledger.spent += cost;
        ledger.own += cost;
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
                let month_is_over =
                    period::begun(Reset::Monthly, now).is_some_and(|start| end <= start);
                for spending in [&mut self.spent, &mut self.own, &mut self.recorded] {
                    spending.day = Money::ZERO;
                    if month_is_over {
                        spending.month = Money::ZERO;
                    }
                }
            }
            None => {}
        }
        self.day_ends = period::ends(Reset::Daily, now);
    }

    /// A cost in the periods of now that it is of: what is told late may be of the day before.
    fn within(&self, cost: Money, at: Timestamp) -> Spending {
        // The last moment of the current day, by which its periods are known.
        let last = self.day_ends.map(|end| end - SignedDuration::from_nanos(1));
        let is_of = |reset: Reset| {
            let start = last.and_then(|last| period::begun(reset, last));
            start.is_none_or(|start| at >= start)
        };
        let amount = |is_of: bool| if is_of { cost } else { Money::ZERO };
        Spending {
            ever: cost,
            month: amount(is_of(Reset::Monthly)),
            day: amount(is_of(Reset::Daily)),
        }
    }

    /// So much is known to be spent; what had been known may be less, where others spend too.
    fn know(&mut self, reset: Reset, spent: Money) {
        let known = match reset {
            Reset::Never => &mut self.spent.ever,
            Reset::Monthly => &mut self.spent.month,
            Reset::Daily => &mut self.spent.day,
        };
        *known = spent.max(*known);
    }
}

#[cfg(test)]
mod tests;
