//! Bytes under their names, within a bound of memory and for a while: what was used last stays.
//!
//! Entries stand one behind the other on boards, in the order in which they came. A board is
//! cleared as a whole when its room is needed, so that nothing is allocated or freed for a single
//! entry, and the bound is what the process really takes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ahash::RandomState;
use bytes::Bytes;

/// What an entry takes beside its bytes.
const OVERHEAD: usize = 96;
/// Of the bound: what is cleared at once.
const BOARDS: usize = 64;
const LONGEST_BOARD: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Shelf {
    size: usize,
    ttl: Duration,
    board: usize,
    hasher: RandomState,
    boards: Mutex<Boards>,
}

#[derive(Debug, Default)]
struct Boards {
    /// The oldest first; the last one is being filled.
    all: VecDeque<Board>,
    /// The number of the oldest.
    oldest: u64,
    /// By the hash of the name. Should two names ever have the same, the later one has the place.
    places: HashMap<u64, Place, RandomState>,
    taken: usize,
    /// One that was cleared: the next one needs no other memory.
    spare: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Board {
    bytes: Vec<u8>,
    hashes: Vec<u64>,
    room: usize,
    last_used: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    board: u64,
    start: usize,
    /// Where the name ends and the value begins.
    name_end: usize,
    end: usize,
    last_used: Instant,
}

impl Board {
    fn new(bytes: Vec<u8>, room: usize) -> Board {
        Board {
            bytes,
            hashes: Vec::new(),
            room,
            last_used: Instant::now(),
        }
    }

    fn takes(&self, more: usize) -> bool {
        self.bytes.len() + self.hashes.len() * OVERHEAD + more <= self.room
    }
}

impl Shelf {
    pub(super) fn new(size: usize, ttl: Duration) -> Shelf {
        Shelf {
            size,
            ttl,
            board: (size / BOARDS).min(LONGEST_BOARD),
            hasher: RandomState::new(),
            boards: Mutex::default(),
        }
    }

    fn boards(&self) -> MutexGuard<'_, Boards> {
        self.boards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of the value are put together here. One that is larger than the whole is not kept.
    pub(super) fn put(&self, name: &str, value: &[&[u8]]) {
        let length = name.len() + value.iter().map(|part| part.len()).sum::<usize>();
        let need = length + OVERHEAD;
        if need > self.size {
            return;
        }
        let hash = self.hasher.hash_one(name);
        // What needs a board of its own is copied before anybody has to wait for it.
        let alone = (need > self.board).then(|| {
            let mut bytes = Vec::with_capacity(length);
            append(&mut bytes, name, value);
            Board::new(bytes, need)
        });
        let mut boards = self.boards();
        boards.clear_expired(self.ttl);
        match alone {
            Some(board) => boards.add(board, self.size),
            None => self.append(&mut boards, name, value, need),
        }
        boards.note(hash, name.len(), length);
    }

    fn append(&self, boards: &mut Boards, name: &str, value: &[&[u8]], need: usize) {
        if !boards.all.back().is_some_and(|board| board.takes(need)) {
            let room = self.board.max(need);
            let spare = boards.spare.take().filter(|spare| spare.capacity() == room);
            let bytes = spare.unwrap_or_else(|| Vec::with_capacity(room));
            boards.add(Board::new(bytes, room), self.size);
        }
        if let Some(board) = boards.all.back_mut() {
            append(&mut board.bytes, name, value);
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Bytes> {
        let hash = self.hasher.hash_one(name);
        let mut boards = self.boards();
        let place = boards.find(hash, name)?;
        if place.last_used.elapsed() > self.ttl {
            boards.places.remove(&hash);
            return None;
        }
        let number = (place.board - boards.oldest) as usize;
        let board = &mut boards.all[number];
        board.last_used = Instant::now();
        let value = Bytes::copy_from_slice(&board.bytes[place.name_end..place.end]);
        // It moves to the newest before its board is cleared.
        if number < boards.all.len() / 2 {
            let length = name.len() + value.len();
            self.append(&mut boards, name, &[&value], length + OVERHEAD);
            boards.note(hash, name.len(), length);
        } else if let Some(place) = boards.places.get_mut(&hash) {
            place.last_used = Instant::now();
        }
        Some(value)
    }

    /// Whether it was there.
    pub(super) fn remove(&self, name: &str) -> bool {
        let hash = self.hasher.hash_one(name);
        let mut boards = self.boards();
        let place = boards.find(hash, name);
        place.is_some_and(|place| {
            boards.places.remove(&hash);
            place.last_used.elapsed() <= self.ttl
        })
    }

    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.boards().taken
    }
}

impl Boards {
    fn find(&self, hash: u64, name: &str) -> Option<Place> {
        let place = *self.places.get(&hash)?;
        let board = &self.all[(place.board - self.oldest) as usize];
        (board.bytes[place.start..place.name_end] == *name.as_bytes()).then_some(place)
    }

