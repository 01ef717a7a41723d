//! The receipt of a request, written down before its client has the last byte of what it pays for.

use jiff::Timestamp;

use super::bill::{self, Bill};
use super::context::RequestContext;
use crate::model::UsageRecord;

/// A piece is about to go out. With the last one, or with the one that readers stop at, the bill
/// is final: nothing that comes later can change it.
pub(super) fn before_piece(exchange: &mut RequestContext, is_last: bool) {
    let closed = |exchange: &RequestContext| {
        let reply = exchange.reply.as_ref();
        reply.is_some_and(|reply| reply.watch().closed)
    };
    if is_last || closed(exchange) {
        write(exchange);
    }
}

/// There is one for every request that took something, however often this is called, and it is paid with it.
pub(super) fn write(exchange: &mut RequestContext) {
    if exchange.receipted {
        return;
    }
    let Some(bill) = bill::of(exchange) else {
        return;
    };
    let now = Timestamp::now();
    exchange.receipted = true;
    spend(exchange, &bill, now);
    if let Some(journal) = &exchange.journal {
        journal.append(&receipt(exchange, &bill, now));
    }
}

/// Before the store can know of it: what it knows and the account does not counts as spent by somebody else.
fn spend(exchange: &mut RequestContext, bill: &Bill, now: Timestamp) {
    let cost = bill.cost.unwrap_or_default();
    match (exchange.hold.take(), &exchange.key) {
        (Some(hold), _) => hold.settle(cost, now),
        (None, Some(key)) => key.account.spend(cost, now),
        (None, None) => {}
    }
}

fn receipt<'a>(exchange: &'a RequestContext, bill: &Bill, now: Timestamp) -> UsageRecord<'a> {
    let (key, model) = (exchange.key.as_ref(), exchange.model.as_ref());
    let upstream = exchange.attempt().map(|attempt| &*attempt.upstream.name);
    UsageRecord {
        id: (&*exchange.request_id).into(),
        at: now.as_millisecond(),
        key: key.map_or("", |key| &*key.name).into(),
        model: model.map_or("", |model| &*model.label).into(),
        upstream: upstream.unwrap_or_default().into(),
        format: exchange.format.name().into(),
        stream: exchange.wanted.as_ref().is_some_and(|wanted| wanted.stream),
        status: exchange.status,
        usage: bill.metered.usage,
        images: exchange
            .reply
            .as_ref()
            .map_or(0, |reply| reply.watch().pictures),
        estimated: bill.metered.estimated,
        cost: bill.cost.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
