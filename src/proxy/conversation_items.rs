//! References to the items of stored responses: each is replaced by the item itself.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::conversation_store::ConversationScope;
use super::large_body;
use crate::formats::{ConversationCodec, ItemReference, KeptMention};
use crate::json::{Edit, replace};
use crate::model::{ApiError, truncated};
use crate::runtime::Conversations;

/// The most responses that one request has restored for its references.
const MAX_RESTORED: usize = 1024;

/// A request body without its references to stored items.
#[derive(Default)]
pub(super) struct ResolvedItems {
    /// `None`: nothing was replaced.
    pub(super) body: Option<Bytes>,
    /// The ids of responses and items that are not in memory.
    pub(super) missing: Vec<String>,
    /// The id of an item that the key was not given.
    pub(super) foreign: Option<String>,
}

/// Finds the first of these ids that the key was not given; `missing` are those that are not in memory.
pub(super) fn find_foreign(
    conversations: &Conversations,
    scope: ConversationScope<'_>,
    mentions: Vec<KeptMention>,
    missing: &mut Vec<String>,
) -> Option<KeptMention> {
    let mut foreign = None;
    for mention in mentions {
        let response = scope
            .codec()
            .and_then(|codec| codec.response_of_item(&mention.id));
        let known = |id: &str| conversations.was_given(scope.owner, id);
        if known(&mention.id) || response.as_deref().is_some_and(known) {
            continue;
        }
        note_missing(missing, response.as_deref().unwrap_or(&mention.id));
        foreign.get_or_insert(mention);
        if missing.len() == MAX_RESTORED {
            break;
        }
    }
    foreign
}

fn note_missing(missing: &mut Vec<String>, id: &str) {
    if missing.len() < MAX_RESTORED {
        missing.push(id.to_owned());
    }
}

/// Replaces the references among the items that a request adds. One that cannot be resolved stays: the upstream may
/// know the item. `grow` counts the memory of the body.
pub(super) fn resolve_items(
    conversations: &Conversations,
    scope: ConversationScope<'_>,
    codec: &dyn ConversationCodec,
    body: &Bytes,
    references: Vec<ItemReference>,
    grow: &mut dyn FnMut(usize) -> Result<(), ApiError>,
) -> Result<ResolvedItems, ApiError> {
    let mut responses = LoadedResponses {
        conversations,
        scope,
        codec,
        items: HashMap::new(),
        missing: Vec::new(),
        size: 0,
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
            None if responses.is_kept_upstream(&reference.item_id) => {}
            None => foreign = foreign.or(Some(reference.item_id)),
        }
    }
    let replaced = || replace(body, &edits);
    Ok(ResolvedItems {
        body: (!edits.is_empty()).then(|| large_body::process(length, replaced)),
        missing: responses.missing,
        foreign,
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

    /// Tells whether the key was given the id of an item that its upstream keeps.
    fn is_kept_upstream(&mut self, item_id: &str) -> bool {
        let mark = self.conversations.turn(self.scope.owner, item_id);
        if mark.is_none() {
            note_missing(&mut self.missing, item_id);
        }
        mark.is_some_and(|mark| mark.is_kept_upstream())
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
        let items = || self.codec.items_by_id(&turn.response);
        Ok(large_body::process(turn.size(), items)
            .into_iter()
            .collect())
    }
}
