//! The work of `request_filter`: endpoint, key, body, model and reservation, then the forwarding loop.

use std::pin::pin;

use bytes::Bytes;
use http::HeaderMap;
use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::Session;

use super::context::RequestContext;
use super::conversation::ConversationContext;
use super::endpoint;
use super::endpoint::Endpoint;
use super::endpoint::cloud_path;
use super::gateway::Gateway;
use super::local::image_tasks;
use super::request::request_body;
use super::request::{admission, inspected_request, model_suffix, request_framing};
use super::{billing, cors, large_body, local};
use crate::access;
use crate::config::Balance;
use crate::formats::{HeaderFields, Operation};
use crate::model::{ApiError, ApiErrorKind, Format, truncated};
use crate::runtime::{AskedModel, Caller, Conversations, Model, attempts};
use crate::translate::RequestSummary;

impl Gateway {
    /// Answers a request, or fails; when the gateway stops, whatever is under way ends with an error.
    pub(super) async fn handle(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
    ) -> Result<()> {
        self.start_trace(session, ctx);
        let stop = pin!(self.stop.notified());
        if !self.is_stopping() {
            tokio::select! {
                biased;
                done = self.route_and_forward(session, ctx) => return done,
                () = stop => {}
            }
        }
        if ctx.response.is_writing() || ctx.client.has_left() {
            // Half of a chunk is out: whatever came now would stand in the middle of it. Or nobody is there to read it.
            return Error::e_explain(ErrorType::ConnectionClosed, "stopped")
                .map_err(|error: Box<Error>| error.into_down());
        }
        let api_error = ApiError::new(ApiErrorKind::Overloaded, "the gateway is shutting down");
        Err(ctx.set_error(api_error))
    }

    async fn route_and_forward(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
    ) -> Result<()> {
        let path = session.req_header().uri.path();
        ctx.client.set_format(endpoint::error_format(path));
        ctx.client.set_bedrock(cloud_path::is_bedrock(path));
        if let Err(api_error) = request_framing::check(session) {
            return Err(ctx.set_error(api_error));
        }
        if cors::is_preflight(ctx.snapshot.server.cors.as_ref(), session.req_header()) {
            return local::respond_preflight(session, ctx).await;
        }
        let endpoint = match self.authenticate(session, ctx) {
            Ok((endpoint, caller)) => {
                let address = admission::client_address(session);
                let admitted = self.admit(ctx, &endpoint, caller, address).await;
                if matches!(endpoint, Endpoint::Model { .. }) {
                    inspected_request::begin(session, ctx);
                }
                match admitted {
                    Ok(()) => endpoint,
                    Err(api_error) => return Err(ctx.set_error(api_error)),
                }
            }
            Err(api_error) => return Err(ctx.set_error(api_error)),
        };
        let state = &self.runtime.state;
        ctx.route.body_memory = match ctx.client.key() {
            Some(key) => state.body_memory(&key.share),
            None => state.keyless_memory(),
        };
        let Endpoint::Model { operation, .. } = &endpoint else {
            return self.answer_locally(session, ctx, &endpoint).await;
        };
        request_body::receive(session, ctx, *operation).await?;
        let model = match self.prepare_body(session, ctx, &endpoint).await {
            Ok(model) => model,
            Err(api_error) => return Err(ctx.set_error(api_error)),
        };
        let routed = self.route(session, ctx, *operation, model).await;
        let client = &session.req_header().headers;
        if routed.is_ok() && image_tasks::is_requested(ctx, client) {
            return Box::pin(self.create_image_task(session, ctx)).await;
        }
        let reserved = match routed {
            Ok(()) => match self.acquire_slot(ctx).await {
                Ok(()) => self.reserve(ctx).await,
                Err(api_error) => Err(api_error),
            },
            Err(api_error) => Err(api_error),
        };
        match reserved {
            Ok(()) => self.forward(session, ctx).await,
            Err(api_error) => Err(ctx.set_error(api_error)),
        }
    }

    /// Answers what needs no model: lists, image tasks and files, stored responses. What is sent counts among the memory
    /// of all bodies until the client has read it.
    async fn answer_locally(
        &self,
        session: &mut Session,
        ctx: &mut RequestContext,
        endpoint: &Endpoint,
    ) -> Result<()> {
        if let Endpoint::ImageFile(id) = endpoint {
            let file = self.files.get(ctx.client.owner(), id).and_then(|file| {
                request_body::count_response(ctx, file.bytes.len())?;
                Ok(file)
            });
            return match file {
                Ok(file) => local::respond_file(session, ctx, file.mime, file.bytes).await,
                Err(api_error) => Err(ctx.set_error(api_error)),
            };
        }
        let query = session.req_header().uri.query();
        let answered = match endpoint {
            Endpoint::ImageTasks(action) => {
                let answered = Box::pin(self.image_tasks(ctx, action, query)).await;
                answered.map(|(status, body)| (status, body.into()))
            }
            Endpoint::StoredResponse(action, id) => {
                let answered = Box::pin(self.stored_response(ctx, *action, id, query)).await;
                answered.map(|body| (200, body))
            }
            Endpoint::OwnKey => {
                let answered = Box::pin(self.own_key(ctx)).await;
                answered.map(|body| (200, body.into()))
            }
            Endpoint::OwnRequest(id) => {
                let answered = Box::pin(self.own_request(ctx, id)).await;
                answered.map(|body| (200, body.into()))
            }
            _ => local::list_models(ctx, endpoint, query).map(|body| (200, body.into())),
        };
        let answered = answered.and_then(|(status, body): (u16, Bytes)| {
            request_body::count_response(ctx, body.len())?;
            Ok((status, body))
        });
        match answered {
            Ok((status, body)) => {
                local::respond_json(session, ctx, status, body, HeaderFields::default()).await
            }
            Err(api_error) => Err(ctx.set_error(api_error)),
        }
    }

