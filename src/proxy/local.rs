//! Answers that the gateway gives by itself: model lists, files, estimated token counts, and errors.

pub(super) mod image_files;
pub(super) mod image_tasks;
mod own_key;
mod own_request;
mod stored_response;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, UPGRADE};
use http::{HeaderValue, StatusCode};
use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::{ProxyHttp as _, Session};

use super::billing::settlement;
use super::connection::listener;
use super::context::RequestContext;
use super::downstream::{write_body, write_header};
use super::endpoint::Endpoint;
use super::gateway::Gateway;
use super::timer::is_downstream;
use super::{cors, downstream};
use crate::catalog::{self, CatalogEntry};
use crate::config::{self, UpstreamPaths};
use crate::formats::{
    AWS_ERROR_TYPE, HeaderFields, Operation, encode_aws_error, encode_bedrock_token_count,
};
use crate::model::{ApiError, ApiErrorKind, truncated};
use crate::runtime::Upstream;
use crate::translate;

/// An early answer must reach a client that is still sending: what it sends is discarded this long.
const DRAIN_REQUEST: Duration = Duration::from_secs(10);

/// Room for all headers of such an answer.
const HEADERS: usize = 24;

/// Sends a JSON document with its length.
pub(super) async fn respond_json(
    session: &mut Session,
    ctx: &mut RequestContext,
    status: u16,
    body: impl Into<Bytes>,
    fields: HeaderFields,
) -> Result<()> {
    let content_type = HeaderValue::from_static("application/json");
    respond(session, ctx, (status, content_type), body.into(), fields).await
}

/// Sends a stored image.
pub(super) async fn respond_file(
    session: &mut Session,
    ctx: &mut RequestContext,
    mime: &'static str,
    body: Bytes,
) -> Result<()> {
    let content_type = HeaderValue::from_static(mime);
    let fields = HeaderFields::default();
    respond(session, ctx, (200, content_type), body, fields).await
}

/// Answers a browser that asks whether a page may send a request.
pub(super) async fn respond_preflight(
    session: &mut Session,
    ctx: &mut RequestContext,
) -> Result<()> {
    let fields = cors::preflight_fields(session.req_header());
    let content_type = HeaderValue::from_static("text/plain");
    respond(session, ctx, (200, content_type), Bytes::new(), fields).await
}

async fn respond(
    session: &mut Session,
    ctx: &mut RequestContext,
    (status, content_type): (u16, HeaderValue),
    body: Bytes,
    mut fields: HeaderFields,
) -> Result<()> {
    let (mut parts, ()) = http::Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(status).unwrap_or_default();
    parts.headers.reserve(HEADERS);
    parts.headers.insert(CONTENT_TYPE, content_type);
    parts.headers.insert(CONTENT_LENGTH, body.len().into());
    downstream::add_request_id(ctx, &mut fields);
    downstream::add_rate_limits(ctx, &mut fields);
    downstream::insert_fields(fields, &mut parts.headers)?;
    session.set_close_on_response_before_downstream_finish(false);
    session.set_total_drain_timeout(Some(DRAIN_REQUEST));
    write_header(session, ctx, parts.into()).await?;
    write_body(session, ctx, Some(body), true).await?;
    if session.get_keepalive().is_none() && !session.is_http2() {
        // A connection that is closed while the client still sends takes the answer with it.
        // pingora discards the rest only where the connection is kept; errors end it anyway.
        let _ = session.drain_request_body().await;
    }
    Ok(())
}

/// Tells the client of the failure of its request; whether it got all of that.
pub(super) async fn respond_failure(
    session: &mut Session,
    ctx: &mut RequestContext,
    error: &Error,
) -> bool {
    // Also where the attempt before failed: nobody is there to hear of it.
    if is_downstream(error) || ctx.client.has_left() {
        ctx.client.set_left();
        ctx.response.set_status(499);
        return false;
    }
    match ctx.response.take_error() {
        Some(api_error) => respond_error(session, ctx, &api_error).await.is_ok(),
        None => {
            log::error!("{}: {error}", ctx.client.request_id());
            let api_error = ApiError::new(ApiErrorKind::Internal, "the gateway failed");
            respond_error(session, ctx, &api_error).await.is_ok()
        }
    }
}

/// Sends an error in the client's format; inside the stream once that has begun.
async fn respond_error(
    session: &mut Session,
    ctx: &mut RequestContext,
    api_error: &ApiError,
) -> Result<()> {
    if ctx.response.header_sent() {
        let translator = ctx.response.translator.as_mut();
        if translator.as_ref().is_some_and(|it| !it.can_tell_error()) {
            // A proper end would make it look whole.
            return Error::e_explain(ErrorType::ConnectionClosed, "a recording broke off");
        }
        let last = translator.map(|translator| translator.encode_stream_error(api_error));
        return write_body(session, ctx, last, true).await;
    }
    let is_refused = matches!(
        api_error.kind,
        ApiErrorKind::Unauthenticated | ApiErrorKind::RateLimited
    );
    if is_refused && listener::has_no_key() {
        // Whoever has no key keeps no connection.
        session.set_keepalive(None);
    }
    let mut fields = HeaderFields::default();
    let (status, body) = match ctx.client.is_bedrock() {
        true => {
            let (name, body) = encode_aws_error(api_error);
            fields.insert(AWS_ERROR_TYPE, name);
            (api_error.status, body)
        }
        false => {
            let codec = ctx.client.codec();
            codec.encode_error(api_error, ctx.client.request_id())
        }
    };
    if let Some(delay) = api_error.retry_after {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        fields.insert_number(RETRY_AFTER, seconds, "");
    }
    if api_error.status == 426 {
        fields.insert(UPGRADE, "HTTP/1.1");
    } else if let Some(allowed) = &api_error.allowed {
        fields.insert(ALLOW, &**allowed);
    }
    if ctx.route.tried() > 0 {
        downstream::add_upstream(ctx, &mut fields);
        downstream::add_losses(ctx, &mut fields);
    }
    respond_json(session, ctx, status, body, fields).await
}

