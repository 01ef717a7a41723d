//! Counts of tokens that no upstream gives: estimated here, and said to be so.

use super::Session;
use pingora_core::Result;

use super::bill::ESTIMATED;
use super::context::RequestContext;
use super::{Gateway, answer, outgoing};
use crate::formats::{HeaderFields, Operation};
use crate::model::ApiError;
use crate::translate;

/// Whether the next attempt is at an upstream whose format has no way to ask for a count.
pub(super) fn is_ours(exchange: &RequestContext) -> bool {
    let next = exchange.attempts.get(exchange.tried);
    counts(exchange)
        && next.is_some_and(|attempt| attempt.upstream.format.codec().counter().is_none())
}

fn counts(exchange: &RequestContext) -> bool {
    let wanted = exchange.wanted.as_ref();
    wanted.is_some_and(|wanted| wanted.operation == Operation::CountTokens)
}

/// An attempt that ends here: what the upstream could not be told is found out, nobody is asked.
pub(super) async fn estimate(
    gateway: &Gateway,
    session: &mut Session,
    exchange: &mut RequestContext,
) -> Result<()> {
    exchange.begin_attempt();
    gateway.prepare(exchange)?;
    exchange.withdraw_attempt();
    match estimated(exchange) {
        Ok(body) => tell(session, exchange, body).await,
        Err(api_error) => Err(gateway.park(exchange, api_error)),
    }
}

/// Whether an upstream's refusal says that it has no counter, though its format has one. Where
/// it speaks of the model instead, nothing would answer for that model either.
pub(super) fn is_missing(exchange: &RequestContext, status: u16, api_error: &ApiError) -> bool {
    let Some(attempt) = exchange.attempt().filter(|_| counts(exchange)) else {
        return false;
    };
    let codec = attempt.upstream.format.codec();
    let path = codec.upstream_path(Operation::CountTokens, &attempt.model);
    let counter = path.rsplit(['/', ':']).next().unwrap_or(&path);
    let (message, model) = (&api_error.message, &*attempt.model);
    let names_model = message.contains(model) && !message.contains(counter);
    match status {
        405 | 501 => true,
        404 => !names_model,
        _ => false,
    }
}

pub(super) fn estimated(exchange: &mut RequestContext) -> Result<Vec<u8>, ApiError> {
    translate::estimated(exchange.format, &exchange.body, &mut exchange.losses)
}

pub(super) async fn tell(
    session: &mut Session,
    exchange: &mut RequestContext,
    body: Vec<u8>,
) -> Result<()> {
    // No upstream answers, not even one that was asked.
    exchange.attempts.clear();
    let mut extra = HeaderFields::default();
    outgoing::lost(exchange, &mut extra);
    extra.say(ESTIMATED, true);
    answer::json(session, exchange, 200, body, extra).await
}
