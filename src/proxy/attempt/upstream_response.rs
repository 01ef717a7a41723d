//! The response of an upstream: its header (`upstream_response_filter`), its body
//! (`response_body_filter`), and what its errors mean.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use pingora_core::Result;
use pingora_http::ResponseHeader;

use super::response_memory::count_memory;
use super::upstream_request;
use crate::config::StreamFraming;
use crate::formats::{AWS_ERROR_TYPE, Framing, Operation, ResponseOptions, decode_aws_error};
use crate::metrics::FailureCause;
use crate::model::{ApiError, ApiErrorKind, Format, TranslationState};
use crate::proxy::context::{RequestContext, is_retryable};
use crate::proxy::downstream;
use crate::proxy::gateway::Gateway;
use crate::proxy::large_body;
use crate::proxy::spans::span_content;
use crate::proxy::upstream::{redact, response_header};
use crate::translate::{RequestSummary, ResponseMode, ResponseTranslator};

impl Gateway {
    /// Chooses the translator of a response from its header, and leaves in the header what the
    /// client gets of it. An error gets no translator: its body is read first.
    pub(in crate::proxy) fn choose_translator(
        &self,
        header: &mut ResponseHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        if !is_answer(header.status) {
            return Ok(());
        }
        header.set_status(StatusCode::OK)?;
        let state = ctx.attempt.take_translation_state();
        let (Some(request), Some(attempt)) = (ctx.route.request(), ctx.route.current()) else {
            return Ok(());
        };
        let options = response_options(ctx, request, state);
        let (client, upstream) = (ctx.client.format(), attempt.upstream.format);
        let content_type = response_header::content_type(header);
        let limit = ctx.snapshot.server.body_limit;
        let choose = match attempt.upstream.shape.framing {
            StreamFraming::Sse => ResponseTranslator::new,
            StreamFraming::AwsEventStream => ResponseTranslator::of_bedrock,
        };
        let chosen = choose(client, upstream, request, options, content_type, limit);
        let mut translator = match chosen {
            Ok(translator) => translator,
            // What it reports is paid for.
            Err(_) if ctx.billing.is_reserved() => {
                ResponseTranslator::of_unexpected(client, upstream, request, content_type, limit)
            }
            Err(api_error) => {
                self.upstream_failed(ctx, FailureCause::Malformed, &api_error);
                return Err(ctx.set_error(api_error));
            }
        };
        if let Some(cloud) = attempt.upstream.shape.embeddings {
            translator.read_cloud_embeddings(cloud);
        }
        if ctx.is_sampled() {
            translator.keep_model();
        }
        if ctx.client.is_bedrock() {
            translator.write_for_bedrock();
        }
        translator.expect_length(response_header::content_length(header));
        for name in [
            CONTENT_ENCODING,
            CONTENT_LENGTH,
            RETRY_AFTER,
            AWS_ERROR_TYPE,
        ] {
            header.remove_header(&name);
        }
        if let Some(content_type) = translator.content_type() {
            header.insert_header(CONTENT_TYPE, HeaderValue::from_static(content_type))?;
        }
        ctx.response.translator = Some(translator);
        Ok(())
    }

    /// Translates one chunk of the response in place.
    pub(in crate::proxy) fn translate_chunk(
        &self,
        body: &mut Option<Bytes>,
        end: bool,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        count_memory(ctx, body.as_ref().map_or(0, Bytes::len))?;
        span_content::keep_chunk(ctx, body.as_ref());
        if let (Some(capture), Some(chunk)) = (&mut ctx.capture, &*body) {
            capture.note_upstream_chunk(chunk);
        }
        let Some(translator) = &mut ctx.response.translator else {
            return Ok(());
        };
        let mode = translator.mode();
        // Until all of a document is there, its chunks are only collected.
        let size = match (mode, end) {
            (ResponseMode::Json, false) => 0,
            _ => translator.buffered() + body.as_ref().map_or(0, Bytes::len),
        };
        let translated = large_body::process(size, || translator.translate_chunk(body, end));
        let observed = translator.observer();
        let (begun, sent_error) = (observed.has_content, observed.api_error.clone());
        if let (Some(_), Some(attempt), Some(chunk)) = (&sent_error, ctx.route.current(), &*body)
            && let Some(redacted) = redact::redact(&attempt.upstream, chunk)
        {
            *body = Some(redacted.into());
        }
        if let Some(translator) = &ctx.response.translator {
            translator.frame_chunk(body);
        }
        if translated.is_ok() && sent_error.is_none() {
            // What was translated may be longer than what came.
            count_memory(ctx, body.as_ref().map_or(0, Bytes::len))?;
        }
        // An error that comes before any content can still be answered by another upstream.
        let early = sent_error.filter(|_| !begun && !ctx.response.header_sent());
        let (mut api_error, cause) = match (translated, early) {
            (_, Some(api_error)) => (api_error, FailureCause::Status),
            (Ok(()), None) => {
                downstream::log_losses(ctx);
                self.store_response(ctx, end);
                return Ok(());
            }
            (Err(api_error), None) if end && mode == ResponseMode::Stream => {
                (api_error, FailureCause::Cut)
            }
            (Err(api_error), None) => (api_error, FailureCause::Malformed),
        };
        ctx.attempt.set_unusable();
        if is_about_credentials(api_error.kind) {
            api_error = refused_credentials(ctx, api_error.status);
        }
        if is_retryable(api_error.kind) {
            self.upstream_failed(ctx, cause, &api_error);
        }
        Err(ctx.set_error(api_error))
    }

