//! What is reserved for a request: of the spending cap of its key, and of that of the key's owner.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Key, Reservation};
use crate::model::Money;

#[must_use = "the money is released when this is dropped"]
pub struct KeyReservation {
    key: Arc<Key>,
    amount: Money,
    /// `None`: there is no such cap.
    own: Option<Reservation>,
    of_owner: Option<Reservation>,
}

impl KeyReservation {
    pub const fn new(
        key: Arc<Key>,
        amount: Money,
        own: Option<Reservation>,
        of_owner: Option<Reservation>,
    ) -> KeyReservation {
        KeyReservation {
            key,
            amount,
            own,
            of_owner,
        }
    }

    /// The amount that is reserved.
    pub const fn amount(&self) -> Money {
        self.amount
    }

    /// Adds another reservation of the same key.
    pub fn add(&mut self, more: KeyReservation) {
        self.amount += more.amount;
        add(&mut self.own, more.own);
        add(&mut self.of_owner, more.of_owner);
    }

    /// Replaces the reservation by the real cost when the request has ended.
    pub fn settle(self, cost: Money, now: Timestamp) {
        match self.own {
            Some(own) => own.settle(cost, now),
            None => self.key.account.spend(cost, now),
        }
        match (self.of_owner, &self.key.owner) {
            (Some(of_owner), _) => of_owner.settle(cost, now),
            (None, Some(owner)) => owner.account.spend(cost, now),
            (None, None) => {}
        }
    }
}

fn add(held: &mut Option<Reservation>, more: Option<Reservation>) {
    match (held.as_mut(), more) {
        (Some(held), Some(more)) => held.add(more),
        (None, Some(more)) => *held = Some(more),
        (_, None) => {}
    }
}
