//! Conversations between their requests: responses to continue from, and signed parts for clients that do
//! not send them back. In memory, with a size limit that keys share fairly and a TTL.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::id_origin::IdOrigin;
use super::segment_cache::SegmentCache;
use crate::config;
use crate::formats::{ConversationCodec, ConversationItems};
use crate::model::{SignatureLookup, SignedParts};

/// Size of a turn beside its content, when a conversation is measured against the limit.
const TURN_OVERHEAD: usize = 256;

#[derive(Debug)]
pub struct Conversations {
    /// `None`: conversations are not stored.
    cache: Option<SegmentCache>,
    /// How many responses with signed parts were stored.
    signed_responses: AtomicU64,
}

/// A response and the input that led to it, as bytes: few conversations are continued, so that they are decoded
/// only then.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredConversationTurn {
    /// The id of the response before it.
    pub previous: Option<String>,
    /// The response body as the client got it.
    pub response: Bytes,
    /// The input of the request, as the client wrote it.
    added: Bytes,
}

impl StoredConversationTurn {
    pub const fn new(
        previous: Option<String>,
        added: Bytes,
        response: Bytes,
    ) -> StoredConversationTurn {
        StoredConversationTurn {
            previous,
            response,
            added,
        }
    }

    /// A mark that an upstream keeps the response, and that its owner was given the id of it. `origin` is that of the upstream as it
    /// is stored.
    pub const fn kept_upstream(origin: Bytes) -> StoredConversationTurn {
        StoredConversationTurn::new(None, origin, Bytes::new())
    }

    /// Tells whether this is only such a mark.
    pub const fn is_kept_upstream(&self) -> bool {
        self.response.is_empty()
    }

    /// Returns who gave the id, if this is such a mark.
    pub fn given(&self) -> Option<GivenId> {
        let origin = || IdOrigin::from_stored(&self.added);
        self.is_kept_upstream()
            .then(|| GivenId { origin: origin() })
    }

    /// A turn whose input was decoded before.
    pub fn from_items(
        previous: Option<String>,
        input: &ConversationItems,
        response: Bytes,
        codec: &dyn ConversationCodec,
    ) -> Option<StoredConversationTurn> {
        codec.response_items(&response)?;
        let added = [b"[", input.text.as_ref(), b"]"].concat();
        Some(StoredConversationTurn::new(
            previous,
            added.into(),
            response,
        ))
    }

    /// The items of the input, and those of the response.
    pub fn items(&self, codec: &dyn ConversationCodec) -> [ConversationItems; 2] {
        let input = codec.request_items(&self.added).unwrap_or_default();
        [
            input,
            codec.response_items(&self.response).unwrap_or_default(),
        ]
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.added.len() + self.response.len()
    }

    /// How many bytes its items take beside it: a text becomes an item, all others are parts of it.
    pub fn copied_size(&self) -> usize {
        match self.added.first() {
            Some(b'"') => self.added.len(),
            _ => 0,
        }
    }

    fn store(&self, cache: &SegmentCache, owner: &str, name: &str) {
        let previous = self.previous.as_deref().unwrap_or_default();
        let lengths = [previous.len(), self.added.len()].map(usize::to_le_bytes);
        let (lengths, previous) = (lengths.as_flattened(), previous.as_bytes());
        let value = [lengths, previous, &self.added, &self.response];
        cache.put(owner, name, &value);
    }

    fn load(cache: &SegmentCache, owner: &str, name: &str) -> Option<StoredConversationTurn> {
        let mut value = cache.get(owner, name)?;
        let mut length = || {
            let bytes = value.split_to(size_of::<usize>());
            bytes
                .first_chunk()
                .map(|bytes| usize::from_le_bytes(*bytes))
        };
        let (previous, added) = (length()?, length()?);
        let previous = value.split_to(previous);
        let previous = (!previous.is_empty()).then(|| String::from_utf8_lossy(&previous).into());
        let added = value.split_to(added);
        Some(StoredConversationTurn::new(previous, added, value))
    }
}

/// An id that a key was given by an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenId {
    /// `None`: by any one, as far as is known.
    pub origin: Option<IdOrigin>,
}

/// Why a conversation cannot be continued.
#[derive(Debug, PartialEq, Eq)]
pub enum ConversationError {
    /// No response is stored under this id.
    Missing(String),
    TooLong,
}

impl Conversations {
    pub fn new(settings: Option<config::ConversationsConfig>) -> Conversations {
        let cache = settings.map(|settings| SegmentCache::new(settings.size, settings.ttl));
        Conversations {
            cache,
            signed_responses: AtomicU64::default(),
        }
    }

    pub const fn is_enabled(&self) -> bool {
        self.cache.is_some()
    }

