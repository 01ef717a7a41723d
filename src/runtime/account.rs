//! The account of a key, or of the person or team that owns keys: what was spent, and what is reserved for requests in flight.

mod lease;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::period;
use crate::config::Reset;
use crate::model::{Money, Spending};

/// The most that may be spent in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    pub amount: Money,
    pub reset: Reset,
}

/// An account. Outlives reloads. Every decision is made under its one lock, so that no two
/// requests reserve the same money.
#[derive(Default)]
pub struct Account(Mutex<Ledger>);

#[derive(Default)]
struct Ledger {
    /// For every kind of period: the reset of a key may be changed.
    spent: Spending,
    /// The part of `spent` that this process has spent.
    own: Spending,
    /// The part of `own` that the store has recorded.
    recorded: Spending,
    reserved: Money,
    /// The day that `spent.day` is about.
    today: Option<Today>,
    /// Set once the earlier spending is loaded from the store; from then on the cap is shared with other
    /// processes.
    lease: Option<Lease>,
    /// The account of the person or team that the key belongs to.
    owner: Option<Arc<Account>>,
}

/// The outcome for a request that waits for a lease.
pub type ReservationResult = Result<Reservation, CapExceeded>;

#[derive(Default)]
struct Lease {
    /// The cap that it is of, and the end of the period.
    of: Option<(Cap, Option<Timestamp>)>,
    /// What this process may spend and reserve in the period.
    granted: Money,
    /// Taken once without a grant, because the store could not be reached.
    credit: Money,
    /// Set while the store is asked in a way that may shrink the lease: nothing can be reserved.
    is_locked: bool,
    /// The last grant was smaller than desired: no lease is requested ahead of need.
    is_scarce: bool,
    /// Something was reserved since the last trim.
    is_used: bool,
    slice: Money,
    leased_elsewhere: Option<Money>,
    waiting: Vec<WaitingRequest>,
}

/// A request that waits for the next grant.
struct WaitingRequest {
    most: Money,
    cap: Cap,
    result: oneshot::Sender<ReservationResult>,
    /// The lease request under way includes this one.
    is_requested: bool,
}

/// Why the store is asked for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseAction {
    /// To get more, for waiting requests and for those to come.
    More,
    /// To return what was not used since the last trim.
    Trim,
    /// To get back a lease that has expired in the store.
    Restore,
    /// To return all that is not in use.
    Release,
}

/// A day and its month, looked up in the calendar once.
#[derive(Clone, Copy)]
struct Today {
    /// `None`: the end of the calendar.
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

/// The cap has not enough money left for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapExceeded {
    /// What is not spent of the cap.
    pub left: Money,
    /// What of that is reserved for requests in flight, which may cost less.
    pub reserved: Money,
    /// What other processes have leased of the cap; `None`: not known.
    pub leased_elsewhere: Option<Money>,
}

/// Why nothing could be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveError {
    CapExceeded(CapExceeded),
    /// The cap has enough money left, but it is not leased to this process.
    NotLeased,
}

/// Money that is reserved for a request.
#[must_use = "the money is released when this is dropped"]
pub struct Reservation {
    account: Arc<Account>,
    amount: Money,
    /// Less than half of a slice of the cap is free beside it.
    is_lease_low: bool,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.amount.is_zero() {
            self.account.ledger().release(self.amount);
        }
    }
}

impl Reservation {
    /// Tells whether it is time to request more of a shared cap.
    pub const fn is_lease_low(&self) -> bool {
        self.is_lease_low
    }

    /// The amount that is reserved.
    pub const fn amount(&self) -> Money {
        self.amount
    }

    /// Adds another reservation of the same account.
    pub fn add(&mut self, mut more: Reservation) {
        self.amount += std::mem::take(&mut more.amount);
    }

