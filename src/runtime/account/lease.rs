//! Leases of a shared cap: what this process may spend of it, and the requests that wait for more.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::{
    Account, Cap, Lease, LeaseAction, Ledger, ReservationResult, WaitingRequest, in_period, period,
};
use crate::config::Reset;
use crate::model::{LeaseGrant, LeaseRequest, Money};

/// A lease is requested in slices: this fraction of the cap, or twice what a request needs where that is more.
const SLICES_PER_CAP: u32 = 20;

impl Lease {
    /// What this process may spend and reserve now; `None`: it has no lease of the current period. A lease of a higher cap is
    /// none: together with those of other processes, it could be more than the cap is now.
    fn ceiling(&self, cap: Cap, now: Timestamp) -> Option<Money> {
        let (leased, ends) = self.of?;
        let is_within = leased.reset == cap.reset && leased.amount <= cap.amount;
        let is_current = is_within && ends.is_none_or(|end| now < end);
        is_current.then(|| self.granted + self.credit)
    }
}

impl Ledger {
    /// Tells whether the lease covers so much more.
    pub(super) fn is_covered(&mut self, most: Money, cap: Cap, now: Timestamp) -> bool {
        let (own, reserved) = (in_period(&self.own, cap.reset), self.reserved);
        let Some(lease) = &mut self.lease else {
            return true;
        };
        let ceiling = lease.ceiling(cap, now).filter(|_| !lease.is_locked);
        let is_covered =
            most.is_zero() || ceiling.is_some_and(|most_own| own + reserved + most <= most_own);
        lease.is_used |= is_covered;
        lease.slice = lease
            .slice
            .max(most + most)
            .max(cap.amount.divided_by(SLICES_PER_CAP));
        is_covered
    }

    /// What the lease still covers; `None`: there is no lease of the current period.
    fn free(&self, cap: Cap, now: Timestamp) -> Option<Money> {
        let ceiling = self.lease.as_ref()?.ceiling(cap, now)?;
        Some(ceiling.saturating_sub(in_period(&self.own, cap.reset) + self.reserved))
    }

    /// Tells whether less than half of a slice is free.
    pub(super) fn is_low(&self, cap: Cap, now: Timestamp) -> bool {
        let free = self.free(cap, now).unwrap_or_default();
        self.lease.as_ref().is_some_and(|lease| {
            // The store does not know of the credit yet.
            let is_owed = !lease.credit.is_zero();
            is_owed || (!lease.is_scarce && free < lease.slice.divided_by(2))
        })
    }

    /// What this process has spent and reserved and the store has not recorded.
    fn floor(&self, reset: Reset) -> Money {
        let own = in_period(&self.own, reset) + self.reserved;
        own.saturating_sub(in_period(&self.recorded, reset))
    }
}

impl Account {
    /// Queues a request that the lease does not cover; the receiver gets the outcome of the next grant.
    pub fn wait_for_lease(&self, most: Money, cap: Cap) -> oneshot::Receiver<ReservationResult> {
        let (sender, receiver) = oneshot::channel();
        let mut ledger = self.ledger();
        let lease = ledger.lease.get_or_insert_default();
        lease.waiting.push(WaitingRequest {
            most,
            cap,
            result: sender,
            is_requested: false,
        });
        receiver
    }

    /// The lease to request from the store; `None`: none is needed. `apply_grant` or `continue_without_store` must follow.
    pub fn lease_request(
        &self,
        cap: Cap,
        action: LeaseAction,
        now: Timestamp,
    ) -> Option<LeaseRequest> {
        let mut ledger = self.ledger();
        ledger.roll_over(now);
        let floor = ledger.floor(cap.reset);
        let free = ledger.free(cap, now);
        let is_low = ledger.is_low(cap, now);
        let lease = ledger.lease.as_mut()?;
        let was_used = lease.is_used;
        if action != LeaseAction::More {
            lease.is_used = false;
        }
        let slice = lease.slice;
        // Those whose clients have gone need nothing.
        lease.waiting.retain(|one| !one.result.is_closed());
        let (minimum, desired) =
            if let Some(minimum) = lease.waiting.iter().map(|one| one.most).min() {
                lease
                    .waiting
                    .iter_mut()
                    .for_each(|one| one.is_requested = true);
                let all: Money = lease.waiting.iter().map(|one| one.most).sum();
                (minimum, all + slice)
            } else {
                let desired = match action {
                    LeaseAction::More => is_low.then_some(slice)?,
                    LeaseAction::Trim if was_used && free.is_some() => is_low.then_some(slice)?,
                    // There is nothing to return.
                    LeaseAction::Trim if lease.of.is_none() => return None,
                    LeaseAction::Trim | LeaseAction::Release => Money::ZERO,
                    LeaseAction::Restore => free.unwrap_or_default(),
                };
                (Money::ZERO, desired)
            };
        if action == LeaseAction::Trim {
            lease.slice = cap.amount.divided_by(SLICES_PER_CAP);
        }
        // Only `More` without waiting requests never shrinks the lease.
        lease.is_locked = action != LeaseAction::More || !lease.waiting.is_empty();
        Some(LeaseRequest {
            cap: cap.amount,
            floor,
            minimum,
            desired,
        })
    }