    pub fn insert(&self, owner: &str, id: &str, turn: &StoredConversationTurn) {
        let Some(cache) = &self.cache else { return };
        match turn.is_kept_upstream() {
            true => cache.put(owner, &name(GIVEN, id), &[KEPT, &turn.added]),
            false => turn.store(cache, owner, &name(TURN, id)),
        }
    }

    pub fn turn(&self, owner: &str, id: &str) -> Option<StoredConversationTurn> {
        let cache = self.cache.as_ref()?;
        let turn = StoredConversationTurn::load(cache, owner, &name(TURN, id));
        turn.or_else(|| {
            let mark = cache.get(owner, &name(GIVEN, id))?;
            let is_kept = mark.starts_with(KEPT);
            is_kept.then(|| StoredConversationTurn::kept_upstream(mark.slice(KEPT.len()..)))
        })
    }

    pub fn remove(&self, owner: &str, id: &str) -> bool {
        let cache = self.cache.as_ref();
        cache.is_some_and(|cache| cache.remove(owner, &name(TURN, id)))
    }

    /// Notes which response an item is of, for items whose id does not tell it.
    pub fn insert_item(&self, owner: &str, item_id: &str, response_id: &str) {
        if let Some(cache) = &self.cache {
            cache.put(owner, &name(ITEM, item_id), &[response_id.as_bytes()]);
        }
    }

    /// Returns the id of the response that an item is of.
    pub fn response_of_item(&self, owner: &str, item_id: &str) -> Option<String> {
        let id = self.cache.as_ref()?.get(owner, &name(ITEM, item_id))?;
        String::from_utf8(id.into()).ok()
    }

    /// Notes that a key was given the id of something that its upstream may keep.
    pub fn insert_given(&self, owner: &str, id: &str, origin: IdOrigin) {
        if let Some(cache) = &self.cache {
            cache.put(owner, &name(GIVEN, id), &[NOT_STORED, origin.as_bytes()]);
        }
    }

    /// Returns who gave a key the id of such a thing; `None`: nobody.
    pub fn given(&self, owner: &str, id: &str) -> Option<GivenId> {
        let mark = self.cache.as_ref()?.get(owner, &name(GIVEN, id))?;
        let origin = mark.get(KEPT.len()..).and_then(IdOrigin::from_stored);
        Some(GivenId { origin })
    }

    /// Tells whether the gateway has stored a response of a key under an id, which is the gateway's own.
    pub fn has_turn(&self, owner: &str, id: &str) -> bool {
        let cache = self.cache.as_ref();
        cache.is_some_and(|cache| cache.touch(owner, &name(TURN, id)))
    }

    /// The turns of a conversation up to this one, in order. `limit`: in bytes.
    pub fn history(
        &self,
        owner: &str,
        id: &str,
        limit: usize,
    ) -> Result<Vec<StoredConversationTurn>, ConversationError> {
        let mut turns = Vec::new();
        let (mut next, mut size) = (Some(id.to_owned()), 0);
        while let Some(id) = next {
            let Some(turn) = self.turn(owner, &id) else {
                return Err(ConversationError::Missing(id));
            };
            size += turn.size() + TURN_OVERHEAD;
            if size > limit {
                return Err(ConversationError::TooLong);
            }
            next = turn.previous.clone();
            turns.push(turn);
        }
        turns.reverse();
        Ok(turns)
    }

    /// Stores the signed parts of a response once, and its number for each of its calls.
    pub fn insert_signed_parts(&self, owner: &str, signed_parts: &SignedParts) {
        let Some(cache) = &self.cache else {
            return;
        };
        let encoded = serde_json::to_vec(signed_parts).expect("strings in lists always serialise");
        let number = self.signed_responses.fetch_add(1, Ordering::Relaxed);
        cache.put(owner, &name(SIGNED_PARTS, &number.to_string()), &[&encoded]);
        for id in signed_parts.call_ids() {
            cache.put(owner, &name(SIGNED_CALL, id), &[&number.to_le_bytes()]);
        }
    }

    pub fn signatures_of<'a>(&'a self, owner: &'a str) -> KeySignatures<'a> {
        KeySignatures {
            conversations: self,
            owner,
        }
    }
}

/// What the mark of an id begins with, before its origin: whether the upstream has stored a response with it.
const KEPT: &[u8] = b"k";
const NOT_STORED: &[u8] = b"n";

const TURN: char = 'r';
const ITEM: char = 'i';
const GIVEN: char = 'g';
const SIGNED_PARTS: char = 'p';
const SIGNED_CALL: char = 'c';

/// The name of an entry among those of its key.
fn name(kind: char, id: &str) -> String {
    format!("{kind}{id}")
}

/// The signed parts of one key.
#[derive(Debug)]
pub struct KeySignatures<'a> {
    conversations: &'a Conversations,
    owner: &'a str,
}

