//! What is kept of conversations between their requests: replies to go on from, and proofs for
//! clients that do not send them back. In memory only, within a bound, and for a while.

use std::sync::{Arc, OnceLock};

use ahash::RandomState;
use bytes::Bytes;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::config;
use crate::formats::{Items, Keeper};
use crate::model::{Proofs, Recall};

/// What an entry costs beside its content.
const OVERHEAD: usize = 256;

#[derive(Debug)]
pub struct Conversations {
    /// By the name of the key and an id; `None`: nothing is kept.
    kept: Option<Cache<String, Entry, RandomState>>,
}

#[derive(Debug, Clone)]
enum Entry {
    Reply(Arc<KeptReply>),
    Proofs(Arc<Proofs>),
}

/// A reply and what led to it. Few conversations go on from where they are kept, so that they are
/// taken apart only when one does.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptReply {
    /// The reply that its conversation went on from.
    pub previous: Option<String>,
    /// As the client got it.
    pub reply: Bytes,
    /// What its request added to the conversation, as that was written.
    added: Bytes,
    items: OnceLock<[Items; 2]>,
}

impl KeptReply {
    pub fn new(previous: Option<String>, added: Bytes, reply: Bytes) -> KeptReply {
        KeptReply {
            previous,
            reply,
            added,
            items: OnceLock::new(),
        }
    }

    /// One whose input was taken apart before.
    pub fn known(
        previous: Option<String>,
        input: Items,
        reply: Bytes,
        keeper: &dyn Keeper,
    ) -> Option<KeptReply> {
        let output = keeper.output(&reply)?;
        Some(KeptReply {
            previous,
            added: input.text.clone(),
            reply,
            items: [input, output].into(),
        })
    }

    /// What was said in the request, and in the reply.
    pub fn items(&self, keeper: &dyn Keeper) -> &[Items; 2] {
        self.items.get_or_init(|| {
            let input = keeper.input(&self.added).unwrap_or_default();
            [input, keeper.output(&self.reply).unwrap_or_default()]
        })
    }
}

/// Why a conversation cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// Nothing is kept under this id.
    Missing(String),
    TooLong,
}

impl Conversations {
    pub fn new(settings: Option<config::Conversations>) -> Conversations {
        let kept = settings.map(|settings| {
            Cache::builder()
                .max_capacity(settings.size as u64)
                .weigher(|key: &String, entry: &Entry| {
                    let size = key.len() + entry.size() + OVERHEAD;
                    u32::try_from(size).unwrap_or(u32::MAX)
                })
                // Whoever goes on with a conversation touches all of it.
                .time_to_idle(settings.ttl)
                // By default one that nobody has asked for yet has to give way to those that were.
                .eviction_policy(EvictionPolicy::lru())
                .build_with_hasher(RandomState::default())
        });
        Conversations { kept }
    }

    pub const fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    pub fn keep(&self, owner: &str, id: &str, reply: KeptReply) {
        self.insert(owner, id, Entry::Reply(Arc::new(reply)));
    }

    pub fn reply(&self, owner: &str, id: &str) -> Option<Arc<KeptReply>> {
        match self.get(owner, id)? {
            Entry::Reply(reply) => Some(reply),
            Entry::Proofs(_) => None,
        }
    }

    pub fn forget(&self, owner: &str, id: &str) -> bool {
        let is_there = self.reply(owner, id).is_some();
        if let Some(kept) = self.kept.as_ref().filter(|_| is_there) {
            kept.invalidate(&place(owner, id));
        }
        is_there
    }

    /// The replies of a conversation up to this one, the first one first. `limit`: in bytes.
    pub fn thread(
        &self,
        owner: &str,
        id: &str,
        limit: usize,
    ) -> Result<Vec<Arc<KeptReply>>, Broken> {
        let mut replies = Vec::new();
        let (mut next, mut size) = (Some(id.to_owned()), 0);
        while let Some(id) = next {
            let Some(reply) = self.reply(owner, &id) else {
                return Err(Broken::Missing(id));
            };
            size += reply.size() + OVERHEAD;
            if size > limit {
                return Err(Broken::TooLong);
            }
            next = reply.previous.clone();
            replies.push(reply);
        }
        replies.reverse();
        Ok(replies)
    }

    pub fn note(&self, owner: &str, proofs: Proofs) {
        let proofs = Arc::new(proofs);
        for id in proofs.call_ids() {
            self.insert(owner, id, Entry::Proofs(proofs.clone()));
        }
    }

    pub fn recall<'a>(&'a self, owner: &'a str) -> Recalling<'a> {
        Recalling {
            conversations: self,
            owner,
        }
    }

    fn insert(&self, owner: &str, id: &str, entry: Entry) {
        if let Some(kept) = &self.kept {
            kept.insert(place(owner, id), entry);
        }
    }

