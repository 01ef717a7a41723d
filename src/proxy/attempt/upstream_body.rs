//! The body of the request for an upstream (`request_body_filter`): the client's own bytes with edits, or their translation.

use bytes::Bytes;
use pingora_core::Result;

use crate::config::OnUnsupported;
use crate::formats::{CloudEmbeddings, EmbedMethod, Operation, RequestHead, UpstreamTarget};
use crate::json::ChunkedBytes;
use crate::model::{
    Action, ApiError, ApiErrorKind, FieldLocation, Losses, Setting, TranslationState,
};
use crate::proxy::billing::{self, body_growth};
use crate::proxy::context::RequestContext;
use crate::proxy::context::loss_paths::loss_paths;
use crate::proxy::gateway::Gateway;
use crate::proxy::large_body;
use crate::runtime::{Attempt, Conversations};
use crate::translate::{self, RequestSummary, TranslatedRequest};

impl Gateway {
    /// Translates the client's body for the upstream of the attempt under way. The first chunk is
    /// returned, the others stay in the attempt's state.
    pub(in crate::proxy) fn translate_request(&self, ctx: &mut RequestContext) -> Result<Bytes> {
        let translate = || translated_body(&self.runtime.conversations, ctx);
        match large_body::process(ctx.route.body.len(), translate) {
            Ok(mut translated) => {
                ctx.attempt.set_translated_media(translated.media);
                ctx.attempt.set_translated(
                    translated.losses,
                    translated.translation_state,
                    translated.operation,
                );
                let first = translated.body.next_chunk().unwrap_or_default();
                ctx.attempt.set_rest_of_body(translated.body);
                Ok(first)
            }
            Err(api_error) => Err(ctx.withdraw_attempt(api_error)),
        }
    }
}

/// The body for an upstream, and what is known of it.
struct UpstreamBody {
    body: ChunkedBytes,
    losses: Losses,
    translation_state: TranslationState,
    operation: Operation,
    /// See [`body_growth::translated_media`].
    media: Option<u64>,
}

/// The client's own bytes for its own format, a translation for any other.
fn translated_body(
    conversations: &Conversations,
    ctx: &RequestContext,
) -> Result<UpstreamBody, ApiError> {
    let (Some(request), Some(attempt)) = (ctx.route.request(), ctx.route.current()) else {
        let message = "no attempt is under way";
        return Err(ApiError::new(ApiErrorKind::Internal, message));
    };
    if attempt.upstream.has_no_endpoint(request.operation) {
        return Err(no_endpoint(request.operation));
    }
    let mut losses = Losses::default();
    let is_passthrough = attempt.upstream.format == ctx.client.format()
        && cloud_embeddings(request, attempt).is_none();
    let (body, state, operation, media) = if is_passthrough {
        let conversation = &ctx.route.conversation;
        conversation.check_owner(ctx.client.format(), std::slice::from_ref(attempt))?;
        let body = passthrough_body(ctx, request, attempt, &mut losses)?;
        let state = TranslationState::default();
        (body, state, request.operation, None)
    } else {
        let translated = translate_body(conversations, ctx, request, attempt, &mut losses)?;
        let media = body_growth::translated_media(ctx, attempt, &translated.body);
        let body = Bytes::from(translated.body).into();
        let state = translated.translation_state;
        (body, state, translated.operation, media)
    };
    let dropped = loss_paths(ctx, &losses, |action| action == Action::Dropped);
    if ctx.snapshot.server.on_unsupported == OnUnsupported::Reject && !dropped.is_empty() {
        let message = format!(
            "the upstream's format cannot express: {dropped} (server.on_unsupported is reject)"
        );
        return Err(ApiError::invalid(message).at(dropped));
    }
    Ok(UpstreamBody {
        body,
        losses,
        translation_state: TranslationState {
            conversation: ctx.route.conversation.state_for(attempt),
            ..state
        },
        operation,
        media,
    })
}

fn no_endpoint(operation: Operation) -> ApiError {
    let what = match operation {
        Operation::Passthrough(endpoint) => format!("/v1{}", endpoint.path()),
        _ => "embeddings".to_owned(),
    };
    let message = format!("the upstream of this model has no {what}: use another model");
    ApiError::invalid(message).at("model")
}

