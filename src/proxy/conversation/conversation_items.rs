//! References to the items of stored responses: each is replaced by the item itself.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::conversation_store::ConversationScope;
use crate::formats::{ConversationCodec, ItemReference, KeptMention};
use crate::json::{Edit, replace};
use crate::model::{ApiError, truncated};
use crate::proxy::large_body::{self, LARGE};
use crate::runtime::{Attempt, Conversations, GivenId, IdOrigin};

/// The most responses that one request has restored for its references.
const MAX_RESTORED: usize = 1024;

/// A request body without its references to stored items.
#[derive(Default)]
pub(in crate::proxy) struct ResolvedItems {
    /// `None`: nothing was replaced.
    pub(in crate::proxy) body: Option<Bytes>,
    /// The ids of responses and items that are not in memory.
    pub(in crate::proxy) missing: Vec<String>,
    /// The id of an item that the key was not given.
    pub(in crate::proxy) foreign: Option<String>,
    /// The items are of long responses, and the request has no place to work on such.
    pub(in crate::proxy) needs_place: bool,
}

/// Finds the first of these ids that the key was not given; `missing` are those that are not in memory, and `given` learns of
/// the others.
pub(in crate::proxy) fn find_foreign(
    conversations: &Conversations,
    scope: ConversationScope<'_>,
    mentions: Vec<KeptMention>,
    missing: &mut Vec<String>,
    given: &mut GivenIds,
) -> Option<KeptMention> {
    let mut foreign = None;
    for mention in mentions {
        let response = scope
            .codec()
            .and_then(|codec| codec.response_of_item(&mention.id));
        let response = response.as_deref();
        let known = conversations.given(scope.owner, &mention.id);
        let known = known.or_else(|| response.and_then(|id| conversations.given(scope.owner, id)));
        if let Some(known) = known {
            given.note(known, true, || mention.missing());
            continue;
        }
        // What the gateway has made of responses of other formats has ids of its own, which no upstream knows.
        if response.is_some_and(|id| conversations.has_turn(scope.owner, id)) {
            continue;
        }
        note_missing(missing, response.unwrap_or(&mention.id));
        foreign.get_or_insert(mention);
        if missing.len() == MAX_RESTORED {
            break;
        }
    }
    foreign
}

/// The servers that gave the ids of a request, and the errors for attempts at others.
#[derive(Default)]
pub(in crate::proxy) struct GivenIds(Vec<GivenBy>);

struct GivenBy {
    origin: IdOrigin,
    /// It is the id of something that some upstreams do not keep.
    is_mention: bool,
    error: ApiError,
}

impl GivenIds {
    /// Notes an id, unless another one of its kind is known of the same server.
    pub(in crate::proxy) fn note(
        &mut self,
        given: GivenId,
        is_mention: bool,
        error: impl FnOnce() -> ApiError,
    ) {
        let Some(origin) = given.origin else { return };
        let mut known = self.0.iter();
        if known.any(|known| known.origin == origin && known.is_mention == is_mention) {
            return;
        }
        let mut error = error();
        error
            .message
            .push_str(" (another server than those of this model gave it)");
        self.0.push(GivenBy {
            origin,
            is_mention,
            error,
        });
    }

    /// Refuses ids that the server of none of these attempts gave. `keeps`: whether it keeps what is only mentioned.
    pub(in crate::proxy) fn check(
        &self,
        attempts: &[Attempt],
        keeps: impl Fn(&Attempt) -> bool,
    ) -> Result<(), ApiError> {
        let is_foreign = |given: &&GivenBy| {
            let mut attempts = attempts.iter();
            attempts.all(|attempt| {
                let is_other = attempt.upstream.id_origin != given.origin;
                is_other && (!given.is_mention || keeps(attempt))
            })
        };
        match self.0.iter().find(is_foreign) {
            Some(given) => Err(given.error.clone()),
            None => Ok(()),
        }
    }
}

fn note_missing(missing: &mut Vec<String>, id: &str) {
    if missing.len() < MAX_RESTORED {
        missing.push(id.to_owned());
    }
}

