//! The calls of one choice, found by the index and the id that their fragments have.

use ahash::AHashMap;

use super::nesting::Nesting;
use crate::formats::chat::calls::CallFragment;

/// The calls of a choice in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct DecodedCalls {
    calls: Vec<DecodedCall>,
    /// The last call of an index.
    by_index: AHashMap<u32, usize>,
    /// The last call of an id, or without one; of an index, and of any.
    by_id: AHashMap<(Option<u32>, Option<String>), usize>,
    /// The calls whose arguments are complete and whose blocks are open.
    complete: Vec<usize>,
    /// About how many bytes all of this takes.
    held: usize,
}

/// What a call takes beside its id, about: an entry of each list.
const PER_CALL: usize = 256;

#[derive(Debug)]
struct DecodedCall {
    index: Option<u32>,
    id: Option<String>,
    arguments: Nesting,
    is_closed: bool,
}

impl DecodedCalls {
    /// The position of the call that a fragment belongs to. Some backends send no index, or the same
    /// one for every call: then a new id is a new call.
    pub(super) fn position(&mut self, fragment: &CallFragment<'_>) -> usize {
        self.find(fragment).unwrap_or_else(|| self.add(fragment))
    }

    fn find(&self, fragment: &CallFragment<'_>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        let (id, index) = (fragment.id.as_deref(), fragment.index);
        let is_last = match id {
            None => index.is_none() || self.calls[last].index == index,
            Some(id) => {
                let known = self.calls[last].id.as_deref();
                (index.is_none() || self.calls[last].index == index)
                    && known.is_none_or(|known| known == id)
            }
        };
        match (id, index) {
            _ if is_last => Some(last),
            (None, None) => None,
            (None, Some(index)) => self.by_index.get(&index).copied(),
            (Some(id), index) => {
                let same = self.by_id.get(&(index, Some(id.to_owned())));
                same.max(self.by_id.get(&(index, None))).copied()
            }
        }
    }

    fn add(&mut self, fragment: &CallFragment<'_>) -> usize {
        let at = self.calls.len();
        let id = fragment.id.as_deref().map(str::to_owned);
        self.held += PER_CALL + 3 * id.as_ref().map_or(0, String::len);
        if let Some(index) = fragment.index {
            self.by_index.insert(index, at);
            self.by_id.insert((Some(index), id.clone()), at);
        }
        self.by_id.insert((None, id.clone()), at);
        self.calls.push(DecodedCall {
            index: fragment.index,
            id,
            arguments: Nesting::default(),
            is_closed: false,
        });
        at
    }

    pub(super) const fn held(&self) -> usize {
        self.held
    }

    pub(super) fn is_closed(&self, at: usize) -> bool {
        self.calls[at].is_closed
    }

    /// Follows the JSON of a call's arguments.
    pub(super) fn push_arguments(&mut self, at: usize, arguments: &str) {
        let nesting = &mut self.calls[at].arguments;
        let was_complete = nesting.is_complete();
        nesting.push(arguments);
        if nesting.is_complete() && !was_complete {
            self.complete.push(at);
        }
    }

    /// Takes a call whose arguments are complete, other than `current`, to close its block.
    pub(super) fn next_to_close(&mut self, current: Option<usize>) -> Option<usize> {
        let found = self.complete.iter().position(|at| Some(*at) != current)?;
        let at = self.complete.remove(found);
        self.calls[at].is_closed = true;
        Some(at)
    }
}
