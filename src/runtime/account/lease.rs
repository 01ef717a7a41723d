//! The slice of a cap that this process may use where others share the cap, and the requests that wait for more of it.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::{Account, Cap, CapExceeded, Ledger, Reservation, period};
use crate::config::Reset;
use crate::model::{LeaseGrant, LeaseRequest, Money, Spending};

/// A slice is this part of a cap, or twice what a request needs where that is more.
const PARTS: u32 = 20;

/// What a request that waits will be told.
pub type ReservationResult = Result<Reservation, CapExceeded>;

#[derive(Default)]
pub(super) struct Lease {
    /// The period that the rest is of.
    of: Option<(Reset, Option<Timestamp>)>,
    /// How much of its own this process may have spent and held in the period.
    granted: Money,
    /// Taken without asking, once, because nobody could be asked.
    credit: Money,
    /// While it is being asked to take back what is free, nothing of that can be had.
    is_frozen: bool,
    /// There was not as much as was wanted: nothing more is asked for ahead of need.
    is_scarce: bool,
    /// Something was held since somebody last looked.
    is_used: bool,
    slice: Money,
    elsewhere: Option<Money>,
    waiting: Vec<Waiting>,
}

struct Waiting {
    most: Money,
    cap: Cap,
    told: oneshot::Sender<ReservationResult>,
    /// The question that is being asked is also for this one.
    is_asked: bool,
}

/// What to do about a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseAction {
    /// More, for those who wait and for those to come.
    More,
    /// To give back what nobody has used since this was last wished.
    Tidy,
    /// To have again what the store does not know of any more.
    Again,
    /// To give back all that is free.
    Leave,
}

impl Lease {
    /// What may be spent and held now, of this process's own; `None`: nothing is leased of the period.
    fn ceiling(&self, cap: Cap, now: Timestamp) -> Option<Money> {
        let (reset, ends) = self.of?;
        let is_current = reset == cap.reset && ends.is_none_or(|end| now < end);
        is_current.then(|| self.granted + self.credit)
    }
}

impl Ledger {
    /// Whether so much more can be held of what is leased.
    pub(super) fn is_covered(&mut self, most: Money, cap: Cap, now: Timestamp) -> bool {
        let (own, held) = (in_period(&self.own, cap.reset), self.held);
        let Some(lease) = &mut self.lease else {
            return true;
        };
        let ceiling = lease.ceiling(cap, now).filter(|_| !lease.is_frozen);
        let is_covered =
            most.is_zero() || ceiling.is_some_and(|most_own| own + held + most <= most_own);
        lease.is_used |= is_covered;
        lease.slice = lease
            .slice
            .max(most + most)
            .max(cap.amount.divided_by(PARTS));
        is_covered
    }

    /// What could be held more; `None`: nothing is leased of the period.
    fn free(&self, cap: Cap, now: Timestamp) -> Option<Money> {
        let ceiling = self.lease.as_ref()?.ceiling(cap, now)?;
        Some(ceiling.saturating_sub(in_period(&self.own, cap.reset) + self.held))
    }

    /// Less than half of a slice is free.
    pub(super) fn is_low(&self, cap: Cap, now: Timestamp) -> bool {
        let free = self.free(cap, now).unwrap_or_default();
        self.lease.as_ref().is_some_and(|lease| {
            // The store does not know yet what was taken without asking.
            let is_owed = !lease.credit.is_zero();
            is_owed || (!lease.is_scarce && free < lease.slice.divided_by(2))
        })
    }

    /// What is spent and held of its own and not yet written down in the store.
    fn floor(&self, reset: Reset) -> Money {
        let own = in_period(&self.own, reset) + self.held;
        own.saturating_sub(in_period(&self.recorded, reset))
    }
}

pub(super) fn in_period(spending: &Spending, reset: Reset) -> Money {
    match reset {
        Reset::Never => spending.total,
        Reset::Monthly => spending.month,
        Reset::Daily => spending.day,
    }
}

impl Account {
    /// Where it was not covered: what comes of it when more has been asked for.
    pub fn wait(&self, most: Money, cap: Cap) -> oneshot::Receiver<ReservationResult> {
        let (told, will_be_told) = oneshot::channel();
        let mut ledger = self.ledger();
        let lease = ledger.lease.get_or_insert_default();
        lease.waiting.push(Waiting {
            most,
            cap,
            told,
            is_asked: false,
        });
        will_be_told
    }

