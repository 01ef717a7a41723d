//! A list whose items are taken out by a key, without a search through all of them.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Up to so many items are searched one by one, which is faster than hashing and needs no memory.
const SEARCHED: usize = 16;

/// Items in the order in which they came, each under a key of which there may be several.
pub(in crate::formats) struct KeyedQueue<K, T> {
    /// An item that was taken out leaves `None` behind.
    items: Vec<(K, Option<T>)>,
    /// The positions of the items that may still be there, once there are many.
    positions: HashMap<K, VecDeque<usize>>,
    remaining: usize,
}

impl<K: Clone + Eq + Hash, T> KeyedQueue<K, T> {
    pub(in crate::formats) fn push(&mut self, key: K, item: T) {
        self.items.push((key.clone(), Some(item)));
        self.remaining += 1;
        match self.items.len() {
            0..=SEARCHED => {}
            _ if self.positions.is_empty() => {
                for (at, (key, _)) in self.items.iter().enumerate() {
                    self.positions.entry(key.clone()).or_default().push_back(at);
                }
            }
            len => self.positions.entry(key).or_default().push_back(len - 1),
        }
    }

    /// Takes out the first item of a key.
    pub(in crate::formats) fn take<Q>(&mut self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let taken = if self.items.len() <= SEARCHED {
            let mut items = self.items.iter_mut();
            items.find_map(|(known, item)| match (*known).borrow() == key {
                true => item.take(),
                false => None,
            })
        } else {
            let positions = self.positions.get_mut(key)?;
            std::iter::from_fn(|| positions.pop_front()).find_map(|at| self.items[at].1.take())
        };
        self.remaining -= usize::from(taken.is_some());
        taken
    }

    pub(in crate::formats) const fn is_empty(&self) -> bool {
        self.remaining == 0
    }

    /// The items that were not taken out, in their order.
    pub(in crate::formats) fn into_rest(self) -> impl Iterator<Item = T> {
        self.items.into_iter().filter_map(|(_, item)| item)
    }
}

impl<K, T> Default for KeyedQueue<K, T> {
    fn default() -> KeyedQueue<K, T> {
        KeyedQueue {
            items: Vec::new(),
            positions: HashMap::new(),
            remaining: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_in_their_order_and_once() {
        for count in [3, SEARCHED, SEARCHED + 1, 200] {
            let mut queue = KeyedQueue::default();
            for number in 0..count {
                queue.push(number % 3, number);
            }
            assert_eq!(queue.take(&1), Some(1));
            let second = (count > 4).then_some(4);
            assert_eq!((queue.take(&1), queue.take(&9)), (second, None));
            let taken: Vec<usize> = std::iter::from_fn(|| queue.take(&0)).collect();
            assert!(taken.iter().all(|number| number % 3 == 0), "{taken:?}");
            assert!(taken.is_sorted() && taken.len() == count.div_ceil(3));
            assert!(!queue.is_empty());
            let rest: Vec<usize> = queue.into_rest().collect();
            assert!(rest.is_sorted() && !rest.contains(&0) && rest.contains(&2));
        }
    }
}
