//! A cache of byte values by name, with a memory limit and a TTL; recently used entries stay.
//!
//! Entries are appended to segments in the order in which they come. The oldest segment is cleared as a
//! whole when its memory is needed, so that nothing is allocated or freed for a single entry, and the
//! limit is what the process really uses.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ahash::RandomState;
use bytes::Bytes;

/// Memory of an entry beside its bytes.
const OVERHEAD: usize = 96;
/// The limit is divided into so many segments.
const SEGMENT_COUNT: usize = 64;
const MAX_SEGMENT_SIZE: usize = 1 << 20;

/// A cache with a fixed memory limit.
#[derive(Debug)]
pub(super) struct SegmentCache {
    size: usize,
    ttl: Duration,
    segment: usize,
    hasher: RandomState,
    segments: Mutex<CacheSegments>,
}

#[derive(Debug, Default)]
struct CacheSegments {
    /// Oldest first; the last one is being filled.
    all: VecDeque<CacheSegment>,
    /// The number of the oldest segment.
    oldest: u64,
    /// By the hash of the name; of two names with the same hash the later one wins.
    entries: HashMap<u64, EntryLocation, RandomState>,
    allocated: usize,
    /// The buffer of a cleared segment, for the next one.
    spare: Option<Vec<u8>>,
}

#[derive(Debug)]
struct CacheSegment {
    bytes: Vec<u8>,
    hashes: Vec<u64>,
    capacity: usize,
    last_used: Instant,
}

#[derive(Debug, Clone, Copy)]
struct EntryLocation {
    segment: u64,
    start: usize,
    /// The end of the name, which is the start of the value.
    name_end: usize,
    end: usize,
    last_used: Instant,
}

impl CacheSegment {
    fn new(bytes: Vec<u8>, capacity: usize) -> CacheSegment {
        CacheSegment {
            bytes,
            hashes: Vec::new(),
            capacity,
            last_used: Instant::now(),
        }
    }

    fn has_capacity(&self, more: usize) -> bool {
        self.bytes.len() + self.hashes.len() * OVERHEAD + more <= self.capacity
    }
}

impl SegmentCache {
    pub(super) fn new(size: usize, ttl: Duration) -> SegmentCache {
        SegmentCache {
            size,
            ttl,
            segment: (size / SEGMENT_COUNT).min(MAX_SEGMENT_SIZE),
            hasher: RandomState::new(),
            segments: Mutex::default(),
        }
    }

    fn segments(&self) -> MutexGuard<'_, CacheSegments> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts a value, given in parts. A value that is larger than the whole cache is not stored.
    pub(super) fn put(&self, name: &str, value: &[&[u8]]) {
        let length = name.len() + value.iter().map(|part| part.len()).sum::<usize>();
        let needed = length + OVERHEAD;
        if needed > self.size {
            return;
        }
        let hash = self.hasher.hash_one(name);
        // A value with a segment of its own is copied before the lock is taken.
        let alone = (needed > self.segment).then(|| {
            let mut bytes = Vec::with_capacity(length);
            append(&mut bytes, name, value);
            CacheSegment::new(bytes, needed)
        });
        let mut segments = self.segments();
        segments.clear_expired(self.ttl);
        match alone {
            Some(segment) => segments.add(segment, self.size),
            None => self.append(&mut segments, name, value, needed),
        }
        segments.index_last(hash, name.len(), length);
    }