    /// What is to be asked of the store; `None`: nothing need be. What follows is `settle_lease` or `go_on_without`.
    pub fn need(&self, cap: Cap, wish: LeaseAction, now: Timestamp) -> Option<LeaseRequest> {
        let mut ledger = self.ledger();
        ledger.turn(now);
        let floor = ledger.floor(cap.reset);
        let free = ledger.free(cap, now);
        let is_low = ledger.is_low(cap, now);
        let lease = ledger.lease.as_mut()?;
        let was_used = lease.is_used;
        if wish != LeaseAction::More {
            lease.is_used = false;
        }
        let slice = lease.slice;
        let (least, wanted) = if let Some(least) = lease.waiting.iter().map(|one| one.most).min() {
            lease.waiting.iter_mut().for_each(|one| one.is_asked = true);
            let all: Money = lease.waiting.iter().map(|one| one.most).sum();
            (least, all + slice)
        } else {
            let wanted = match wish {
                LeaseAction::More => is_low.then_some(slice)?,
                LeaseAction::Tidy if was_used && free.is_some() => is_low.then_some(slice)?,
                // There is nothing to give back.
                LeaseAction::Tidy if lease.of.is_none() => return None,
                LeaseAction::Tidy | LeaseAction::Leave => Money::ZERO,
                LeaseAction::Again => free.unwrap_or_default(),
            };
            (Money::ZERO, wanted)
        };
        if wish == LeaseAction::Tidy {
            lease.slice = cap.amount.divided_by(PARTS);
        }
        // More is only ever added; in all other cases less may come of it than is there now.
        lease.is_frozen = wish != LeaseAction::More || !lease.waiting.is_empty();
        Some(LeaseRequest {
            cap: cap.amount,
            floor,
            least,
            wanted,
        })
    }

    /// The store has answered what was asked at that time, and nothing was written down since.
    pub fn settle_lease(
        self: &Arc<Account>,
        cap: Cap,
        given: LeaseGrant,
        wanted: LeaseRequest,
        asked: Timestamp,
    ) {
        let mut ledger = self.ledger();
        let recorded = in_period(&ledger.recorded, cap.reset);
        let unrecorded = in_period(&ledger.own, cap.reset).saturating_sub(recorded);
        ledger.know(cap.reset, given.spent + unrecorded);
        if let Some(lease) = &mut ledger.lease {
            let of = (cap.reset, period::period_end(cap.reset, asked));
            lease.of = (!given.amount.is_zero()).then_some(of);
            lease.granted = recorded + given.amount;
            lease.credit = Money::ZERO;
            lease.is_scarce = given.amount < wanted.floor + wanted.wanted;
            lease.elsewhere = Some(given.elsewhere);
        }
        self.tell(ledger, asked);
    }

    /// The store could not be asked. What is in hand goes on, and where that is not enough, one
    /// slice more: as much as a lease would have been.
    pub fn go_on_without(self: &Arc<Account>, cap: Cap, now: Timestamp) {
        let mut ledger = self.ledger();
        ledger.turn(now);
        let own = in_period(&ledger.own, cap.reset) + ledger.held;
        if let Some(lease) = &mut ledger.lease {
            if lease.ceiling(cap, now).is_none() {
                lease.of = Some((cap.reset, period::period_end(cap.reset, now)));
                lease.granted = own;
                lease.credit = Money::ZERO;
            }
            if lease.credit.is_zero() && !lease.waiting.is_empty() {
                lease.credit = lease.slice;
            }
            lease.elsewhere = None;
        }
        self.tell(ledger, now);
    }

    /// Those who wait, in their order, are told what has come of it.
    fn tell(self: &Arc<Account>, mut ledger: std::sync::MutexGuard<'_, Ledger>, now: Timestamp) {
        let Some(lease) = &mut ledger.lease else {
            return;
        };
        lease.is_frozen = false;
        let waiting = std::mem::take(&mut lease.waiting);
        let mut answers = Vec::new();
        for one in waiting {
            match self.hold_of(&mut ledger, one.most, one.cap, now) {
                Err(_) if !one.is_asked => {
                    let lease = ledger.lease.get_or_insert_default();
                    lease.waiting.push(one);
                }
                answer => answers.push((one.told, answer)),
            }
        }
        drop(ledger);
        for (told, answer) in answers {
            // Who has left meanwhile gives it back by that.
            drop(told.send(answer));
        }
    }

    /// The store may have something set aside for it.
    pub fn is_leased(&self) -> bool {
        let ledger = self.ledger();
        ledger
            .lease
            .as_ref()
            .is_some_and(|lease| lease.of.is_some())
    }

    /// What this process has spent is written down in the store.
    pub fn note_recorded(&self, cost: Money, at: Timestamp, now: Timestamp) {
        let mut ledger = self.ledger();
        ledger.turn(now);
        let cost = ledger.within(cost, at);
        ledger.recorded += cost;
    }

    /// Of the cap, what other processes had leased when the store was last asked; `None`: it could not be.
    pub(super) fn elsewhere(ledger: &Ledger) -> Option<Money> {
        match &ledger.lease {
            Some(lease) => lease.elsewhere,
            None => Some(Money::ZERO),
        }
    }
}