/// The client's bytes with the upstream's name of the model, with the limit that was reserved, and without signatures that another
/// upstream issued: this one would refuse them.
fn passthrough_body(
    ctx: &RequestContext,
    request: &RequestSummary,
    attempt: &Attempt,
    losses: &mut Losses,
) -> Result<ChunkedBytes, ApiError> {
    let (upstream, codec, body) = (&attempt.upstream, ctx.client.codec(), &ctx.route.body);
    let may_be_written = request.output_limit.may_be_written;
    let limit = match (billing::reserved_output(ctx, attempt), request.operation) {
        (Some(limit), Operation::Passthrough(endpoint)) => {
            endpoint.limit_output(body, limit, may_be_written)?
        }
        (Some(limit), _) => {
            codec.limit_output(body, limit, may_be_written, &attempt.capabilities)?
        }
        (None, _) => Vec::new(),
    };
    if !limit.is_empty() {
        losses.added(match request.is_conversation() {
            true => FieldLocation::Setting(Setting::MaxTokens),
            false => FieldLocation::Path("max_tokens".into()),
        });
    }
    let edited = request.passthrough_body_with(codec, body, &attempt.model, &upstream.brand, limit);
    if !request.is_conversation() {
        return Ok(edited);
    }
    let capabilities = &attempt.capabilities;
    Ok(translate::without_refused(
        codec,
        body,
        edited,
        capabilities,
        losses,
    ))
}

/// The words of a cloud in which the upstream of an attempt takes a request for embeddings.
pub(in crate::proxy) fn cloud_embeddings(
    request: &RequestSummary,
    attempt: &Attempt,
) -> Option<CloudEmbeddings> {
    let shape = &attempt.upstream.shape;
    shape.embeddings.filter(|_| request.is_embedding())
}

fn translate_body(
    conversations: &Conversations,
    ctx: &RequestContext,
    request: &RequestSummary,
    attempt: &Attempt,
    losses: &mut Losses,
) -> Result<TranslatedRequest, ApiError> {
    let upstream = &attempt.upstream;
    let recall = conversations.signatures_of(ctx.client.owner());
    let head = RequestHead {
        keeps: conversations.is_enabled(),
        recall: Some(&recall),
        reserved_output: billing::reserved_output(ctx, attempt),
        image_limit: billing::image_limit(ctx, attempt),
        ..request.head(&ctx.route.model_traits())
    };
    let target = UpstreamTarget {
        model: &attempt.model,
        stream: request.stream,
        max_output_tokens: attempt.settings.settings.max_output_tokens,
        capabilities: &attempt.capabilities,
        brand: &upstream.brand,
        images_only: attempt.settings.settings.is_image_model(),
    };
    let (from, to, body) = (ctx.client.format(), upstream.format, &ctx.route.body);
    if let Operation::Passthrough(endpoint) = request.operation {
        let message = format!(
            "the upstream of this model has the format {}, which has no /v1{}: use another model",
            to.name(),
            endpoint.path()
        );
        return Err(ApiError::invalid(message).at("model"));
    }
    let translated = if let Operation::Embed(method) = request.operation {
        let body = match cloud_embeddings(request, attempt) {
            Some(to) => {
                translate::cloud_embedding_request(from, to, method, body, &target, losses)?
            }
            None => translate::embedding_request(from, to, method, body, &target, losses)?,
        };
        TranslatedRequest {
            body,
            translation_state: TranslationState::default(),
            operation: Operation::Embed(EmbedMethod::Batch),
        }
    } else if request.operation == Operation::CountTokens {
        let question = translate::count_tokens_request(from, to, body, &target, losses)?;
        TranslatedRequest {
            // An upstream without a counter is not asked; then only the losses matter.
            body: question.unwrap_or_default(),
            translation_state: TranslationState::default(),
            operation: Operation::CountTokens,
        }
    } else {
        let translated = translate::request(from, to, &head, body, &target, losses);
        translated.map_err(|api_error| ctx.route.conversation.explain(api_error))?
    };
    ctx.route.conversation.retain_own(from, losses);
    Ok(translated)
}
