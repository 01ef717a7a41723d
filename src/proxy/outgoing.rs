//! The request as an attempt's upstream takes it, and what it cannot say of it.

use bytes::Bytes;
use http::HeaderName;

use super::context::RequestContext;
use crate::config::OnUnsupported;
use crate::formats::{
    Framing, HeaderFields, Operation, RequestHead, ResponseOptions, UpstreamTarget,
};
use crate::json::{ChunkedBytes, splice};
use crate::model::{Action, ApiError, ApiErrorKind, Losses, Signature, TranslationState};
use crate::runtime::{Attempt, Conversations};
use crate::translate::{self, RequestSummary, TranslatedRequest};

/// Longer lists of losses are cut: they must fit into a header.
const LOST_LIMIT: usize = 4096;

/// One attempt's body, and what the reply to it must know.
pub(super) struct Prepared {
    pub(super) body: ChunkedBytes,
    pub(super) losses: Losses,
    pub(super) memory: TranslationState,
    /// What the upstream is asked to do with it.
    pub(super) operation: Operation,
}

/// The client's own bytes for its own format, a translation for any other.
pub(super) fn body(
    conversations: &Conversations,
    exchange: &RequestContext,
) -> Result<Prepared, ApiError> {
    let (Some(wanted), Some(attempt)) = (&exchange.wanted, exchange.attempt()) else {
        return Err(ApiError::new(
            ApiErrorKind::Internal,
            "no attempt is under way",
        ));
    };
    let mut losses = Losses::default();
    let (body, memory, operation) = match attempt.upstream.format == exchange.format {
        true => {
            let body = own_bytes(exchange, wanted, attempt, &mut losses);
            (body, TranslationState::default(), wanted.operation)
        }
        false => {
            let translated = translated(conversations, exchange, wanted, attempt, &mut losses)?;
            let body = Bytes::from(translated.body).into();
            (body, translated.memory, translated.operation)
        }
    };
    let dropped = paths(exchange, &losses, |action| action == Action::Dropped);
    if exchange.snapshot.server.on_unsupported == OnUnsupported::Reject && !dropped.is_empty() {
        let message = format!(
            "the model's upstream cannot be told: {dropped} (server.on_unsupported is reject)"
        );
        return Err(ApiError::invalid(message).at(dropped));
    }
    Ok(Prepared {
        body,
        losses,
        memory: TranslationState {
            conversation: exchange.thread.told(attempt),
            ..memory
        },
        operation,
    })
}

/// But for what others have sealed in an earlier turn: it says nothing to this upstream, which would refuse it.
fn own_bytes(
    exchange: &RequestContext,
    wanted: &RequestSummary,
    attempt: &Attempt,
    losses: &mut Losses,
) -> ChunkedBytes {
    let (upstream, codec) = (&attempt.upstream, exchange.format.codec());
    let body = wanted.body_for(codec, &exchange.body, &attempt.model, &upstream.brand);
    if !Signature::may_be_in(&exchange.body) {
        return body;
    }
    let whole = body.into_bytes();
    let text = std::str::from_utf8(&whole).unwrap_or_default();
    splice(&whole, &codec.strip_foreign_signatures(text, losses))
}

fn translated(
    conversations: &Conversations,
    exchange: &RequestContext,
    wanted: &RequestSummary,
    attempt: &Attempt,
    losses: &mut Losses,
) -> Result<TranslatedRequest, ApiError> {
    let upstream = &attempt.upstream;
    let owner = exchange.key.as_ref().map_or("", |key| &*key.name);
    let recall = conversations.signatures_of(owner);
    let head = RequestHead {
        keeps: conversations.is_enabled(),
        recall: Some(&recall),
        ..wanted.head(&exchange.traits())
    };
    let target = UpstreamTarget {
        model: &attempt.model,
        stream: wanted.stream,
        max_output_tokens: attempt.settings.settings.max_output_tokens,
        capabilities: &attempt.settings.capabilities,
        brand: &upstream.brand,
        pictures_only: attempt.settings.settings.is_image_model(),
    };
    let (from, to, given) = (exchange.format, upstream.format, &exchange.body);
    let outgoing = if wanted.operation == Operation::CountTokens {
        let question = translate::question(from, to, given, &target, losses)?;
        TranslatedRequest {
            // Without a counter nobody is asked; then only the losses matter.
            body: question.unwrap_or_default(),
            memory: TranslationState::default(),
            operation: Operation::CountTokens,
        }
    } else {
        let translated = translate::request(from, to, &head, given, &target, losses);
        translated.map_err(|api_error| exchange.thread.explain(api_error))?
    };
    exchange.thread.only_own(from, losses);
    Ok(outgoing)
}

/// What the reply must know of this request.
pub(super) fn asked(
    exchange: &RequestContext,
    wanted: &RequestSummary,
    memory: TranslationState,
) -> ResponseOptions {
    ResponseOptions {
        model: wanted.model.clone(),
        stream: wanted.stream,
        framing: match wanted.operation {
            Operation::Stream(framing) => framing,
            Operation::Generate | Operation::CountTokens | Operation::Edit => Framing::Sse,
        },
        include_usage: !wanted.hides_usage(),
        request_id: exchange.request_id.clone(),
        at: jiff::Timestamp::now().as_second(),
        memory,
    }
}

const DROPPED: HeaderName = HeaderName::from_static("x-omniglot-dropped");
const ADJUSTED: HeaderName = HeaderName::from_static("x-omniglot-adjusted");

/// The headers that tell a client what did not arrive as it was written.
pub(super) fn lost(exchange: &RequestContext, fields: &mut HeaderFields) {
    for (name, dropped) in [(DROPPED, true), (ADJUSTED, false)] {
        let of_kind = |action| (action == Action::Dropped) == dropped;
        let paths = paths(exchange, &exchange.losses, of_kind);
        if !paths.is_empty() {
            fields.spell(name, paths.as_bytes());
        }
    }
}

/// What a reply could not say goes to the log: the headers speak of the request alone. A part that
/// says something else now may explain what a client does next; one that is missing is common.
pub(super) fn report_reply(exchange: &mut RequestContext) {
    let Some(reply) = &mut exchange.reply else {
        return;
    };
    let losses = reply.take_losses();
    if losses.0.is_empty() {
        return;
    }
    let is_dropped = |action| action == Action::Dropped;
    let adjusted = losses.0.iter().any(|lost| !is_dropped(lost.action));
    let level = match adjusted {
        true => log::Level::Info,
        false => log::Level::Debug,
    };
    if log::log_enabled!(level) {
        log::log!(
            level,
            "{}: of the reply of upstream {}: dropped [{}], adjusted [{}]",
            exchange.request_id,
            exchange.upstream_name(),
            paths(exchange, &losses, is_dropped),
            paths(exchange, &losses, |action| !is_dropped(action)),
        );
    }
}

fn paths(exchange: &RequestContext, losses: &Losses, which: impl Fn(Action) -> bool) -> String {
    let codec = exchange.format.codec();
    let mut list = String::new();
    for lost in losses.0.iter().filter(|lost| which(lost.action)) {
        let path = codec.path_of(&lost.location);
        if list.len() + path.len() > LOST_LIMIT {
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        // Keys are the client's own words and may hold anything; a header may not.
        list.extend(path.chars().map(|letter| match letter {
            ' '..='~' => letter,
            _ => '?',
        }));
    }
    list
}