/// The body of a model list, of one model, or of the public catalog.
pub(super) fn list_models<'a>(
    ctx: &'a RequestContext,
    endpoint: &Endpoint,
    query: Option<&str>,
) -> Result<Vec<u8>, ApiError> {
    let key = ctx.client.key();
    let may_use = |id: &str| key.is_none_or(|key| key.allows(id));
    let discovered: Vec<(String, &config::ModelConfig)> = match endpoint {
        Endpoint::Catalog | Endpoint::ListModels(_) => {
            let discovered = ctx.snapshot.discovered();
            discovered
                .map(|(name, model)| (name, &model.settings))
                .collect()
        }
        _ => Vec::new(),
    };
    let visible = || -> Vec<CatalogEntry<'_>> {
        let models = ctx.snapshot.models.iter().map(|model| &model.settings);
        // An id with a `*` is no name that a client could ask for.
        let listed = models.filter(|model| !model.is_pattern());
        let entries = |model: &'a config::ModelConfig| {
            let names = model.names();
            names.map(move |id| CatalogEntry { id, model })
        };
        let discovered = discovered.iter();
        let discovered = discovered.map(|(id, model)| CatalogEntry { id, model });
        let entries = listed.flat_map(entries).chain(discovered);
        entries.filter(|entry| may_use(entry.id)).collect()
    };
    match endpoint {
        Endpoint::Catalog => catalog::public_page(&visible(), query),
        Endpoint::ListModels(format) => catalog::list(*format, &visible(), query),
        Endpoint::GetModel(format, id) => {
            let asked = ctx.snapshot.model(id).filter(|_| may_use(id));
            let asked = asked.ok_or_else(|| unknown_model(id))?;
            let model = &asked.model.settings;
            Ok(catalog::single(*format, CatalogEntry { id, model }))
        }
        Endpoint::Model { .. }
        | Endpoint::OwnKey
        | Endpoint::OwnRequest(_)
        | Endpoint::StoredResponse(..)
        | Endpoint::ImageTasks(_)
        | Endpoint::ImageFile(_) => Err(ApiError::new(ApiErrorKind::Internal, "this is no list")),
    }
}

pub(super) fn unknown_model(id: &str) -> ApiError {
    let id = truncated(id);
    let message = format!("the model `{id}` does not exist; GET /v1/models lists those that do");
    ApiError::new(ApiErrorKind::NotFound, message).at("model")
}

/// Whether tokens are counted for the next attempt, whose upstream has no way to ask for it.
pub(super) fn counts_tokens_here(ctx: &RequestContext) -> bool {
    let has_no_counter = |upstream: &Upstream| {
        let paths = upstream.paths.as_ref();
        upstream.format.codec().token_counter().is_none()
            || paths.is_some_and(UpstreamPaths::has_no_counter)
    };
    let next = ctx.route.next();
    ctx.route.is_token_count() && next.is_some_and(|attempt| has_no_counter(&attempt.upstream))
}

impl Gateway {
    /// Answers an attempt with an estimate. The request is translated all the same, to find out what
    /// the upstream could not be told; nobody is asked.
    pub(super) async fn estimate_tokens(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
    ) -> Result<()> {
        ctx.start_attempt();
        self.request_body_filter(session, &mut None, true, ctx)
            .await?;
        ctx.route.withdraw_attempt();
        match estimated_tokens(ctx) {
            Ok(body) => respond_token_count(session, ctx, body).await,
            Err(api_error) => Err(ctx.set_error(api_error)),
        }
    }
}

/// Whether an upstream's refusal says that it has no token counter, though its format has one. Where
/// it speaks of the model instead, nothing would answer for that model either.
pub(super) fn has_no_token_counter(
    ctx: &RequestContext,
    status: u16,
    api_error: &ApiError,
) -> bool {
    let Some(attempt) = ctx.route.current().filter(|_| ctx.route.is_token_count()) else {
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
        // Bedrock's words for most of its models.
        400 => message.contains("support counting tokens"),
        _ => false,
    }
}

pub(super) fn estimated_tokens(ctx: &mut RequestContext) -> Result<Vec<u8>, ApiError> {
    let count = translate::estimate_token_count(
        ctx.client.format(),
        &ctx.route.body,
        &mut ctx.attempt.losses,
    )?;
    match ctx.client.is_bedrock() {
        true => encode_bedrock_token_count(&count),
        false => Ok(count),
    }
}

/// Sends an estimated token count, and says that it is one.
pub(super) async fn respond_token_count(
    session: &mut Session,
    ctx: &mut RequestContext,
    body: Vec<u8>,
) -> Result<()> {
    ctx.route.clear_attempts();
    let mut fields = HeaderFields::default();
    downstream::add_losses(ctx, &mut fields);
    fields.insert(settlement::ESTIMATED, true);
    respond_json(session, ctx, 200, body, fields).await
}