    fn get(&self, owner: &str, id: &str) -> Option<Entry> {
        self.kept.as_ref()?.get(&place(owner, id))
    }
}

/// Names of keys hold no control characters.
fn place(owner: &str, id: &str) -> String {
    format!("{owner}\n{id}")
}

impl Entry {
    fn size(&self) -> usize {
        match self {
            Entry::Reply(reply) => reply.size(),
            Entry::Proofs(proofs) => proofs.size(),
        }
    }
}

impl KeptReply {
    /// The output is a part of the reply.
    fn size(&self) -> usize {
        self.added.len() + self.reply.len()
    }
}

/// What is remembered for one key.
#[derive(Debug)]
pub struct Recalling<'a> {
    conversations: &'a Conversations,
    owner: &'a str,
}

impl Recall for Recalling<'_> {
    fn proofs(&self, call_id: &str) -> Option<Arc<Proofs>> {
        match self.conversations.get(self.owner, call_id)? {
            Entry::Proofs(proofs) => Some(proofs),
            Entry::Reply(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Issuer, Proof, Seal};

    fn conversations(size: usize) -> Conversations {
        Conversations::new(Some(config::Conversations {
            size,
            ttl: Duration::from_secs(60),
        }))
    }

    fn reply(previous: Option<&str>) -> KeptReply {
        let reply = Bytes::from_static(b"{}");
        KeptReply::new(previous.map(str::to_owned), Bytes::new(), reply)
    }

    #[test]
    fn a_thread_is_followed_to_its_beginning_and_belongs_to_one_key() {
        let kept = conversations(1 << 20);
        kept.keep("a", "1", reply(None));
        kept.keep("a", "2", reply(Some("1")));
        kept.keep("a", "3", reply(Some("2")));
        let thread = kept.thread("a", "3", 10_000).expect("a thread");
        let previous: Vec<_> = thread
            .iter()
            .map(|reply| reply.previous.as_deref())
            .collect();
        assert_eq!(previous, [None, Some("1"), Some("2")]);
        let missing = |id: &str| Err(Broken::Missing(id.to_owned()));
        assert_eq!(kept.thread("b", "3", 10_000), missing("3"));
        assert_eq!(kept.thread("a", "3", 500), Err(Broken::TooLong));
        assert!(!kept.forget("b", "1"));
        assert!(kept.forget("a", "1"));
        assert!(!kept.forget("a", "1"));
        assert_eq!(kept.thread("a", "3", 10_000), missing("1"));
    }

    #[test]
    fn a_thread_that_leads_to_itself_ends_at_the_limit() {
        let kept = conversations(1 << 20);
        kept.keep("a", "1", reply(Some("1")));
        assert_eq!(kept.thread("a", "1", 1 << 20), Err(Broken::TooLong));
    }

    #[test]
    fn proofs_are_found_by_each_call_and_memory_has_a_bound() {
        let call = |id: &str| Proof::Call {
            id: id.to_owned(),
            name: "f".to_owned(),
            seal: Some(Seal {
                issuer: Issuer::Native,
                data: "s".repeat(1000).into(),
            }),
        };
        let kept = conversations(100_000);
        let proofs = Proofs(vec![call("x"), call("y")]);
        kept.note("a", proofs.clone());
        for id in ["x", "y"] {
            let found = kept.recall("a").proofs(id);
            assert_eq!(found.as_deref(), Some(&proofs));
            assert_eq!(kept.recall("b").proofs(id), None);
            assert_eq!(kept.reply("a", id), None);
        }
        for number in 0..1000 {
            kept.note("a", Proofs(vec![call(&number.to_string())]));
        }
        let cache = kept.kept.as_ref().expect("a cache");
        cache.run_pending_tasks();
        assert!(cache.weighted_size() <= 100_000);
        assert!(cache.entry_count() > 10);
    }

    #[test]
    fn the_newest_are_there_however_many_came_before() {
        let kept = conversations(100_000);
        for number in 0..2000 {
            let reply = Bytes::from(vec![b' '; 1000]);
            let reply = KeptReply::new(None, Bytes::new(), reply);
            kept.keep("a", &number.to_string(), reply);
        }
        kept.kept.as_ref().expect("a cache").run_pending_tasks();
        for number in 1950..2000 {
            let found = kept.reply("a", &number.to_string());
            assert!(found.is_some(), "{number}");
        }
        assert_eq!(kept.reply("a", "0"), None);
    }

    #[test]
    fn nothing_is_kept_where_nothing_shall_be() {
        let off = Conversations::new(None);
        off.keep("a", "1", reply(None));
        assert!(!off.are_kept());
        assert_eq!(off.reply("a", "1"), None);
    }
}
