//! The requests that wait for an upstream. Keys share it: none takes all free places, and none fills it for the others.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;

/// Requests by key, those of a key as they came. The key that has fewest at the upstream is served first; of several, keys
/// take turns.
pub(super) struct UpstreamQueue<P> {
    keys: VecDeque<KeyQueue<P>>,
    length: u64,
    next_id: u64,
}

struct KeyQueue<P> {
    key: Arc<str>,
    requests: VecDeque<QueuedRequest<P>>,
}

/// A request that waits; it is told when it has a permit, or when it has lost its place.
pub(super) struct QueuedRequest<P> {
    id: u64,
    /// How many requests the upstream gets at once.
    limit: u64,
    pub(super) permit: oneshot::Sender<P>,
}

impl<P> Default for UpstreamQueue<P> {
    fn default() -> UpstreamQueue<P> {
        UpstreamQueue {
            keys: VecDeque::new(),
            length: 0,
            next_id: 0,
        }
    }
}

impl<P> UpstreamQueue<P> {
    pub(super) const fn len(&self) -> u64 {
        self.length
    }

    /// Adds a request, and returns its number.
    pub(super) fn push(&mut self, key: &Arc<str>, limit: u64, permit: oneshot::Sender<P>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.length += 1;
        let request = QueuedRequest { id, limit, permit };
        match self.keys.iter_mut().find(|of_key| of_key.key == *key) {
            Some(of_key) => of_key.requests.push_back(request),
            None => self.keys.push_back(KeyQueue {
                key: key.clone(),
                requests: [request].into(),
            }),
        }
        id
    }

    /// Gives the turn to the key that has fewest requests at the upstream; of several, to the one that had it.
    pub(super) fn turn_to_fewest(&mut self, count: &dyn Fn(&str) -> u64) {
        let keys = self.keys.iter().map(|of_key| count(&of_key.key));
        let fewest = keys.enumerate().min_by_key(|(_, count)| *count);
        let at = fewest.map_or(0, |(at, _)| at);
        if at > 0
            && let Some(of_key) = self.keys.remove(at)
        {
            self.keys.push_front(of_key);
        }
    }

    /// The key whose turn it is, and how many requests the upstream gets at once.
    pub(super) fn first(&self) -> Option<(&Arc<str>, u64)> {
        let of_key = self.keys.front()?;
        let request = of_key.requests.front()?;
        Some((&of_key.key, request.limit))
    }

    /// Takes out the request whose turn it is; next is the turn of another key.
    pub(super) fn pop(&mut self) -> Option<QueuedRequest<P>> {
        let mut of_key = self.keys.pop_front()?;
        let request = of_key.requests.pop_front()?;
        self.length -= 1;
        if !of_key.requests.is_empty() {
            self.keys.push_back(of_key);
        }
        Some(request)
    }

    /// Takes out a request that does not wait any longer.
    pub(super) fn remove(&mut self, key: &str, id: u64) {
        let Some(at) = self.keys.iter().position(|of_key| &*of_key.key == key) else {
            return;
        };
        let requests = &mut self.keys[at].requests;
        // They came in the order of their numbers.
        if let Ok(found) = requests.binary_search_by_key(&id, |request| request.id) {
            requests.remove(found);
            self.length -= 1;
        }
        if self.keys[at].requests.is_empty() {
            self.keys.remove(at);
        }
    }

    /// Takes out the last request of the key that has most of them, for one of a key that has fewer. `false`: there
    /// is no such key.
    pub(super) fn make_room(&mut self, key: &str) -> bool {
        let length_of = |of_key: &KeyQueue<P>| of_key.requests.len();
        let own = self.keys.iter().find(|of_key| &*of_key.key == key);
        let own = own.map_or(0, length_of);
        let most = self.keys.iter_mut().max_by_key(|of_key| length_of(of_key));
        match most {
            Some(most) if most.requests.len() > own + 1 => {
                self.length -= u64::from(most.requests.pop_back().is_some());
                true
            }
            _ => false,
        }
    }
}
