//! References to the items of stored responses: each is replaced by the item itself.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use super::conversation_store::ConversationScope;
use crate::formats::ConversationCodec;
use crate::json::{Edit, replace};
use crate::runtime::Conversations;

/// The most responses that one request has restored for its references.
const MAX_RESTORED: usize = 1024;

/// A request body without its references to stored items.
#[derive(Default)]
pub(super) struct ResolvedItems {
    /// `None`: nothing was replaced.
    pub(super) body: Option<Bytes>,
    /// The ids of responses that are not in memory.
    pub(super) missing: Vec<String>,
}

/// The items are longer than a request may be.
pub(super) struct ItemsTooLong;

/// Replaces the references among the items that a request adds. One that cannot be resolved stays: the upstream may
/// know the item.
pub(super) fn resolve_items(
    conversations: &Conversations,
    scope: ConversationScope<'_>,
    codec: &dyn ConversationCodec,
    body: &Bytes,
    added: Range<usize>,
) -> Result<ResolvedItems, ItemsTooLong> {
    let mut responses = LoadedResponses {
        conversations,
        scope,
        codec,
        items: HashMap::new(),
        missing: Vec::new(),
        size: 0,
    };
    let (mut edits, mut length) = (Vec::new(), body.len());
    for reference in codec.item_references(body, added) {
        if let Some(item) = responses.item(&reference.item_id)? {
            length += item.len();
            if length > scope.limit {
                return Err(ItemsTooLong);
            }
            edits.push(Edit {
                range: reference.range,
                with: item.to_vec(),
            });
        }
    }
    Ok(ResolvedItems {
        body: (!edits.is_empty()).then(|| replace(body, &edits)),
        missing: responses.missing,
    })
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
    fn item(&mut self, item_id: &str) -> Result<Option<&Bytes>, ItemsTooLong> {
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
        Ok(items.and_then(|items| items.get(item_id)))
    }

    fn load(&mut self, response_id: &str) -> Result<HashMap<String, Bytes>, ItemsTooLong> {
        let Some(turn) = self.conversations.turn(self.scope.owner, response_id) else {
            if self.missing.len() < MAX_RESTORED {
                self.missing.push(response_id.to_owned());
            }
            return Ok(HashMap::new());
        };
        self.size += turn.size();
        if self.size > self.scope.limit {
            return Err(ItemsTooLong);
        }
        Ok(self.codec.items_by_id(&turn.response).into_iter().collect())
    }
}
