//! Conversations that go on from a reply that was kept, and the replies themselves by their ids.

use bytes::Bytes;

use super::archive::Archive;
use super::context::RequestContext;
use super::entry::Ask;
use crate::formats::{ConversationCodec, Items};
use crate::model::{self, ApiError, ApiErrorKind, Format, Losses, truncated};
use crate::runtime::{Attempt, ConversationError, Conversations, StoredConversationTurn};

/// Where a request stands in its conversation.
#[derive(Default)]
pub(super) struct ConversationState {
    /// What the client says of it, in formats that have a way to.
    said: Option<model::ConversationState>,
    /// What it adds to the conversation, as it says it.
    added: Bytes,
    /// Its body holds the whole conversation, in the place of what was sent.
    is_resumed: bool,
    /// How many items of earlier requests and replies stand before its own.
    replayed: usize,
    /// The gateway can keep replies at all.
    can_keep: bool,
    /// A reply that memory does not know.
    missing: Option<String>,
}

impl ConversationState {
    pub(super) const fn misses_a_reply(&self) -> bool {
        self.missing.is_some()
    }

    /// Nothing will be kept: what was received need not stay in memory either.
    pub(super) fn let_go(&mut self) {
        self.added = Bytes::new();
    }

    /// What a reply of this attempt says of it. An upstream that keeps replies itself is left alone.
    pub(super) fn told(&self, attempt: &Attempt) -> Option<model::ConversationState> {
        let capabilities = &attempt.settings.capabilities;
        let keeps_itself =
            attempt.upstream.format == Format::Responses && capabilities.responses_keeps_state;
        let said = self.said.clone().filter(|_| self.can_keep && !keeps_itself);
        said.map(|said| model::ConversationState {
            previous_response_id: said.previous_response_id.filter(|_| self.is_resumed),
            ..said
        })
    }

    /// Losses in the client's own words: of what it said before it has been told before.
    pub(super) fn only_own(&self, client: Format, losses: &mut Losses) {
        if let Some(keeper) = client.codec().keeper().filter(|_| self.is_resumed) {
            losses.0.retain_mut(|lost| {
                let place = keeper.own_place(&lost.location, self.replayed);
                place.map(|place| lost.location = place).is_some()
            });
        }
    }

    pub(super) fn explain(&self, mut api_error: ApiError) -> ApiError {
        if self.is_resumed {
            let earlier = format!(
                " ({} kept items come before the request's own)",
                self.replayed
            );
            api_error.message.push_str(&earlier);
        }
        api_error
    }
}

fn owner(exchange: &RequestContext) -> &str {
    exchange.key.as_ref().map_or("", |key| &*key.name)
}

/// Puts what was said before in its place. `false`: the body stays as it is, because it goes on
/// from nothing, or from a reply that only its upstream knows.
pub(super) fn resume(
    conversations: &Conversations,
    exchange: &mut RequestContext,
    said: Option<model::ConversationState>,
) -> Result<bool, ApiError> {
    exchange.thread.can_keep = conversations.is_enabled();
    exchange.thread.said = said;
    let said = exchange.thread.said.as_ref();
    if let Some(said) = said.filter(|said| said.store && conversations.is_enabled()) {
        exchange.thread.added = exchange.body.slice(said.input_range.clone());
    }
    let previous = said.and_then(|said| said.previous_response_id.as_deref());
    let (Some(previous), Some(keeper)) = (previous, exchange.format.codec().keeper()) else {
        return Ok(false);
    };
    let limit = exchange.snapshot.server.body_limit;
    let replies = match conversations.history(owner(exchange), previous, limit) {
        Ok(replies) => replies,
        Err(ConversationError::Missing(id)) => {
            let is_first = id == previous;
            let broken = keeper.broken(&id);
            exchange.thread.missing = Some(id);
            return if is_first { Ok(false) } else { Err(broken) };
        }
        Err(ConversationError::TooLong) => return Err(too_long(limit)),
    };
    let before = replies.iter().flat_map(|reply| reply.items(keeper));
    let before: Vec<Items> = before.collect();
    let body = keeper.resume(&exchange.body, &before)?;
    if body.len() > limit {
        return Err(too_long(limit));
    }
    exchange.thread.replayed = before.iter().map(|items| items.count).sum();
    exchange.thread.is_resumed = true;
    exchange.body = body;
    Ok(true)
}

