//! From a request's header and body to the attempts that may answer it.

use http::HeaderMap;
use pingora_http::RequestHeader;
use tokio::time::Instant;

use super::answer;
use super::context::RequestContext;
use super::kept;
use crate::access;
use crate::config::Balance;
use crate::formats::Operation;
use crate::model::{ApiError, Format};
use crate::runtime::{Conversations, Model, attempts};
use crate::translate::RequestSummary;

/// More than any client needs; what is longer is an accident or an attack.
const HEADER_LIMIT: usize = 64 << 10;

/// The model that is wanted, if the key opens it, and who may answer for it.
pub(super) fn route(
    conversations: &Conversations,
    exchange: &mut RequestContext,
    client: &HeaderMap,
    operation: Operation,
    path_model: Option<&str>,
) -> Result<(), ApiError> {
    let codec = exchange.format.codec();
    let mut wanted = RequestSummary::of(codec, operation, path_model, &exchange.body)?;
    if kept::resume(conversations, exchange, wanted.thread.take())? {
        wanted = RequestSummary::of(codec, operation, path_model, &exchange.body)?;
    }
    if let Some(key) = &exchange.key {
        access::authorize_model(key, &wanted.model)?;
    }
    let model = exchange.snapshot.models.get(&wanted.model);
    let model = model
        .ok_or_else(|| answer::unknown_model(&wanted.model))?
        .clone();
    exchange.attempts = attempts(
        &exchange.snapshot,
        &model,
        affinity(exchange, client, &model),
    );
    if exchange.format == Format::Images {
        must_draw(&model)?;
    }
    let limit = model.settings.retries.total_timeout;
    exchange.give_up = limit.map(|limit| Instant::now() + limit);
    exchange.model = Some(model);
    let format = exchange.format;
    let mut formats = exchange.attempts.iter();
    if formats.any(|attempt| attempt.upstream.format == format) {
        let by_the_rules = exchange.snapshot.server.validate_native;
        wanted.inspect(codec, &exchange.body, &exchange.traits(), by_the_rules)?;
    }
    exchange.wanted = Some(wanted);
    Ok(())
}

fn must_draw(model: &Model) -> Result<(), ApiError> {
    if model.settings.has_image_output() {
        return Ok(());
    }
    let id = &model.settings.id;
    let message = format!("invalid model: `{id}` makes no pictures");
    let mut api_error = ApiError::invalid(message).at("model");
    api_error.code = Some("invalid_model".to_owned());
    Err(api_error)
}

/// What ties a conversation to one of several upstreams.
fn affinity<'a>(
    exchange: &'a RequestContext,
    client: &'a HeaderMap,
    model: &Model,
) -> Option<&'a [u8]> {
    let key = || exchange.key.as_ref().map(|key| key.name.as_bytes());
    match &model.settings.balance {
        Balance::Weighted | Balance::LeastInFlight => None,
        Balance::Key => key(),
        // Without the header it is still the same caller.
        Balance::Header(name) => client.get(name).map(|value| value.as_bytes()).or_else(key),
    }
}

pub(super) fn within_limit(header: &RequestHeader) -> Result<(), ApiError> {
    let fields: usize = header
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let target = header
        .uri
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    if fields + target <= HEADER_LIMIT {
        return Ok(());
    }
    let mut api_error =
        ApiError::invalid(format!("the header is longer than {HEADER_LIMIT} bytes"));
    api_error.status = 431;
    Err(api_error)
}
