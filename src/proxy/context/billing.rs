//! The billing part of a request: what it may cost and has cost.

use std::sync::Arc;
use std::time::Duration;

use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::model::Money;
use crate::runtime::KeyReservation;
use crate::translate::{BodyEstimate, MeasuredUsage};

/// The longest response where time has a price, and nothing ends an attempt sooner.
pub(in crate::proxy) const RESERVED_TIME: Duration = Duration::from_secs(60);

/// What the request may cost and has cost.
pub(in crate::proxy) struct BillingState {
    reservation: Option<KeyReservation>,
    /// The bytes of text of the attempt's body beyond those that the reservation of the request is for.
    growth: u64,
    /// What is reserved for the growth of bodies, of any attempt.
    reserved_growth: Money,
    /// What the body was found to hold when its cost was reserved.
    estimate: Option<BodyEstimate>,
    /// About how many tokens were sent, once the body is gone.
    input_tokens: Option<u64>,
    /// What earlier attempts cost whose responses could not be used.
    earlier: Option<RequestCost>,
    cost: Option<RequestCost>,
    /// The usage record is written and paid; it cannot change any more.
    recorded: bool,
    settled: bool,
    pub(in crate::proxy) journal: Option<Arc<Journal>>,
    pub(in crate::proxy) metrics: Arc<Metrics>,
}

/// Usage and cost of a request, computed once.
#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) struct RequestCost {
    pub(in crate::proxy) metered: MeasuredUsage,
    /// `None`: the model has no prices.
    pub(in crate::proxy) cost: Option<Money>,
    /// How long the response took, where time has a price.
    pub(in crate::proxy) milliseconds: Option<u64>,
    /// How long the recording is, where its minutes have a price.
    pub(in crate::proxy) audio_milliseconds: Option<u64>,
}

impl RequestCost {
    /// Adds the cost of a later attempt.
    pub(in crate::proxy) fn plus(self, later: RequestCost) -> RequestCost {
        let (first, second) = (self.metered, later.metered);
        RequestCost {
            metered: MeasuredUsage {
                usage: first.usage.plus(second.usage),
                estimated: first.estimated || second.estimated,
            },
            cost: sum(self.cost, later.cost, |first, second| first + second),
            milliseconds: sum(self.milliseconds, later.milliseconds, u64::saturating_add),
            audio_milliseconds: sum(
                self.audio_milliseconds,
                later.audio_milliseconds,
                u64::saturating_add,
            ),
        }
    }
}

fn sum<T>(first: Option<T>, second: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    match (first, second) {
        (Some(first), Some(second)) => Some(add(first, second)),
        (first, second) => first.or(second),
    }
}

impl BillingState {
    pub(super) fn new(metrics: Arc<Metrics>, journal: Option<Arc<Journal>>) -> BillingState {
        BillingState {
            reservation: None,
            growth: 0,
            reserved_growth: Money::ZERO,
            estimate: None,
            input_tokens: None,
            earlier: None,
            cost: None,
            recorded: false,
            settled: false,
            journal,
            metrics,
        }
    }

    pub(in crate::proxy) fn set_reservation(&mut self, reservation: Option<KeyReservation>) {
        self.reservation = reservation;
    }

    pub(in crate::proxy) const fn is_reserved(&self) -> bool {
        self.reservation.is_some()
    }

    /// What is reserved for the request.
    pub(in crate::proxy) fn reserved(&self) -> Option<Money> {
        self.reservation.as_ref().map(KeyReservation::amount)
    }

    pub(in crate::proxy) const fn growth(&self) -> u64 {
        self.growth
    }

    pub(in crate::proxy) const fn reserved_growth(&self) -> Money {
        self.reserved_growth
    }

    /// The body of the attempt has so many more bytes of text than the reservation of the request is for.
    pub(in crate::proxy) const fn set_growth(&mut self, bytes: u64) {
        self.growth = bytes;
    }

    /// More is reserved for the growth of a body.
    pub(in crate::proxy) fn add_reserved_growth(&mut self, most: Money) {
        self.reserved_growth += most;
    }

    /// Adds to what is reserved.
    pub(in crate::proxy) fn add_reservation(&mut self, more: KeyReservation) {
        match &mut self.reservation {
            Some(reservation) => reservation.add(more),
            none => *none = Some(more),
        }
    }

    pub(in crate::proxy) fn take_reservation(&mut self) -> Option<KeyReservation> {
        self.reservation.take()
    }

    pub(in crate::proxy) const fn estimate(&self) -> Option<BodyEstimate> {
        self.estimate
    }

    pub(in crate::proxy) const fn set_estimate(&mut self, estimate: BodyEstimate) {
        self.estimate = Some(estimate);
    }

    pub(in crate::proxy) const fn input_tokens(&self) -> Option<u64> {
        self.input_tokens
    }

    pub(in crate::proxy) const fn set_input_tokens(&mut self, tokens: u64) {
        self.input_tokens = Some(tokens);
    }

    pub(in crate::proxy) const fn earlier(&self) -> Option<RequestCost> {
        self.earlier
    }

    pub(in crate::proxy) const fn set_earlier(&mut self, cost: Option<RequestCost>) {
        self.earlier = cost;
    }

    pub(in crate::proxy) const fn cost(&self) -> Option<RequestCost> {
        self.cost
    }

    pub(in crate::proxy) const fn set_cost(&mut self, cost: Option<RequestCost>) {
        self.cost = cost;
    }

    pub(in crate::proxy) const fn is_recorded(&self) -> bool {
        self.recorded
    }

    pub(in crate::proxy) const fn set_recorded(&mut self) {
        self.recorded = true;
    }

    pub(in crate::proxy) const fn is_settled(&self) -> bool {
        self.settled
    }

    pub(in crate::proxy) const fn set_settled(&mut self) {
        self.settled = true;
    }
}
