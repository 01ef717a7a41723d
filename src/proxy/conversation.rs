//! Conversations that continue from a stored response, and the stored responses by their ids.

mod conversation_items;
pub(super) mod conversation_store;
mod response_queue;
mod response_writer;

use bytes::Bytes;

use super::endpoint::StoredResponseAction;
use super::large_body::{self, LARGE};
use crate::formats::{ConversationCodec, ConversationItems, KeptMention, ResponseObserver};
use crate::model::{ApiError, ApiErrorKind, ConversationState, Format, Losses, truncated};
use crate::runtime::{Attempt, ConversationError, Conversations, StoredConversationTurn};
use crate::translate::ResponseTranslator;
use conversation_items::{GivenIds, ResolvedItems, find_foreign, resolve_items};
use conversation_store::{ConversationScope, ConversationStore};

/// How a request continues its conversation.
#[derive(Default)]
pub(super) struct ConversationContext {
    /// What the request says of its conversation, in formats that have a way to.
    state: Option<ConversationState>,
    /// What it adds to the conversation, as the client wrote it.
    added: Bytes,
    /// The body holds the whole conversation, instead of what the client sent.
    is_resumed: bool,
    /// How many items of earlier requests and responses stand before the request's own.
    replayed: usize,
    /// The gateway can store responses at all.
    can_store: bool,
    /// The id of a response that is not in memory.
    missing: Option<String>,
    /// The ids of responses and items that are not in memory, and that the request refers to.
    missing_for_items: Vec<String>,
    /// The id of an item that the request refers to, and that its key was not given.
    foreign_item: Option<String>,
    /// The id of something else that an upstream may keep, and that the key was not given.
    foreign_mention: Option<KeptMention>,
    /// Who gave the key the ids that it was given.
    given: GivenIds,
    /// The request has a place to work on large bodies.
    has_place: bool,
    /// It needs one: what is stored is long.
    needs_place: bool,
}

impl ConversationContext {
    /// The conversation of a request with a place to work on large bodies.
    pub(super) fn in_place() -> ConversationContext {
        ConversationContext {
            has_place: true,
            ..ConversationContext::default()
        }
    }

    pub(super) const fn set_place(&mut self, has_place: bool) {
        self.has_place = has_place;
    }

    /// Tells whether what the request goes on with is long, so that it may not be worked on without a place.
    pub(super) const fn needs_place(&self) -> bool {
        self.needs_place
    }

    pub(super) const fn misses_a_response(&self) -> bool {
        self.missing.is_some() || !self.missing_for_items.is_empty()
    }

    /// Frees what was received: nothing will be stored.
    pub(super) fn discard_added(&mut self) {
        self.added = Bytes::new();
    }

    /// What a response of this attempt says of its conversation. An upstream that stores responses
    /// itself is left alone.
    pub(super) fn state_for(&self, attempt: &Attempt) -> Option<ConversationState> {
        let state = self.state.clone();
        let state = state.filter(|_| self.can_store && !attempt.stores_responses());
        state.map(|state| ConversationState {
            previous_response_id: state.previous_response_id.filter(|_| self.is_resumed),
            ..state
        })
    }

    /// Keeps only the losses of what this request added, in the client's own paths: the others were
    /// reported with the requests before.
    pub(super) fn retain_own(&self, client: Format, losses: &mut Losses) {
        if let Some(codec) = client
            .codec()
            .conversation_codec()
            .filter(|_| self.is_resumed)
        {
            losses.0.retain_mut(|loss| {
                let location = codec.client_location(&loss.location, self.replayed);
                location.map(|location| loss.location = location).is_some()
            });
        }
    }

    /// Says in an error that stored items come before the request's own.
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