fn too_long(limit: usize) -> ApiError {
    let message = format!("the whole conversation is longer than {limit} bytes");
    ApiError::new(ApiErrorKind::TooLarge, message)
}

/// What the reply leaves behind, before the client can ask for it.
pub(super) fn keep(
    conversations: &Conversations,
    archive: Option<&Archive>,
    exchange: &mut RequestContext,
) {
    let Some(reply) = &mut exchange.reply else {
        return;
    };
    if let Some(proofs) = reply.take_proofs() {
        conversations.insert_signed_parts(owner(exchange), &proofs);
        return;
    }
    if let Some(whole) = reply.take_kept()
        && let Some(keeper) = exchange.format.codec().keeper()
        && let Some((id, kept)) = kept(keeper, exchange, whole)
    {
        if let Some(archive) = archive {
            archive.keep(owner(exchange), &id, &kept, keeper);
        }
        conversations.insert(owner(exchange), &id, &kept);
    }
}

/// Brings what memory does not know back from the store. `false`: it is not there either.
pub(super) async fn bring_back(
    conversations: &Conversations,
    archive: &Archive,
    exchange: &mut RequestContext,
) -> bool {
    let Some(id) = exchange.thread.missing.take() else {
        return false;
    };
    let limit = exchange.snapshot.server.body_limit;
    let (owner, format) = (owner(exchange).to_owned(), exchange.format);
    archive
        .bring_back(conversations, format, &owner, &id, limit)
        .await
}

fn kept(
    keeper: &dyn ConversationCodec,
    exchange: &RequestContext,
    whole: Bytes,
) -> Option<(String, StoredConversationTurn)> {
    let thread = &exchange.thread;
    let id = keeper.id(&whole)?;
    let said = thread.said.as_ref().filter(|_| thread.is_resumed);
    let previous = said.and_then(|said| said.previous_response_id.clone());
    Some((
        id,
        StoredConversationTurn::new(previous, thread.added.clone(), whole),
    ))
}

/// Before [`answer`]: what it is about is in memory, if it is kept at all.
pub(super) async fn prepare(
    conversations: &Conversations,
    archive: &Archive,
    exchange: &RequestContext,
    id: &str,
) {
    let (owner, format) = (owner(exchange), exchange.format);
    let limit = exchange.snapshot.server.body_limit;
    archive
        .bring_back(conversations, format, owner, id, limit)
        .await;
}

/// After [`answer`]: what was deleted is gone for good.
pub(super) async fn forget(
    archive: &Archive,
    exchange: &RequestContext,
    id: &str,
) -> Result<(), ApiError> {
    archive.forget(owner(exchange), id).await
}

/// What is asked of a reply that was kept.
pub(super) fn answer(
    conversations: &Conversations,
    exchange: &RequestContext,
    ask: Ask,
    id: &str,
    query: Option<&str>,
) -> Result<Vec<u8>, ApiError> {
    let unknown = || {
        let id = truncated(id);
        let message = format!("no response `{id}` is kept here (any more)");
        ApiError::new(ApiErrorKind::NotFound, message)
    };
    let keeper = exchange.format.codec().keeper().ok_or_else(unknown)?;
    let owner = owner(exchange);
    let reply = conversations.turn(owner, id).ok_or_else(unknown)?;
    match ask {
        Ask::Reply => Ok(reply.reply.to_vec()),
        Ask::Deletion => {
            conversations.remove(owner, id);
            Ok(keeper.deleted(id))
        }
        Ask::Input => {
            let before = reply.previous.as_ref().map(|previous| {
                conversations.history(owner, previous, exchange.snapshot.server.body_limit)
            });
            // What is gone cannot be shown; the request itself still can.
            let before = before.and_then(Result::ok).unwrap_or_default();
            let before = before.iter().flat_map(|reply| reply.items(keeper));
            let [input, _] = reply.items(keeper);
            let items: Vec<Items> = before.chain([input]).collect();
            keeper.page(id, &items, query)
        }
    }
}