    fn append(&self, segments: &mut CacheSegments, name: &str, value: &[&[u8]], needed: usize) {
        if !segments
            .all
            .back()
            .is_some_and(|segment| segment.has_capacity(needed))
        {
            let capacity = self.segment.max(needed);
            let spare = segments
                .spare
                .take()
                .filter(|spare| spare.capacity() == capacity);
            let bytes = spare.unwrap_or_else(|| Vec::with_capacity(capacity));
            segments.add(CacheSegment::new(bytes, capacity), self.size);
        }
        if let Some(segment) = segments.all.back_mut() {
            append(&mut segment.bytes, name, value);
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Bytes> {
        let hash = self.hasher.hash_one(name);
        let mut segments = self.segments();
        let entry = segments.find(hash, name)?;
        if entry.last_used.elapsed() > self.ttl {
            segments.entries.remove(&hash);
            return None;
        }
        let number = (entry.segment - segments.oldest) as usize;
        let segment = &mut segments.all[number];
        segment.last_used = Instant::now();
        let value = Bytes::copy_from_slice(&segment.bytes[entry.name_end..entry.end]);
        // An entry in the older half moves to the newest segment, so that it is not cleared soon.
        if number < segments.all.len() / 2 {
            let length = name.len() + value.len();
            self.append(&mut segments, name, &[&value], length + OVERHEAD);
            segments.index_last(hash, name.len(), length);
        } else if let Some(entry) = segments.entries.get_mut(&hash) {
            entry.last_used = Instant::now();
        }
        Some(value)
    }

    /// Removes an entry; returns whether it was there.
    pub(super) fn remove(&self, name: &str) -> bool {
        let hash = self.hasher.hash_one(name);
        let mut segments = self.segments();
        let entry = segments.find(hash, name);
        entry.is_some_and(|entry| {
            segments.entries.remove(&hash);
            entry.last_used.elapsed() <= self.ttl
        })
    }

    #[cfg(test)]
    pub(super) fn allocated(&self) -> usize {
        self.segments().allocated
    }
}

impl CacheSegments {
    fn find(&self, hash: u64, name: &str) -> Option<EntryLocation> {
        let entry = *self.entries.get(&hash)?;
        let segment = &self.all[(entry.segment - self.oldest) as usize];
        (segment.bytes[entry.start..entry.name_end] == *name.as_bytes()).then_some(entry)
    }

    /// Indexes the bytes that were appended last.
    fn index_last(&mut self, hash: u64, name: usize, length: usize) {
        let number = self.oldest + self.all.len() as u64 - 1;
        let Some(segment) = self.all.back_mut() else {
            return;
        };
        let (end, last_used) = (segment.bytes.len(), Instant::now());
        segment.hashes.push(hash);
        segment.last_used = last_used;
        let entry = EntryLocation {
            segment: number,
            start: end - length,
            name_end: end - length + name,
            end,
            last_used,
        };
        self.entries.insert(hash, entry);
    }

    /// Adds a segment; the oldest ones are cleared to make room.
    fn add(&mut self, segment: CacheSegment, size: usize) {
        while self.allocated + segment.capacity > size && !self.all.is_empty() {
            self.clear_oldest();
        }
        self.allocated += segment.capacity;
        self.all.push_back(segment);
    }

    fn clear_expired(&mut self, ttl: Duration) {
        while self
            .all
            .front()
            .is_some_and(|segment| segment.last_used.elapsed() > ttl)
        {
            self.clear_oldest();
        }
    }

    fn clear_oldest(&mut self) {
        let Some(mut segment) = self.all.pop_front() else {
            return;
        };
        for hash in &segment.hashes {
            if self
                .entries
                .get(hash)
                .is_some_and(|entry| entry.segment == self.oldest)
            {
                self.entries.remove(hash);
            }
        }
        self.oldest += 1;
        self.allocated -= segment.capacity;
        // Only a buffer of the usual size is reused.
        if segment.bytes.capacity() == segment.capacity {
            segment.bytes.clear();
            self.spare = Some(segment.bytes);
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

    fn cache(size: usize) -> SegmentCache {
        SegmentCache::new(size, Duration::from_secs(60))
    }

    #[test]
    fn what_was_put_is_there_under_its_name_until_it_is_removed() {
        let cache = cache(100_000);
        cache.put("a", &[b"one", b"", b" two"]);
        cache.put("b", &[]);
        assert_eq!(cache.get("a").as_deref(), Some(&b"one two"[..]));
        assert_eq!(cache.get("b").as_deref(), Some(&b""[..]));
        cache.put("a", &[b"three"]);
        assert_eq!(cache.get("a").as_deref(), Some(&b"three"[..]));
        cache.remove("a");
        assert_eq!((cache.get("a"), cache.get("c")), (None, None));
    }

    #[test]
    fn the_newest_are_there_and_the_bound_holds() {
        for length in [0, 10, 1000, 1600, 40_000] {
            let cache = cache(100_000);
            let value = vec![b'v'; length];
            for number in 0..3000 {
                cache.put(&number.to_string(), &[&value]);
                assert!(cache.allocated() <= 100_000);
            }
            let fitting = 100_000 / (length + 4 + OVERHEAD + 100_000 / SEGMENT_COUNT);
            for number in 3000 - fitting..3000 {
                assert!(
                    cache.get(&number.to_string()).is_some(),
                    "{length} {number}"
                );
            }
            assert_eq!(cache.get("0"), None);
        }
        let cache = cache(1000);
        cache.put("large", &[&[b'v'; 1000]]);
        assert_eq!((cache.get("large"), cache.allocated()), (None, 0));
    }

    #[test]
    fn what_is_used_stays() {
        let cache = cache(100_000);
        cache.put("used", &[b"value"]);
        for number in 0..3000 {
            cache.put(&number.to_string(), &[&[b'v'; 1000]]);
            assert!(cache.get("used").is_some(), "{number}");
        }
    }

    #[test]
    fn what_is_not_used_for_a_while_is_gone() {
        let cache = SegmentCache::new(100_000, Duration::ZERO);
        cache.put("a", &[b"one"]);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(cache.get("a"), None);
        cache.put("b", &[b"two"]);
        assert_eq!(cache.segments().entries.len(), 1);
    }
}