    /// Puts the earlier conversation before what the request adds, and items in the place of
    /// references to them. `None`: the body stays as it is, because it continues nothing, or a
    /// response that only its upstream knows. `grow` counts the memory of the body.
    pub(super) fn resume(
        &mut self,
        conversations: &Conversations,
        scope: ConversationScope<'_>,
        body: &Bytes,
        state: Option<ConversationState>,
        grow: &mut dyn FnMut(usize) -> Result<(), ApiError>,
    ) -> Result<Option<Bytes>, ApiError> {
        let scope = ConversationScope {
            has_place: self.has_place,
            ..scope
        };
        self.can_store = conversations.is_enabled();
        self.missing = None;
        self.state = state;
        let resolved = self.resolve_references(conversations, scope, body, grow)?;
        let body = resolved.as_ref().unwrap_or(body);
        let state = self.state.as_ref();
        if let Some(state) = state.filter(|state| state.store && self.can_store) {
            self.added = body.slice(state.input_range.clone());
        }
        let previous = state.and_then(|state| state.previous_response_id.as_deref());
        let (Some(previous), Some(codec)) = (previous, scope.codec()) else {
            return Ok(resolved);
        };
        let known = conversations.turn(scope.owner, previous);
        if let Some(given) = known.and_then(|turn| turn.given()) {
            let missing = || codec.missing_response(previous);
            self.given.note(given, false, missing);
            return Ok(resolved);
        }
        let responses = match conversations.history(scope.owner, previous, scope.limit) {
            Ok(responses) => responses,
            Err(ConversationError::Missing(id)) => {
                let is_first = id == previous;
                let broken = codec.missing_response(&id);
                self.missing = Some(id);
                return if is_first { Ok(resolved) } else { Err(broken) };
            }
            Err(ConversationError::TooLong) => return Err(scope.too_long()),
        };
        let sizes = responses.iter().map(StoredConversationTurn::size);
        let size = body.len() + sizes.sum::<usize>();
        if size >= LARGE && !self.has_place {
            self.needs_place = true;
            return Ok(resolved);
        }
        grow(size)?;
        let (resumed, replayed) = large_body::process(size, || {
            let before = responses.iter().flat_map(|turn| turn.items(codec));
            let before: Vec<ConversationItems> = before.collect();
            let replayed = before.iter().map(|items| items.count).sum();
            Ok((codec.resume(body, &before)?, replayed))
        })?;
        if resumed.len() > scope.limit {
            return Err(scope.too_long());
        }
        self.replayed = replayed;
        self.is_resumed = true;
        Ok(Some(resumed))
    }

    /// Replaces references to the items of stored responses.
    fn resolve_references(
        &mut self,
        conversations: &Conversations,
        scope: ConversationScope<'_>,
        body: &Bytes,
        grow: &mut dyn FnMut(usize) -> Result<(), ApiError>,
    ) -> Result<Option<Bytes>, ApiError> {
        if !self.can_store {
            return Ok(None);
        }
        let kept = scope.format.codec().kept_ids(body);
        let mut missing_mentions = Vec::new();
        self.given = GivenIds::default();
        self.foreign_mention = find_foreign(
            conversations,
            scope,
            kept.mentions,
            &mut missing_mentions,
            &mut self.given,
        );
        let (Some(state), Some(codec)) = (&mut self.state, scope.codec()) else {
            self.missing_for_items = missing_mentions;
            return Ok(None);
        };
        let ResolvedItems {
            body: resolved,
            missing,
            foreign,
            needs_place,
        } = resolve_items(
            conversations,
            scope,
            codec,
            body,
            kept.references,
            &mut self.given,
            grow,
        )?;
        if let Some(resolved) = &resolved {
            // All that has changed is inside of it.
            state.input_range.end = state.input_range.end + resolved.len() - body.len();
        }
        self.needs_place |= needs_place;
        self.missing_for_items = missing_mentions;
        self.missing_for_items.extend(missing);
        self.foreign_item = foreign;
        Ok(resolved)
    }

    /// Brings the missing responses back from the store. `false`: they are not there either.
    pub(super) async fn restore_missing(
        &self,
        conversations: &Conversations,
        store: &ConversationStore,
        scope: ConversationScope<'_>,
    ) -> bool {
        let restored = match &self.missing {
            Some(id) => store.restore(conversations, scope, id).await,
            None => false,
        };
        let items = &self.missing_for_items;
        store.restore_all(conversations, scope, items).await || restored
    }

    /// Refuses what this key was not given, or not by the upstreams of these attempts, be it a response, a conversation, an item or a container: the upstreams of these
    /// attempts, which keep it, do not know whose it is.
    pub(super) fn check_owner(&self, client: Format, attempts: &[Attempt]) -> Result<(), ApiError> {
        if let Some(mention) = &self.foreign_mention
            && attempts.iter().all(keeps_what_it_gives)
        {
            return Err(mention.missing());
        }
        self.given.check(attempts, keeps_what_it_gives)?;
        let codec = client.codec().conversation_codec();
        let Some(codec) = codec.filter(|_| self.can_store) else {
            return Ok(());
        };
        let state = self.state.as_ref();
        let conversation = state.and_then(|state| state.conversation_id.as_deref());
        match (&self.missing, conversation, &self.foreign_item) {
            (Some(id), _, _) => Err(codec.missing_response(id)),
            (None, Some(id), _) => Err(codec.missing_conversation(id)),
            (None, None, Some(id)) => Err(codec.missing_item(id)),
            (None, None, None) => Ok(()),
        }
    }