    /// Reports a path that the upstream does not know, and makes the error for it. The breaker does not count it: a
    /// client can ask for an operation that only some upstreams have.
    pub(in crate::proxy) fn unknown_path(&self, ctx: &mut RequestContext, status: u16) -> ApiError {
        ctx.attempt.set_failed();
        let path = upstream_request::upstream_path(ctx).unwrap_or_default();
        if let Some(attempt) = ctx.route.current() {
            let (name, base) = (&attempt.upstream.name, &attempt.upstream.base);
            self.metrics.upstream_failed(name, FailureCause::Status);
            let scheme = if base.tls { "https" } else { "http" };
            let url = format!("{scheme}://{}{path}", base.authority);
            let (id, url) = (
                ctx.client.request_id(),
                redact::redact_log(&attempt.upstream, &url),
            );
            log::error!(
                "{id}: upstream {name}: POST {url} was answered with status {status} and no error of the format {}; \
                 is its base_url right?",
                attempt.upstream.format.name()
            );
        }
        ApiError::bad_gateway(format!(
            "the upstream does not know the path {path}: it answered with status {status} and no error of its format"
        ))
    }

    /// Stores a response that its client may continue from, once all of it is there.
    fn store_response(&self, ctx: &mut RequestContext, end: bool) {
        let Some(mut translator) = ctx.response.translator.take() else {
            return;
        };
        let observer = translator.observer();
        let takes_ids = observer.ended && ctx.response.takes_ids(observer.item_ids_length(), end);
        let (conversations, scope) = (&self.runtime.conversations, ctx.conversation_scope());
        let store = self.conversation_store.as_deref();
        let conversation = &ctx.route.conversation;
        let attempt = ctx.route.current();
        conversation.store(conversations, store, scope, &mut translator, attempt);
        if let Some(attempt) = attempt.filter(|_| takes_ids) {
            let observer = translator.observer();
            conversation.note_kept_upstream(conversations, store, scope, attempt, observer);
        }
        ctx.response.translator = Some(translator);
    }
}

fn response_options(
    ctx: &RequestContext,
    request: &RequestSummary,
    translation_state: TranslationState,
) -> ResponseOptions {
    ResponseOptions {
        model: request.model.clone(),
        stream: request.stream,
        framing: match request.operation {
            Operation::Stream(framing) => framing,
            Operation::Generate
            | Operation::CountTokens
            | Operation::Edit
            | Operation::Embed(_)
            | Operation::Passthrough(_) => Framing::Sse,
        },
        include_usage: !request.hides_usage(),
        request_id: ctx.client.request_id().to_owned(),
        created_at: jiff::Timestamp::now().as_second(),
        translation_state,
    }
}

/// An error of AWS itself, which has one body in front of all formats: only upstreams with its credentials or its framing
/// have such.
pub(in crate::proxy) fn aws_error(
    ctx: &RequestContext,
    header: &ResponseHeader,
    body: &[u8],
) -> Option<ApiError> {
    let upstream = &ctx.route.current()?.upstream;
    let name = response_header::aws_error_type(header);
    let is_aws = upstream.shape.framing == StreamFraming::AwsEventStream;
    (is_aws || name.is_some())
        .then(|| decode_aws_error(header.status.as_u16(), name, body))
        .flatten()
}

/// What a client may know of an upstream's error.
pub(in crate::proxy) fn client_error(
    mut api_error: ApiError,
    ctx: &RequestContext,
    header: &ResponseHeader,
) -> ApiError {
    let status = header.status.as_u16();
    if matches!(status, 401 | 403) || is_about_credentials(api_error.kind) {
        return refused_credentials(ctx, status);
    }
    if !(400..=599).contains(&status) {
        let message = format!("the upstream answered with status {status}, which is not followed");
        return ApiError::bad_gateway(message);
    }
    api_error.retry_after = response_header::retry_after(header).or(api_error.retry_after);
    api_error
}

/// Whether the upstream's own error body may reach the client.
pub(in crate::proxy) fn passes_through(api_error: &ApiError, status: u16, body: &[u8]) -> bool {
    type Object = serde_json::Map<String, serde_json::Value>;
    (400..=599).contains(&status)
        && api_error.kind != ApiErrorKind::BadGateway
        && serde_json::from_slice::<Object>(body).is_ok()
}

/// Whether the upstream does not know the path that it was asked for: a base URL that is wrong leads to the pages of a web
/// server.
pub(in crate::proxy) fn is_unknown_path(format: Format, status: u16, body: &[u8]) -> bool {
    matches!(status, 404 | 405) && !format.codec().is_error_body(body)
}

/// Whether a response of this status has what was asked for. Some upstreams say that they have created it.
pub(in crate::proxy) fn is_answer(status: StatusCode) -> bool {
    let is_empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
    status.is_success() && !is_empty
}

/// Whether a status is a failure of the upstream: a client's own mistake is none.
pub(in crate::proxy) const fn is_failure(status: u16) -> bool {
    !matches!(status, 400..500) || matches!(status, 401 | 402 | 403 | 408 | 424 | 429)
}

/// Only the gateway has credentials at an upstream, so no client can have presented wrong ones.
const fn is_about_credentials(kind: ApiErrorKind) -> bool {
    matches!(
        kind,
        ApiErrorKind::Unauthenticated | ApiErrorKind::Forbidden
    )
}

/// What a client is told of refused credentials; the upstream's own words may name an account.
fn refused_credentials(ctx: &RequestContext, status: u16) -> ApiError {
    let (id, name) = (ctx.client.request_id(), ctx.route.upstream_name());
    log::error!("{id}: upstream {name} refuses the gateway's credentials with status {status}");
    ApiError::bad_gateway("the upstream refuses the gateway's own credentials")
}