    /// Finds the model and its attempts; a stored response that memory has lost is restored first.
    async fn route(
        &self,
        session: &Session,
        ctx: &mut RequestContext,
        operation: Operation,
        path_model: Option<&str>,
    ) -> Result<(), ApiError> {
        let conversations = &self.runtime.conversations;
        let client = &session.req_header().headers;
        let body = ctx.route.body.clone();
        let size = body.len();
        let place = self.large_body_place(ctx, size).await;
        ctx.route.conversation.set_place(place.is_some());
        let mut routed = large_body::process(size, || {
            route(conversations, ctx, client, operation, path_model)
        });
        drop(place);
        if ctx.route.conversation.needs_place() {
            // The conversation is long, however short the body is. All is done once more, as if it had been known.
            ctx.route.body = body.clone();
            let _place = self.large_body_place(ctx, usize::MAX).await;
            ctx.route.conversation = ConversationContext::in_place();
            routed = route(conversations, ctx, client, operation, path_model);
        }
        if let Some(store) = self.conversation_store.as_deref()
            && ctx.route.conversation.misses_a_response()
            && Box::pin(restore_conversation(conversations, store, ctx)).await
        {
            ctx.route.body = body;
            let _place = self.large_body_place(ctx, usize::MAX).await;
            ctx.route.conversation.set_place(true);
            return large_body::process(size, || {
                route(conversations, ctx, client, operation, path_model)
            });
        }
        routed
    }

    /// Reserves what the request may cost; where another gateway has leased the rest of the cap, this waits for it.
    pub(super) async fn reserve(&self, ctx: &mut RequestContext) -> Result<(), ApiError> {
        let size = ctx.route.body.len();
        let place = self.large_body_place(ctx, size).await;
        let reserve = || billing::reserve(self.leases.as_deref(), ctx);
        let reserved = large_body::process(size, reserve);
        drop(place);
        if let Some(waiting) = reserved? {
            let reservation = Box::pin(waiting.wait()).await?;
            ctx.billing.set_reservation(Some(reservation));
        }
        Ok(())
    }
}

async fn restore_conversation(
    conversations: &Conversations,
    store: &super::ConversationStore,
    ctx: &mut RequestContext,
) -> bool {
    let conversation = std::mem::take(&mut ctx.route.conversation);
    let scope = ctx.conversation_scope();
    let restored = conversation
        .restore_missing(conversations, store, scope)
        .await;
    // What was restored is looked for once more, from the start.
    if !restored {
        ctx.route.conversation = conversation;
    }
    restored
}

/// Finds the model that is asked for, if the key may use it, and the attempts that may answer.
pub(super) fn route(
    conversations: &Conversations,
    ctx: &mut RequestContext,
    client: &HeaderMap,
    operation: Operation,
    path_model: Option<&str>,
) -> Result<(), ApiError> {
    let codec = ctx.client.codec();
    let mut request = RequestSummary::new(codec, operation, path_model, &ctx.route.body)?;
    if resume_conversation(conversations, ctx, &mut request)? {
        let body = &ctx.route.body;
        let summarize = || RequestSummary::new(codec, operation, path_model, body);
        request = large_body::process(body.len(), summarize)?;
    }
    let asked = match find_model(ctx, &request.model, operation) {
        Ok(asked) => asked,
        Err(api_error) => {
            ctx.route.set_refused_model(&request.model);
            return Err(api_error);
        }
    };
    let model = asked.model.clone();
    let attempts = attempts(
        &ctx.snapshot,
        &asked,
        ctx.client.format(),
        operation,
        &Caller {
            headers: client,
            affinity: affinity(ctx, client, &model),
            key: ctx.client.key().map(|key| &**key),
        },
    );
    if attempts.is_empty() {
        let api_error = no_upstream(asked.name);
        ctx.route.set_refused_model(&request.model);
        return Err(api_error);
    }
    let key = ctx.client.key().map(|key| &**key);
    if let Err(api_error) = model_suffix::check(key, &asked, &attempts) {
        ctx.route.set_refused_model(&request.model);
        return Err(api_error);
    }
    let format = ctx.client.format();
    let is_passthrough = attempts
        .iter()
        .any(|attempt| attempt.upstream.format == format);
    let is_always_passthrough = attempts
        .iter()
        .all(|attempt| attempt.upstream.format == format);
    ctx.route.set_model(model, attempts);
    if is_always_passthrough {
        let conversation = &ctx.route.conversation;
        conversation.check_owner(format, ctx.route.attempts())?;
    }
    if is_passthrough {
        let strict = ctx.snapshot.server.validate_native;
        let (body, traits) = (&ctx.route.body, ctx.route.model_traits());
        let check = || request.check_passthrough(codec, body, &traits, strict);
        large_body::process(body.len(), check)?;
        check_other_model(ctx, &request)?;
    }
    ctx.route.set_request(request);
    Ok(())
}

