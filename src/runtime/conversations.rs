//! What is kept of conversations between their requests: replies to go on from, and proofs for
//! clients that do not send them back. In memory only, within a bound, and for a while.

use bytes::Bytes;

use super::shelf::Shelf;
use crate::config;
use crate::formats::{ConversationCodec, Items};
use crate::model::{SignatureLookup, SignedParts};

/// What a reply counts beside its content, when a conversation is measured.
const OVERHEAD: usize = 256;

#[derive(Debug)]
pub struct Conversations {
    /// `None`: nothing is kept.
    kept: Option<Shelf>,
}

/// A reply and what led to it. Few conversations go on from where they are kept, so that they are
/// taken apart only when one does.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredConversationTurn {
    /// The reply that its conversation went on from.
    pub previous: Option<String>,
    /// As the client got it.
    pub reply: Bytes,
    /// What its request added to the conversation, as that was written.
    added: Bytes,
}

impl StoredConversationTurn {
    pub const fn new(
        previous: Option<String>,
        added: Bytes,
        reply: Bytes,
    ) -> StoredConversationTurn {
        StoredConversationTurn {
            previous,
            reply,
            added,
        }
    }

    /// One whose input was taken apart before.
    pub fn from_items(
        previous: Option<String>,
        input: &Items,
        reply: Bytes,
        keeper: &dyn ConversationCodec,
    ) -> Option<StoredConversationTurn> {
        keeper.output(&reply)?;
        let added = [b"[", input.text.as_ref(), b"]"].concat();
        Some(StoredConversationTurn::new(previous, added.into(), reply))
    }

    /// What was said in the request, and in the reply.
    pub fn items(&self, keeper: &dyn ConversationCodec) -> [Items; 2] {
        let input = keeper.input(&self.added).unwrap_or_default();
        [input, keeper.output(&self.reply).unwrap_or_default()]
    }

    /// The output is a part of the reply.
    fn size(&self) -> usize {
        self.added.len() + self.reply.len()
    }

    fn put(&self, shelf: &Shelf, name: &str) {
        let previous = self.previous.as_deref().unwrap_or_default();
        let lengths = [previous.len(), self.added.len()].map(usize::to_le_bytes);
        let (lengths, previous) = (lengths.as_flattened(), previous.as_bytes());
        shelf.put(name, &[lengths, previous, &self.added, &self.reply]);
    }

    fn get(shelf: &Shelf, name: &str) -> Option<StoredConversationTurn> {
        let mut value = shelf.get(name)?;
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

/// Why a conversation cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub enum ConversationError {
    /// Nothing is kept under this id.
    Missing(String),
    TooLong,
}

impl Conversations {
    pub fn new(settings: Option<config::ConversationsConfig>) -> Conversations {
        // Whoever goes on with a conversation uses all of it.
        let kept = settings.map(|settings| Shelf::new(settings.size, settings.ttl));
        Conversations { kept }
    }

    pub const fn is_enabled(&self) -> bool {
        self.kept.is_some()
    }

    pub fn insert(&self, owner: &str, id: &str, reply: &StoredConversationTurn) {
        if let Some(shelf) = &self.kept {
            reply.put(shelf, &name(REPLY, owner, id));
        }
    }

    pub fn turn(&self, owner: &str, id: &str) -> Option<StoredConversationTurn> {
        StoredConversationTurn::get(self.kept.as_ref()?, &name(REPLY, owner, id))
    }

    pub fn remove(&self, owner: &str, id: &str) -> bool {
        let shelf = self.kept.as_ref();
        shelf.is_some_and(|shelf| shelf.remove(&name(REPLY, owner, id)))
    }

    /// The replies of a conversation up to this one, the first one first. `limit`: in bytes.
    pub fn history(
        &self,
        owner: &str,
        id: &str,
        limit: usize,
    ) -> Result<Vec<StoredConversationTurn>, ConversationError> {
        let mut replies = Vec::new();
        let (mut next, mut size) = (Some(id.to_owned()), 0);
        while let Some(id) = next {
            let Some(reply) = self.turn(owner, &id) else {
                return Err(ConversationError::Missing(id));
            };
            size += reply.size() + OVERHEAD;
            if size > limit {
                return Err(ConversationError::TooLong);
            }
            next = reply.previous.clone();
            replies.push(reply);
        }
        replies.reverse();
        Ok(replies)
    }

    pub fn insert_signed_parts(&self, owner: &str, proofs: &SignedParts) {
        let Some(shelf) = &self.kept else {
            return;
        };
        let written = serde_json::to_vec(proofs).expect("strings in lists always serialise");
        for id in proofs.call_ids() {
            shelf.put(&name(PROOFS, owner, id), &[&written]);
        }
    }

    pub fn signatures_of<'a>(&'a self, owner: &'a str) -> KeySignatures<'a> {
        KeySignatures {
            conversations: self,
            owner,
        }
    }
}

const REPLY: char = 'r';
const PROOFS: char = 'p';

/// Names of keys hold no control characters.
fn name(kind: char, owner: &str, id: &str) -> String {
    format!("{kind}{owner}\n{id}")
}

/// What is remembered for one key.
#[derive(Debug)]
pub struct KeySignatures<'a> {
    conversations: &'a Conversations,
    owner: &'a str,
}

impl SignatureLookup for KeySignatures<'_> {
    fn signed_parts(&self, call_id: &str) -> Option<SignedParts> {
        let shelf = self.conversations.kept.as_ref()?;
        let written = shelf.get(&name(PROOFS, self.owner, call_id))?;
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
        let proofs = SignedParts(vec![call("x"), call("y")]);
        kept.insert_signed_parts("a", &proofs);
        for id in ["x", "y"] {
            let found = kept.signatures_of("a").signed_parts(id);
            assert_eq!(found.as_ref(), Some(&proofs));
            assert_eq!(kept.signatures_of("b").signed_parts(id), None);
            assert_eq!(kept.turn("a", id), None);
        }
        for number in 0..1000 {
            kept.insert_signed_parts("a", &SignedParts(vec![call(&number.to_string())]));
        }
        assert!(kept.signatures_of("a").signed_parts("999").is_some());
        assert_eq!(kept.signatures_of("a").signed_parts("0"), None);
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