    /// Replaces the reservation by the real cost when the request has ended.
    pub fn settle(mut self, cost: Money, now: Timestamp) {
        // Under one lock, so that at no moment less counts than is used.
        let mut ledger = self.account.ledger();
        ledger.spend(cost, now);
        ledger.release(std::mem::take(&mut self.amount));
    }
}

impl Account {
    /// Reserves what a request may cost, if that much is left.
    pub fn reserve(
        self: &Arc<Account>,
        most: Money,
        cap: Cap,
        now: Timestamp,
    ) -> Result<Reservation, ReserveError> {
        let mut ledger = self.ledger();
        ledger.roll_over(now);
        let reservation = self.reserve_within(&mut ledger, most, cap, now);
        reservation.map_err(|exceeded| match ledger.is_within(most, cap) {
            true => ReserveError::NotLeased,
            false => ReserveError::CapExceeded(exceeded),
        })
    }

    fn reserve_within(
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
                reserved: ledger.reserved,
                leased_elsewhere: Account::leased_elsewhere(ledger),
            });
        }
        ledger.reserved += most;
        Ok(Reservation {
            account: self.clone(),
            amount: most,
            is_lease_low: ledger.is_low(cap, now),
        })
    }

    /// Adds a cost; also for keys without a cap, which may get one later.
    pub fn spend(&self, cost: Money, at: Timestamp) {
        if !cost.is_zero() {
            self.ledger().spend(cost, at);
        }
    }

    /// Adds what had been spent before this process began, as of `now`; later calls do nothing.
    pub fn load_spent(&self, before: Spending, now: Timestamp) {
        let mut ledger = self.ledger();
        if ledger.lease.is_none() {
            ledger.roll_over(now);
            ledger.spent += before;
            ledger.lease = Some(Lease::default());
        }
    }

    pub fn is_loaded(&self) -> bool {
        self.ledger().lease.is_some()
    }

    /// Says whose account the spending of this one counts in too.
    pub(super) fn set_owner(&self, owner: Option<Arc<Account>>) {
        self.ledger().owner = owner;
    }

    pub fn spent(&self, reset: Reset, now: Timestamp) -> Money {
        let mut ledger = self.ledger();
        ledger.roll_over(now);
        in_period(&ledger.spent, reset)
    }

    /// What is reserved for requests in flight.
    pub fn reserved(&self) -> Money {
        self.ledger().reserved
    }

    /// Tells whether nothing is lost with the account.
    pub(super) fn is_unused(&self) -> bool {
        let ledger = self.ledger();
        ledger.spent.total.is_zero() && ledger.reserved.is_zero()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A poisoned lock is no reason to stop: the sums are still valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// Begins a new day or month at zero when the old one is over. A clock that goes backwards changes nothing.
    fn roll_over(&mut self, now: Timestamp) {
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
        self.roll_over(at);
        let cost = self.in_current_periods(cost, at);
        self.spent += cost;
        self.own += cost;
    }

    fn release(&mut self, reserved: Money) {
        self.reserved = self.reserved.saturating_sub(reserved);
    }

    /// Tells whether the cap has so much left.
    fn is_within(&self, most: Money, cap: Cap) -> bool {
        in_period(&self.spent, cap.reset) + self.reserved + most <= cap.amount
    }

    /// A cost by current periods; one that is recorded late may belong to an earlier day.
    fn in_current_periods(&self, cost: Money, at: Timestamp) -> Spending {
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

    /// Raises the known spending of a period, which other processes add to.
    fn raise_spent(&mut self, reset: Reset, spent: Money) {
        let known = match reset {
            Reset::Never => &mut self.spent.total,
            Reset::Monthly => &mut self.spent.month,
            Reset::Daily => &mut self.spent.day,
        };
        *known = spent.max(*known);
    }
}

/// Returns what was spent in the period of a cap.
pub fn in_period(spending: &Spending, reset: Reset) -> Money {
    match reset {
        Reset::Never => spending.total,
        Reset::Monthly => spending.month,
        Reset::Daily => spending.day,
    }
}

#[cfg(test)]
mod tests;
