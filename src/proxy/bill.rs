//! What a request may cost, before it goes on, and what it has cost, when its reply is there.

use std::time::Duration;

use http::HeaderName;

use super::context::RequestContext;
use crate::access::{self, Leases, PendingReservation, Reserve};
use crate::formats::{HeaderFields, Operation};
use crate::model::{ApiError, MAX_AMOUNT_LEN, Money};
use crate::runtime::{Attempt, Prices};
use crate::translate::{Bulk, Metered};

/// Of models that do not say how long their answers are, where the request does not either.
const LONGEST_ANSWER: u64 = 4096;

/// Where time has a price, and nothing ends an attempt sooner.
const LONGEST_REPLY: Duration = Duration::from_secs(60);

/// What a request has taken, made out once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bill {
    pub(super) metered: Metered,
    /// `None`: the model has no prices.
    pub(super) cost: Option<Money>,
    /// How long the reply took, where time has a price.
    pub(super) milliseconds: Option<u64>,
}

/// Holds back what the dearest of the attempts may cost, for a key with a cap; or says what to wait for.
pub(super) fn reserve(
    leases: Option<&Leases>,
    exchange: &mut RequestContext,
) -> Result<Option<PendingReservation>, ApiError> {
    let Some(key) = exchange.key.as_ref().filter(|key| key.cap.is_some()) else {
        return Ok(None);
    };
    let wanted = exchange.wanted.as_ref();
    let Some(wanted) = wanted.filter(|wanted| wanted.operation != Operation::CountTokens) else {
        return Ok(None);
    };
    let mut attempts = exchange.attempts.iter();
    if !attempts.any(|attempt| attempt.settings.prices.is_some()) {
        return Ok(None);
    }
    let most = wanted.most(exchange.format.codec(), &exchange.body);
    let input = Bulk::of(&exchange.body).most_tokens();
    let of_attempt = |attempt: &Attempt| {
        let prices = attempt.settings.prices?;
        let usual = attempt.settings.settings.max_output_tokens;
        let output = most.output.or(usual).unwrap_or(LONGEST_ANSWER);
        let longest = attempt.timeouts.total.unwrap_or(LONGEST_REPLY);
        let output = output.saturating_mul(most.choices);
        Some(prices.max_cost(input, output, milliseconds(longest)))
    };
    let most = exchange.attempts.iter().filter_map(of_attempt).max();
    let most = most.unwrap_or_default();
    match access::reserve(leases, key, most, jiff::Timestamp::now())? {
        Reserve::Ready(hold) => {
            exchange.hold = hold;
            Ok(None)
        }
        Reserve::Pending(waiting) => Ok(Some(waiting)),
    }
}

/// The one bill of a request, by the prices of the model that answered.
pub(super) fn of(exchange: &mut RequestContext) -> Option<Bill> {
    if exchange.bill.is_none() {
        exchange.bill = make(exchange);
    }
    exchange.bill
}

fn make(exchange: &RequestContext) -> Option<Bill> {
    let metered = metered(exchange)?;
    let prices = exchange.attempt()?.settings.prices;
    let took = exchange.asked_at.map(|since| since.elapsed());
    let took = milliseconds(took.unwrap_or_default());
    Some(Bill {
        metered,
        cost: prices.map(|prices| prices.cost(&metered.usage, took)),
        milliseconds: prices.filter(Prices::charges_time).map(|_| took),
    })
}

/// What is answered with an error costs nothing. A stream that breaks off costs what came of it,
/// and a client that leaves what it had asked until then.
fn metered(exchange: &RequestContext) -> Option<Metered> {
    if is_count(exchange) {
        return None;
    }
    let left = exchange.client_left;
    let reply = exchange.reply.as_ref().filter(|reply| {
        let watch = reply.watch();
        let is_whole = watch.ended && watch.api_error.is_none();
        (is_whole || exchange.status == 200 || left) && (watch.begun || watch.usage.is_some())
    });
    match reply {
        Some(reply) => Some(reply.metered(|| input(exchange))),
        None if left && exchange.asked_at.is_some() => Some(Metered::unanswered(input(exchange))),
        None => None,
    }
}

/// About how many tokens were sent. The body itself is not kept until the end of a stream.
pub(super) fn input(exchange: &RequestContext) -> u64 {
    let known = exchange.input;
    known.unwrap_or_else(|| Bulk::of(&exchange.body).tokens())
}

fn is_count(exchange: &RequestContext) -> bool {
    let wanted = exchange.wanted.as_ref();
    wanted.is_some_and(|wanted| wanted.operation == Operation::CountTokens)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

const COST: HeaderName = HeaderName::from_static("x-omniglot-cost");
pub(super) const ESTIMATED: HeaderName = HeaderName::from_static("x-omniglot-estimated");

/// For the header of a JSON reply: a stream's cost is known only when its header is long out.
pub(super) fn headers(exchange: &mut RequestContext, fields: &mut HeaderFields) {
    let Some(bill) = of(exchange) else {
        return;
    };
    let Some(cost) = bill.cost else {
        return;
    };
    fields.spell(COST, cost.format_into(&mut [0; MAX_AMOUNT_LEN]));
    if bill.metered.estimated {
        fields.say(ESTIMATED, true);
    }
}