    /// Remembers that the key was given the ids of a response that has ended and of its items, which their upstream keeps.
    pub(super) fn note_kept_upstream(
        &self,
        conversations: &Conversations,
        store: Option<&ConversationStore>,
        scope: ConversationScope<'_>,
        attempt: &Attempt,
        observer: &ResponseObserver,
    ) {
        if !(self.can_store && attempt.upstream.format == scope.format) {
            return;
        }
        let is_stored = self.state.as_ref().is_some_and(|state| state.store);
        let is_stored = is_stored && attempt.stores_responses();
        let response_id = observer.response_id().filter(|_| is_stored);
        let origin = attempt.upstream.id_origin;
        let mark = Bytes::copy_from_slice(origin.as_bytes());
        let turn = StoredConversationTurn::kept_upstream(mark);
        for id in observer.item_ids().chain(response_id) {
            match is_stored {
                true => conversations.insert(scope.owner, id, &turn),
                false => conversations.insert_given(scope.owner, id, origin),
            }
        }
        let is_lasting = is_stored || observer.has_resources();
        if let Some(store) = store.filter(|_| is_lasting) {
            let ids = observer.item_ids().chain(response_id);
            store.store_marks(scope.owner, ids, origin);
        }
    }

    /// Stores what the response leaves behind, before the client can ask for it.
    pub(super) fn store(
        &self,
        conversations: &Conversations,
        store: Option<&ConversationStore>,
        scope: ConversationScope<'_>,
        translator: &mut ResponseTranslator,
        attempt: Option<&Attempt>,
    ) {
        if let Some(signatures) = translator.take_signatures() {
            conversations.insert_signed_parts(scope.owner, &signatures);
            return;
        }
        let (Some(response), Some(codec)) = (translator.take_stored_response(), scope.codec())
        else {
            return;
        };
        // What the request has added may be long, however short the response is.
        large_body::process(self.added.len() + response.len(), || {
            let Some((id, turn)) = self.turn(codec, response) else {
                return;
            };
            if let Some(store) = store {
                store.store(scope.owner, &id, &turn, codec);
            }
            conversations.insert(scope.owner, &id, &turn);
            // Response and items have the ids that the upstream gave them.
            let upstream = attempt.map(|attempt| &attempt.upstream);
            if let Some(upstream) = upstream.filter(|upstream| upstream.format == scope.format) {
                conversations.insert_given(scope.owner, &id, upstream.id_origin);
                for (item_id, _) in codec.items_by_id(&turn.response) {
                    conversations.insert_item(scope.owner, &item_id, &id);
                }
            }
        });
    }

    fn turn(
        &self,
        codec: &dyn ConversationCodec,
        response: Bytes,
    ) -> Option<(String, StoredConversationTurn)> {
        let id = codec.response_id(&response)?;
        let state = self.state.as_ref().filter(|_| self.is_resumed);
        let previous = state.and_then(|state| state.previous_response_id.clone());
        let turn = StoredConversationTurn::new(previous, self.added.clone(), response);
        Some((id, turn))
    }
}

/// Whether the upstream of an attempt may know the ids that it has given: of the formats only one has a setting for that.
fn keeps_what_it_gives(attempt: &Attempt) -> bool {
    attempt.upstream.format != Format::Responses || attempt.stores_responses()
}

/// Answers a request for a stored response. It is in memory by now, if it is stored at all. `grow` counts what the
/// answer takes, before it is made.
pub(super) fn answer(
    conversations: &Conversations,
    scope: ConversationScope<'_>,
    action: StoredResponseAction,
    (id, query): (&str, Option<&str>),
    grow: &mut dyn FnMut(usize) -> Result<(), ApiError>,
) -> Result<Bytes, ApiError> {
    let unknown = || {
        let id = truncated(id);
        let message = format!("no response `{id}` is kept here (any more)");
        let mut api_error = ApiError::new(ApiErrorKind::NotFound, message);
        api_error.code = Some("response_not_found".to_owned());
        api_error
    };
    let codec = scope.codec().ok_or_else(unknown)?;
    let turn = conversations.turn(scope.owner, id);
    let turn = turn.filter(|turn| !turn.is_kept_upstream());
    let turn = turn.ok_or_else(unknown)?;
    match action {
        StoredResponseAction::Get => {
            grow(turn.size())?;
            Ok(turn.response)
        }
        StoredResponseAction::Delete => {
            conversations.remove(scope.owner, id);
            Ok(codec.encode_deletion(id).into())
        }
        StoredResponseAction::ListInput => {
            let before = turn.previous.as_ref();
            let before =
                before.map(|previous| conversations.history(scope.owner, previous, scope.limit));
            // What is gone cannot be shown; the request itself still can.
            let before = before.and_then(Result::ok).unwrap_or_default();
            let turns = || before.iter().chain([&turn]);
            let size: usize = turns().map(StoredConversationTurn::size).sum();
            let copied: usize = turns().map(StoredConversationTurn::copied_size).sum();
            // The page may have all of it once more.
            grow(size.saturating_mul(2).saturating_add(copied))?;
            large_body::process(size, || {
                let before = before.iter().flat_map(|turn| turn.items(codec));
                let [input, _] = turn.items(codec);
                let items: Vec<ConversationItems> = before.chain([input]).collect();
                codec.encode_items(id, &items, query).map(Bytes::from)
            })
        }
    }
}

#[cfg(test)]
mod tests;