/// Replaces the references among the items that a request adds. One that cannot be resolved stays: the upstream may
/// know the item. `grow` counts the memory of the body.
pub(in crate::proxy) fn resolve_items(
    conversations: &Conversations,
    scope: ConversationScope<'_>,
    codec: &dyn ConversationCodec,
    body: &Bytes,
    references: Vec<ItemReference>,
    given: &mut GivenIds,
    grow: &mut dyn FnMut(usize) -> Result<(), ApiError>,
) -> Result<ResolvedItems, ApiError> {
    let mut responses = LoadedResponses {
        conversations,
        scope,
        codec,
        items: HashMap::new(),
        missing: Vec::new(),
        size: 0,
        needs_place: false,
    };
    let (mut edits, mut length, mut foreign) = (Vec::new(), body.len(), None);
    let mut seen = HashSet::new();
    for reference in references {
        if !seen.insert(reference.item_id.clone()) {
            return Err(referred_twice(&reference.item_id));
        }
        match responses.item(&reference.item_id)? {
            Some(item) => {
                length += item.len();
                if length > scope.limit {
                    return Err(scope.too_long());
                }
                grow(length)?;
                edits.push(Edit {
                    range: reference.range,
                    with: item.to_vec(),
                });
            }
            None => match responses.given(&reference.item_id) {
                Some(known) => given.note(known, false, || codec.missing_item(&reference.item_id)),
                None => foreign = foreign.or(Some(reference.item_id)),
            },
        }
    }
    let replaced = || replace(body, &edits);
    Ok(ResolvedItems {
        body: (!edits.is_empty()).then(|| large_body::process(length, replaced)),
        missing: responses.missing,
        foreign,
        needs_place: responses.needs_place,
    })
}

/// The error for a reference that stands there twice: a short body could stand for a very long one.
fn referred_twice(item_id: &str) -> ApiError {
    let item_id = truncated(item_id);
    let message = format!("input: the item `{item_id}` is referred to twice; refer to it once");
    ApiError::invalid(message).at("input")
}

/// The items of the responses that a request refers to; each response is loaded once.
struct LoadedResponses<'a> {
    conversations: &'a Conversations,
    scope: ConversationScope<'a>,
    codec: &'a dyn ConversationCodec,
    /// By the id of the response.
    items: HashMap<String, HashMap<String, Bytes>>,
    missing: Vec<String>,
    /// The length of all responses so far.
    size: usize,
    /// They are long, and the request has no place to work on such.
    needs_place: bool,
}

impl LoadedResponses<'_> {
    fn item(&mut self, item_id: &str) -> Result<Option<Bytes>, ApiError> {
        let owner = self.scope.owner;
        let response_id = self.codec.response_of_item(item_id);
        let stored = || self.conversations.response_of_item(owner, item_id);
        let Some(response_id) = response_id.or_else(stored) else {
            return Ok(None);
        };
        if !self.items.contains_key(&response_id) {
            let items = self.load(&response_id)?;
            self.items.insert(response_id.clone(), items);
        }
        let items = self.items.get(&response_id);
        Ok(items.and_then(|items| items.get(item_id).cloned()))
    }

    /// Returns who gave the key the id of an item that its upstream keeps.
    fn given(&mut self, item_id: &str) -> Option<GivenId> {
        let mark = self.conversations.turn(self.scope.owner, item_id);
        if mark.is_none() {
            note_missing(&mut self.missing, item_id);
        }
        mark.and_then(|mark| mark.given())
    }

    fn load(&mut self, response_id: &str) -> Result<HashMap<String, Bytes>, ApiError> {
        let Some(turn) = self.conversations.turn(self.scope.owner, response_id) else {
            note_missing(&mut self.missing, response_id);
            return Ok(HashMap::new());
        };
        self.size += turn.size();
        if self.size > self.scope.limit {
            return Err(self.scope.too_long());
        }
        if self.size >= LARGE && !self.scope.has_place {
            self.needs_place = true;
            return Ok(HashMap::new());
        }
        let items = || self.codec.items_by_id(&turn.response);
        Ok(large_body::process(turn.size(), items)
            .into_iter()
            .collect())
    }
}