/// Finds a model that the key may use, and that can do what is asked.
fn find_model<'a>(
    ctx: &'a RequestContext,
    name: &'a str,
    operation: Operation,
) -> Result<AskedModel<'a, 'a>, ApiError> {
    if let Some(key) = ctx.client.key() {
        access::authorize_model(key, name)?;
    }
    let asked = ctx.snapshot.model(name);
    let asked = asked.ok_or_else(|| local::unknown_model(name))?;
    if ctx.client.format() == Format::Images {
        check_image_output(&asked)?;
    }
    check_model_type(&asked, operation)?;
    Ok(asked)
}

/// Refuses a body that names a second model to an upstream of its format: the key may not be allowed to use it, and
/// its prices are not known.
fn check_other_model(ctx: &RequestContext, request: &RequestSummary) -> Result<(), ApiError> {
    let Some(key) = ctx.client.key() else {
        return Ok(());
    };
    let mut attempts = ctx.route.attempts().iter();
    let mut is_paid = || attempts.any(|attempt| attempt.settings.prices.is_some());
    let is_count = request.operation == Operation::CountTokens;
    let is_bound = key.is_restricted() || (!is_count && key.is_capped() && is_paid());
    if !is_bound {
        return Ok(());
    }
    let (codec, body) = (ctx.client.codec(), &ctx.route.body);
    let findings = large_body::process(body.len(), || request.findings(codec, body));
    match &findings.other_model {
        Some(field) => Err(access::refuse_other_model(key, field)),
        None => Ok(()),
    }
}

/// Puts the stored conversation before the request's own items; whether the body has changed.
fn resume_conversation(
    conversations: &Conversations,
    ctx: &mut RequestContext,
    request: &mut RequestSummary,
) -> Result<bool, ApiError> {
    if !request.is_conversation() {
        return Ok(false);
    }
    let mut conversation = std::mem::take(&mut ctx.route.conversation);
    let mut memory = std::mem::take(&mut ctx.route.body_memory);
    let limit = ctx.snapshot.server.body_memory;
    let mut grow = |bytes: usize| request_body::count_memory(&mut memory, bytes, limit);
    let (scope, state) = (ctx.conversation_scope(), request.conversation.take());
    let body = &ctx.route.body;
    let resumed = conversation.resume(conversations, scope, body, state, &mut grow);
    (ctx.route.conversation, ctx.route.body_memory) = (conversation, memory);
    Ok(match resumed? {
        Some(body) => {
            ctx.route.body = body;
            true
        }
        None => false,
    })
}

fn check_image_output(asked: &AskedModel<'_, '_>) -> Result<(), ApiError> {
    if asked.model.settings.has_image_output() {
        return Ok(());
    }
    let id = asked.name;
    Err(invalid_model(format!("`{id}` has no image output")))
}

/// Refuses a model of another type than the operation is for.
fn check_model_type(asked: &AskedModel<'_, '_>, operation: Operation) -> Result<(), ApiError> {
    let (id, settings) = (asked.name, &asked.model.settings);
    if settings.serves(operation) {
        return Ok(());
    }
    let own = &settings.model_type;
    Err(invalid_model(match operation.model_type() {
        Some(wanted) => format!(
            "`{id}` is of the type {own}, and this endpoint is for models of the type {wanted}; \
             GET /api/models shows the types"
        ),
        None => format!("`{id}` is of the type {own}, and this endpoint is for other models"),
    }))
}

fn invalid_model(why: String) -> ApiError {
    let mut api_error = ApiError::invalid(format!("invalid model: {why}")).at("model");
    api_error.code = Some("invalid_model".to_owned());
    api_error
}

/// The error for a model whose upstreams are all for other requests.
fn no_upstream(id: &str) -> ApiError {
    let id = truncated(id);
    let message = format!(
        "the model `{id}` is not served for this request: it lacks the header that every upstream of the model asks for"
    );
    ApiError::new(ApiErrorKind::NotFound, message).at("model")
}

/// What ties a conversation to one of several upstreams.
fn affinity<'a>(ctx: &'a RequestContext, client: &'a HeaderMap, model: &Model) -> Option<&'a [u8]> {
    let key = || ctx.client.key().map(|key| key.name.as_bytes());
    match &model.settings.balance {
        Balance::Weighted | Balance::LeastInFlight => None,
        Balance::Key => key(),
        // Without the header it is still the same caller.
        Balance::Header(name) => client.get(name).map(|value| value.as_bytes()).or_else(key),
    }
}
