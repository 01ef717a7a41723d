//! Receipts that have just been written down, for whoever carries them: they need not be read again.
//!
//! The files are what counts. Here is what is here; where nothing is, it is read.

use std::collections::VecDeque;

use super::reading::{BATCH, Batch};
use crate::model::Receipt;

/// While the books are away, more than this is not worth its memory.
const MOST: usize = 4 * BATCH;

/// In the order of the files.
#[derive(Default)]
pub(super) struct Fresh(VecDeque<Entry>);

struct Entry {
    receipt: Receipt,
    /// The segment, and where in it the line begins and ends.
    number: u64,
    begin: u64,
    end: u64,
}

impl Fresh {
    pub(super) fn put(&mut self, receipt: Receipt, number: u64, begin: u64, end: u64) {
        if self.0.len() < MOST {
            self.0.push_back(Entry {
                receipt,
                number,
                begin,
                end,
            });
        }
    }

    /// What stands at a place and right behind it; nothing where that is not here.
    pub(super) fn take(&mut self, number: u64, offset: u64) -> Option<Batch> {
        let is_past = |entry: &Entry| (entry.number, entry.begin) < (number, offset);
        while self.0.front().is_some_and(is_past) {
            self.0.pop_front();
        }
        let mut end = offset;
        let entries = self.0.iter();
        let follows = |entry: &&Entry| {
            let follows = (entry.number, entry.begin) == (number, end);
            end = entry.end;
            follows
        };
        let count = entries.take(BATCH).take_while(follows).count();
        let last = self.0.get(count.checked_sub(1)?)?.end;
        let receipts = self.0.drain(..count).map(|entry| entry.receipt);
        Some(Batch::of(receipts.collect(), last))
    }

    /// Where in a segment what is here begins.
    pub(super) fn begins(&self, number: u64) -> Option<u64> {
        let first = self.0.front().filter(|entry| entry.number == number);
        first.map(|entry| entry.begin)
    }
}