    /// Applies the grant of the store; nothing was recorded since `asked_at`.
    pub fn apply_grant(
        self: &Arc<Account>,
        cap: Cap,
        grant: LeaseGrant,
        request: LeaseRequest,
        asked_at: Timestamp,
    ) {
        let mut ledger = self.ledger();
        let recorded = in_period(&ledger.recorded, cap.reset);
        let unrecorded = in_period(&ledger.own, cap.reset).saturating_sub(recorded);
        ledger.raise_spent(cap.reset, grant.spent + unrecorded);
        if let Some(lease) = &mut ledger.lease {
            let of = (cap, period::period_end(cap.reset, asked_at));
            lease.of = (!grant.amount.is_zero()).then_some(of);
            lease.granted = recorded + grant.amount;
            lease.credit = Money::ZERO;
            lease.is_scarce = grant.amount < request.floor + request.desired;
            lease.leased_elsewhere = Some(grant.leased_elsewhere);
        }
        self.resolve_waiting(ledger, asked_at);
    }

    /// Continues while the store cannot be reached: the lease stays valid, and where it is not enough, one slice
    /// more may be taken as credit.
    pub fn continue_without_store(
        self: &Arc<Account>,
        cap: Cap,
        may_take_credit: bool,
        now: Timestamp,
    ) {
        let mut ledger = self.ledger();
        ledger.roll_over(now);
        let own = in_period(&ledger.own, cap.reset) + ledger.reserved;
        if let Some(lease) = &mut ledger.lease {
            if lease.ceiling(cap, now).is_none() {
                lease.of = Some((cap, period::period_end(cap.reset, now)));
                lease.granted = own;
                lease.credit = Money::ZERO;
            }
            if may_take_credit && lease.credit.is_zero() && !lease.waiting.is_empty() {
                lease.credit = lease.slice;
            }
            lease.leased_elsewhere = None;
        }
        self.resolve_waiting(ledger, now);
    }

    /// Answers the waiting requests in their order.
    fn resolve_waiting(
        self: &Arc<Account>,
        mut ledger: std::sync::MutexGuard<'_, Ledger>,
        now: Timestamp,
    ) {
        let Some(lease) = &mut ledger.lease else {
            return;
        };
        lease.is_locked = false;
        let waiting = std::mem::take(&mut lease.waiting);
        let mut answers = Vec::new();
        for one in waiting {
            match self.reserve_within(&mut ledger, one.most, one.cap, now) {
                Err(_) if !one.is_requested => {
                    let lease = ledger.lease.get_or_insert_default();
                    lease.waiting.push(one);
                }
                answer => answers.push((one.result, answer)),
            }
        }
        drop(ledger);
        for (result, answer) in answers {
            // A client that has gone releases the reservation by the drop.
            drop(result.send(answer));
        }
    }

    /// Tells whether the store may have a lease of this account.
    pub fn is_leased(&self) -> bool {
        let ledger = self.ledger();
        ledger
            .lease
            .as_ref()
            .is_some_and(|lease| lease.of.is_some())
    }

    /// Notes that the store has recorded a cost of this process, here and in the account of the key's owner.
    pub fn mark_recorded(&self, cost: Money, at: Timestamp, now: Timestamp) {
        let mut ledger = self.ledger();
        ledger.roll_over(now);
        let in_periods = ledger.in_current_periods(cost, at);
        ledger.recorded += in_periods;
        let owner = ledger.owner.clone();
        drop(ledger);
        if let Some(owner) = owner {
            owner.mark_recorded(cost, at, now);
        }
    }

    /// What other processes had leased of the cap at the last grant; `None`: the store could not be reached.
    pub(super) fn leased_elsewhere(ledger: &Ledger) -> Option<Money> {
        match &ledger.lease {
            Some(lease) => lease.leased_elsewhere,
            None => Some(Money::ZERO),
        }
    }
}
