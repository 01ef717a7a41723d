//! Settles a request that has ended: what it cost is spent, recorded, counted and shown. The usage record is written
//! before the client has the last byte of what it pays for.

use std::time::Instant;

use http::HeaderName;
use jiff::Timestamp;

use super::cost::cost;
use super::response_time::milliseconds;
use crate::formats::HeaderFields;
use crate::metrics::ServedRequest;
use crate::model::{Action, MAX_AMOUNT_LEN, UsageDetails, UsageRecord};
use crate::proxy::context::loss_paths::short_loss_paths;
use crate::proxy::context::{RequestContext, RequestCost};
use crate::proxy::gateway::Gateway;
use crate::translate::RequestSummary;

const COST: HeaderName = HeaderName::from_static("x-omniglot-cost");
pub(in crate::proxy) const ESTIMATED: HeaderName = HeaderName::from_static("x-omniglot-estimated");

impl Gateway {
    /// Counts the error of a request for whoever has its key.
    pub(in crate::proxy) fn count_error(&self, ctx: &RequestContext) {
        if let (Some(key), Some(kind)) = (ctx.client.key(), ctx.error_kind()) {
            let errors = &self.runtime.state.key_errors;
            errors.count(&key.id, kind, Timestamp::now());
        }
    }
}

/// A chunk is about to go out. With the last one, or with the one that readers stop at, the cost is
/// final: nothing that comes later can change it.
pub(in crate::proxy) fn before_chunk(ctx: &mut RequestContext, is_last: bool) {
    let translator = ctx.response.translator.as_ref();
    if is_last || translator.is_some_and(|translator| translator.observer().closed) {
        record(ctx);
    }
}

/// Writes the usage record of a request that took something and pays for it, once.
fn record(ctx: &mut RequestContext) {
    if ctx.billing.is_recorded() {
        return;
    }
    let Some(cost) = cost(ctx) else {
        return;
    };
    let now = Timestamp::now();
    ctx.billing.set_recorded();
    spend(ctx, &cost, now);
    if let Some(journal) = &ctx.billing.journal {
        journal.append(&usage_record(ctx, &cost, now));
    }
}

/// Spends the cost before the store can know of it: what the store knows and the account does not
/// counts as spent by another gateway.
fn spend(ctx: &mut RequestContext, cost: &RequestCost, now: Timestamp) {
    let cost = cost.cost.unwrap_or_default();
    match (ctx.billing.take_reservation(), ctx.client.key()) {
        (Some(reservation), _) => reservation.settle(cost, now),
        (None, Some(key)) => key.spend(cost, now),
        (None, None) => {}
    }
}

fn usage_record<'a>(
    ctx: &'a RequestContext,
    cost: &RequestCost,
    now: Timestamp,
) -> UsageRecord<'a> {
    let translator = ctx.response.translator.as_ref();
    UsageRecord {
        id: ctx.client.request_id().into(),
        at: now.as_millisecond(),
        key_id: ctx.client.owner().into(),
        key: ctx.client.key_name().into(),
        model: ctx.route.model().map_or("", |model| &*model.label).into(),
        upstream: ctx.route.upstream_name().into(),
        format: ctx.client.label().into(),
        stream: ctx.route.is_stream(),
        status: ctx.response.status(),
        usage: cost.metered.usage,
        images: translator.map_or(0, |translator| translator.observer().images),
        estimated: cost.metered.estimated,
        cost: cost.cost.unwrap_or_default(),
        details: usage_details(ctx, cost),
    }
}

/// What explains the cost to who reads the record.
fn usage_details<'a>(ctx: &'a RequestContext, cost: &RequestCost) -> UsageDetails<'a> {
    let attempt = ctx.route.current();
    let (mut dropped, mut adjusted) = (String::new(), String::new());
    if !ctx.attempt.losses.0.is_empty() {
        dropped = short_loss_paths(ctx, |action| action == Action::Dropped);
        adjusted = short_loss_paths(ctx, |action| action != Action::Dropped);
    }
    let first_byte = ctx.response.first_byte();
    UsageDetails {
        prices: attempt
            .map_or("", |attempt| &*attempt.settings.price_text)
            .into(),
        priced: cost.milliseconds.unwrap_or_default(),
        audio: cost.audio_milliseconds.unwrap_or_default(),
        took: milliseconds(ctx.client.elapsed()),
        first_byte: first_byte.map_or(0, milliseconds),
        upstream_format: attempt
            .map_or("", |attempt| attempt.upstream.format.name())
            .into(),
        earlier: ctx.route.earlier_attempts().into(),
        dropped: dropped.into(),
        adjusted: adjusted.into(),
    }
}

/// Adds the cost to the header of a JSON response: a stream's cost is known only when its header is long out.
pub(in crate::proxy) fn add_headers(ctx: &mut RequestContext, fields: &mut HeaderFields) {
    let Some(cost) = cost(ctx) else {
        return;
    };
    if let Some(amount) = cost.cost {
        fields.insert_bytes(COST, amount.format_into(&mut [0; MAX_AMOUNT_LEN]));
    }
    // The body of embeddings has a usage in any case.
    let request = ctx.route.request();
    let is_told = cost.cost.is_some() || request.is_some_and(RequestSummary::is_embedding);
    if cost.metered.estimated && is_told {
        fields.insert(ESTIMATED, true);
    }
}

/// The request has ended: it is paid, counted against its key's limits, and in the metrics.
pub(in crate::proxy) fn settle(ctx: &mut RequestContext) -> Option<RequestCost> {
    let cost = pay(ctx);
    count(ctx, cost);
    cost
}

/// A context that is dropped, as by a panic, never comes to `logging`: what its request took is paid
/// all the same. To its client it is as if the client had left.
impl Drop for RequestContext {
    fn drop(&mut self) {
        if self.billing.is_settled() {
            return;
        }
        self.client.set_left();
        self.response.set_status(499);
        let cost = pay(self);
        if cost.is_some() {
            count(self, cost);
        }
    }
}

fn pay(ctx: &mut RequestContext) -> Option<RequestCost> {
    ctx.billing.set_settled();
    record(ctx);
    let cost = cost(ctx);
    ctx.billing.set_reservation(None);
    if let (Some(key), Some(cost)) = (ctx.client.key(), cost) {
        let usage = cost.metered.usage;
        let tokens = usage.input.saturating_add(usage.output);
        key.limiter
            .charge_tokens(&key.limits, tokens, Instant::now());
        if let Some(admission) = ctx.client.admission() {
            admission.charge(tokens);
        }
    }
    cost
}

fn count(ctx: &RequestContext, cost: Option<RequestCost>) {
    ctx.billing.metrics.record_request(&ServedRequest {
        format: ctx.client.path_label(),
        model: ctx.route.model().map_or("", |model| &model.label),
        upstream: ctx.route.upstream_name(),
        status: ctx.response.status(),
        first_byte: ctx.response.first_byte(),
        added: ctx.response.added(),
        total: ctx.client.elapsed(),
        received: ctx.client.received_bytes(),
        sent: ctx.response.sent_bytes(),
        key: ctx.client.key_name(),
        metered: cost.map(|cost| cost.metered),
        cost: cost.and_then(|cost| cost.cost),
    });
}

#[cfg(test)]
mod tests;