    /// What was appended last has its place from now on.
    fn note(&mut self, hash: u64, name: usize, length: usize) {
        let number = self.oldest + self.all.len() as u64 - 1;
        let Some(board) = self.all.back_mut() else {
            return;
        };
        let (end, last_used) = (board.bytes.len(), Instant::now());
        board.hashes.push(hash);
        board.last_used = last_used;
        let place = Place {
            board: number,
            start: end - length,
            name_end: end - length + name,
            end,
            last_used,
        };
        self.places.insert(hash, place);
    }

    /// The oldest ones make room for it.
    fn add(&mut self, board: Board, size: usize) {
        while self.taken + board.room > size && !self.all.is_empty() {
            self.clear_oldest();
        }
        self.taken += board.room;
        self.all.push_back(board);
    }

    fn clear_expired(&mut self, ttl: Duration) {
        while self
            .all
            .front()
            .is_some_and(|board| board.last_used.elapsed() > ttl)
        {
            self.clear_oldest();
        }
    }

    fn clear_oldest(&mut self) {
        let Some(mut board) = self.all.pop_front() else {
            return;
        };
        for hash in &board.hashes {
            if self
                .places
                .get(hash)
                .is_some_and(|place| place.board == self.oldest)
            {
                self.places.remove(hash);
            }
        }
        self.oldest += 1;
        self.taken -= board.room;
        // One of the usual length.
        if board.bytes.capacity() == board.room {
            board.bytes.clear();
            self.spare = Some(board.bytes);
        }
    }
}

fn append(bytes: &mut Vec<u8>, name: &str, value: &[&[u8]]) {
    bytes.extend_from_slice(name.as_bytes());
    for part in value {
        bytes.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(size: usize) -> Shelf {
        Shelf::new(size, Duration::from_secs(60))
    }

    #[test]
    fn what_was_put_is_there_under_its_name_until_it_is_removed() {
        let shelf = shelf(100_000);
        shelf.put("a", &[b"one", b"", b" two"]);
        shelf.put("b", &[]);
        assert_eq!(shelf.get("a").as_deref(), Some(&b"one two"[..]));
        assert_eq!(shelf.get("b").as_deref(), Some(&b""[..]));
        shelf.put("a", &[b"three"]);
        assert_eq!(shelf.get("a").as_deref(), Some(&b"three"[..]));
        shelf.remove("a");
        assert_eq!((shelf.get("a"), shelf.get("c")), (None, None));
    }

    #[test]
    fn the_newest_are_there_and_the_bound_holds() {
        for length in [0, 10, 1000, 1600, 40_000] {
            let shelf = shelf(100_000);
            let value = vec![b'v'; length];
            for number in 0..3000 {
                shelf.put(&number.to_string(), &[&value]);
                assert!(shelf.taken() <= 100_000);
            }
            let fitting = 100_000 / (length + 4 + OVERHEAD + 100_000 / BOARDS);
            for number in 3000 - fitting..3000 {
                assert!(
                    shelf.get(&number.to_string()).is_some(),
                    "{length} {number}"
                );
            }
            assert_eq!(shelf.get("0"), None);
        }
        let shelf = shelf(1000);
        shelf.put("large", &[&[b'v'; 1000]]);
        assert_eq!((shelf.get("large"), shelf.taken()), (None, 0));
    }

    #[test]
    fn what_is_used_stays() {
        let shelf = shelf(100_000);
        shelf.put("used", &[b"value"]);
        for number in 0..3000 {
            shelf.put(&number.to_string(), &[&[b'v'; 1000]]);
            assert!(shelf.get("used").is_some(), "{number}");
        }
    }

    #[test]
    fn what_is_not_used_for_a_while_is_gone() {
        let shelf = Shelf::new(100_000, Duration::ZERO);
        shelf.put("a", &[b"one"]);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(shelf.get("a"), None);
        shelf.put("b", &[b"two"]);
        assert_eq!(shelf.boards().places.len(), 1);
    }
}
