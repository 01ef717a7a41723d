//! How much of each output item a stream has delivered so far.

use std::collections::{BTreeMap, HashMap};

use crate::model::{Json, Text};

/// The items of a response by their `output_index`.
#[derive(Debug, Default)]
pub(super) struct OutputProgress {
    /// Those that have come: an item with a high index alone takes no room for the others.
    items: BTreeMap<u32, ItemProgress>,
    /// The same of their parts, by `output_index` and `content_index`.
    parts: BTreeMap<(u32, u32), PartProgress>,
    /// The first complete item of an id.
    by_id: HashMap<String, u32>,
    /// The bytes of the ids.
    id_bytes: usize,
}

/// How much of one item has come.
#[derive(Debug, Default)]
pub(super) struct ItemProgress {
    /// The id that it had when it was complete; empty before that.
    id: String,
    /// The part of reasoning that the last delta belonged to.
    pub reasoning_part: Option<(ReasoningField, u32)>,
    /// A call that has been announced.
    pub is_call: bool,
    pub is_done: bool,
    /// The signature of reasoning has been passed on.
    pub has_signature: bool,
}

/// The two fields in which an item may show its reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningField {
    Summary,
    Content,
}

/// How much of one part of an item has come.
#[derive(Debug, Default)]
pub(super) struct PartProgress {
    pub bytes: usize,
    /// The hash of these bytes, which tells whether a complete text begins with them without storing them.
    hash: PrefixHash,
    /// How many characters of text came before this part.
    pub start: u64,
    pub citations: usize,
    pub logprobs: usize,
}

impl OutputProgress {
    /// The progress of the item at this index.
    pub(super) fn item(&mut self, index: u32) -> &mut ItemProgress {
        self.items.entry(index).or_default()
    }

    /// The progress of the part of an item, both by their indexes.
    pub(super) fn part(&mut self, at: (u32, u32)) -> &mut PartProgress {
        self.parts.entry(at).or_default()
    }

    /// The bytes that all of this takes, about.
    pub(super) fn held(&self) -> usize {
        let items = self.items.len() * size_of::<(u32, ItemProgress)>();
        let parts = self.parts.len() * size_of::<((u32, u32), PartProgress)>();
        items + parts + self.id_bytes
    }

    /// Notes that the item at this index is complete.
    pub(super) fn complete(&mut self, index: u32, id: Text<'_>) {
        let item = self.item(index);
        item.is_done = true;
        item.id.clear();
        item.id.push_str(&id);
        self.id_bytes += 2 * id.len();
        if !id.is_empty() {
            let first = self.by_id.entry(id.into_owned()).or_insert(index);
            *first = index.min(*first);
        }
    }

    /// The index under which an item of the final response was streamed: some upstreams do not stream all items that
    /// they list in the end, and some change the ids.
    pub(super) fn index_of(&self, listed: u32, item: &Json<'_>) -> u32 {
        let id = match item {
            Json::Object(fields) => fields.get("id").and_then(Json::as_str).unwrap_or_default(),
            _ => "",
        };
        let is_same = |index: &u32| {
            let item = self.items.get(index);
            item.is_some_and(|item| item.is_done && !id.is_empty() && item.id == id)
        };
        if is_same(&listed) {
            return listed;
        }
        let known = self.by_id.get(id).copied();
        known.filter(is_same).unwrap_or(listed)
    }
}

impl PartProgress {
    /// Adds a delta.
    pub(super) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.add(text);
    }

    /// The rest of a complete text that no delta contained; empty where the deltas are no prefix of it.
    pub(super) fn missing<'t>(&self, complete: &'t str) -> &'t str {
        let (known, rest) = complete.split_at_checked(self.bytes).unwrap_or_default();
        let mut hash = PrefixHash::default();
        hash.add(known);
        match hash == self.hash {
            true => rest,
            false => "",
        }
    }
}

/// A hash that does not depend on how its bytes are divided into deltas (FNV-1a).
#[derive(Debug, PartialEq, Eq)]
struct PrefixHash(u64);

impl Default for PrefixHash {
    fn default() -> PrefixHash {
        PrefixHash(0xcbf2_9ce4_8422_2325)
    }
}

impl PrefixHash {
    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_high_index_takes_no_room_for_those_before_it() {
        let mut progress = OutputProgress::default();
        for index in [4096, 3, u32::MAX, 4096] {
            progress.item(u32::MAX);
            progress.part((u32::MAX, index)).add("ab");
        }
        assert_eq!(progress.items.len(), 1);
        let parts = progress.parts.iter();
        let parts: Vec<_> = parts.map(|((_, at), part)| (*at, part.bytes)).collect();
        assert_eq!(parts, [(3, 2), (4096, 4), (u32::MAX, 2)]);
        assert_eq!(progress.part((u32::MAX, 3)).missing("abc"), "c");
        assert_eq!(progress.part((u32::MAX, 4)).missing("abc"), "abc");
    }

    #[test]
    fn every_item_part_and_id_is_held() {
        let mut progress = OutputProgress::default();
        let mut before = progress.held();
        for at in 0..3 {
            progress.item(at);
            progress.part((at, 7));
            progress.complete(at, "an id".into());
            assert!(progress.held() > before + 100, "{}", progress.held());
            before = progress.held();
        }
        progress.part((2, 7)).add("more of the same");
        assert_eq!(progress.held(), before);
    }
}