impl SignatureLookup for KeySignatures<'_> {
    fn response_of_call(&self, call_id: &str) -> Option<u64> {
        let cache = self.conversations.cache.as_ref()?;
        let number = cache.get(self.owner, &name(SIGNED_CALL, call_id))?;
        number.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn signed_parts(&self, response: u64) -> Option<SignedParts> {
        let cache = self.conversations.cache.as_ref()?;
        let written = cache.get(self.owner, &name(SIGNED_PARTS, &response.to_string()))?;
        serde_json::from_slice(&written).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Issuer, Signature, SignedPart};

    fn conversations(size: usize) -> Conversations {
        Conversations::new(Some(config::ConversationsConfig {
            size,
            ttl: Duration::from_secs(60),
            max_bytes_per_key: size,
        }))
    }

    fn reply(previous: Option<&str>) -> StoredConversationTurn {
        let reply = Bytes::from_static(b"{}");
        StoredConversationTurn::new(previous.map(str::to_owned), Bytes::new(), reply)
    }

    #[test]
    fn a_thread_is_followed_to_its_beginning_and_belongs_to_one_key() {
        let kept = conversations(1 << 20);
        kept.insert("a", "1", &reply(None));
        kept.insert("a", "2", &reply(Some("1")));
        kept.insert("a", "3", &reply(Some("2")));
        let thread = kept.history("a", "3", 10_000).expect("a thread");
        let previous: Vec<_> = thread
            .iter()
            .map(|reply| reply.previous.as_deref())
            .collect();
        assert_eq!(previous, [None, Some("1"), Some("2")]);
        let missing = |id: &str| Err(ConversationError::Missing(id.to_owned()));
        assert_eq!(kept.history("b", "3", 10_000), missing("3"));
        assert_eq!(kept.history("a", "3", 500), Err(ConversationError::TooLong));
        assert!(!kept.remove("b", "1"));
        assert!(kept.remove("a", "1"));
        assert!(!kept.remove("a", "1"));
        assert_eq!(kept.history("a", "3", 10_000), missing("1"));
    }

    #[test]
    fn a_thread_that_leads_to_itself_ends_at_the_limit() {
        let kept = conversations(1 << 20);
        kept.insert("a", "1", &reply(Some("1")));
        assert_eq!(
            kept.history("a", "1", 1 << 20),
            Err(ConversationError::TooLong)
        );
    }

    #[test]
    fn proofs_are_found_by_each_call_and_memory_has_a_bound() {
        let call = |id: &str| SignedPart::Call {
            id: id.to_owned(),
            name: "f".to_owned(),
            signature: Some(Signature {
                issuer: Issuer::Native,
                data: "s".repeat(1000).into(),
            }),
        };
        let kept = conversations(100_000);
        let find = |owner: &str, call: &str| {
            let signatures = kept.signatures_of(owner);
            signatures.signed_parts(signatures.response_of_call(call)?)
        };
        let signed_parts = SignedParts(vec![call("x"), call("y")]);
        kept.insert_signed_parts("a", &signed_parts);
        for id in ["x", "y"] {
            assert_eq!(find("a", id).as_ref(), Some(&signed_parts));
            assert_eq!(find("b", id), None);
            assert_eq!(kept.turn("a", id), None);
        }
        for number in 0..1000 {
            kept.insert_signed_parts("a", &SignedParts(vec![call(&number.to_string())]));
        }
        assert!(find("a", "999").is_some());
        assert_eq!(find("a", "0"), None);
    }

    #[test]
    fn a_response_with_many_calls_takes_its_size_once() {
        let call = |number: usize| SignedPart::Call {
            id: format!("call_{number}"),
            name: "f".to_owned(),
            signature: Some(Signature {
                issuer: Issuer::Native,
                data: "s".repeat(100).into(),
            }),
        };
        let kept = conversations(1 << 20);
        kept.insert("b", "1", &reply(None));
        kept.insert_signed_parts("a", &SignedParts((0..1000).map(call).collect()));
        let signatures = kept.signatures_of("a");
        let found = signatures.response_of_call("call_999");
        let found = found.and_then(|number| signatures.signed_parts(number));
        assert_eq!(found.expect("signed parts").0.len(), 1000);
        assert!(kept.turn("b", "1").is_some(), "it leaves room for others");
    }

    #[test]
    fn a_reply_comes_back_as_it_was_kept() {
        let kept = conversations(1 << 20);
        for previous in [None, Some("resp_1".to_owned())] {
            let reply = StoredConversationTurn::new(previous, "[1]".into(), "{\"id\":2}".into());
            kept.insert("a", "2", &reply);
            assert_eq!(kept.turn("a", "2"), Some(reply));
        }
    }

    #[test]
    fn nothing_is_kept_where_nothing_shall_be() {
        let off = Conversations::new(None);
        off.insert("a", "1", &reply(None));
        assert!(!off.is_enabled());
        assert_eq!(off.turn("a", "1"), None);
    }
}
