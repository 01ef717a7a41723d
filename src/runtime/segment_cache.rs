//! A cache of byte values by key and name, with a memory limit and a TTL; recently used entries stay.
//!
//! Entries of a key are appended to segments in the order in which they come. The oldest segment of the
//! key that holds most is cleared as a whole when its memory is needed, so that nothing is allocated or
//! freed for a single entry, and the limit is what the process really uses.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ahash::RandomState;
use bytes::Bytes;

use super::fair_shares::{FairShares, MemoryShare};

/// Memory of an entry beside its bytes.
const OVERHEAD: usize = 96;
/// The limit is divided into so many segments, and more where many keys have little.
const SEGMENT_COUNT: usize = 64;
const MAX_SEGMENT_SIZE: usize = 1 << 20;
const FIRST_SEGMENT_SIZE: usize = 16 << 10;
/// A value that is copied at little cost.
const SHORT_VALUE: usize = 64;

/// A cache with a fixed memory limit.
#[derive(Debug)]
pub(super) struct SegmentCache {
    size: usize,
    ttl: Duration,
    segment: usize,
    hasher: RandomState,
    shares: Mutex<FairShares<CacheSegments>>,
}

/// The segments of one key.
#[derive(Debug)]
struct CacheSegments {
    ttl: Duration,
    /// Oldest first; the last one is being filled.
    all: VecDeque<CacheSegment>,
    /// The number of the oldest segment.
    oldest: u64,
    /// By the hash of the name; of two names with the same hash the later one wins.
    entries: HashMap<u64, EntryLocation, RandomState>,
    allocated: usize,
}

#[derive(Debug)]
struct CacheSegment {
    bytes: SegmentBytes,
    hashes: Vec<u64>,
    capacity: usize,
    last_used: Instant,
}

/// The bytes of a segment.
#[derive(Debug)]
enum SegmentBytes {
    /// More entries may follow.
    Open(Vec<u8>),
    /// One long entry, which is read without a copy.
    Whole(Bytes),
}

impl SegmentBytes {
    fn get(&self) -> &[u8] {
        match self {
            SegmentBytes::Open(bytes) => bytes,
            SegmentBytes::Whole(bytes) => bytes,
        }
    }
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
    fn open(capacity: usize) -> CacheSegment {
        CacheSegment::new(SegmentBytes::Open(Vec::with_capacity(capacity)), capacity)
    }

    /// A segment of one entry.
    fn whole(bytes: Bytes) -> CacheSegment {
        let capacity = bytes.len() + OVERHEAD;
        CacheSegment::new(SegmentBytes::Whole(bytes), capacity)
    }

    fn new(bytes: SegmentBytes, capacity: usize) -> CacheSegment {
        CacheSegment {
            bytes,
            hashes: Vec::new(),
            capacity,
            last_used: Instant::now(),
        }
    }

    fn has_capacity(&self, more: usize) -> bool {
        self.bytes.get().len() + self.hashes.len() * OVERHEAD + more <= self.capacity
    }
}

/// A value, and whether it stands in the older half of its key's segments.
struct FoundValue {
    value: Bytes,
    is_old: bool,
    /// The whole segment, where it has no other entry.
    whole: Option<Bytes>,
}

impl SegmentCache {
    pub(super) fn new(size: usize, ttl: Duration) -> SegmentCache {
        SegmentCache {
            size,
            ttl,
            segment: (size / SEGMENT_COUNT).min(MAX_SEGMENT_SIZE),
            hasher: RandomState::new(),
            shares: Mutex::new(FairShares::new(size)),
        }
    }

    fn shares(&self) -> MutexGuard<'_, FairShares<CacheSegments>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts a value of a key, given in parts. A value that is larger than the whole cache is not stored.
    pub(super) fn put(&self, owner: &str, name: &str, value: &[&[u8]]) {
        let length = name.len() + value.iter().map(|part| part.len()).sum::<usize>();
        let needed = length + OVERHEAD;
        if needed > self.size {
            return;
        }
        // A value with a segment of its own is copied before the lock is taken.
        let alone = (needed > self.segment).then(|| {
            let mut bytes = Vec::with_capacity(length);
            append(&mut bytes, name, value);
            Bytes::from(bytes)
        });
        let mut shares = self.shares();
        shares.update(owner, CacheSegments::remove_expired);
        match alone {
            Some(whole) => self.push_whole(&mut shares, owner, name, whole),
            None => self.append(&mut shares, owner, name, value),
        }
    }

    /// Adds a segment of one entry: its name and its value.
    fn push_whole(
        &self,
        shares: &mut FairShares<CacheSegments>,
        owner: &str,
        name: &str,
        whole: Bytes,
    ) {
        let (hash, length) = (self.hasher.hash_one(name), whole.len());
        let add = |segments: &mut CacheSegments| {
            segments.push(CacheSegment::whole(whole));
            segments.index_last(hash, name.len(), length);
        };
        let needed = length + OVERHEAD;
        shares.add(owner, needed, || CacheSegments::new(self.ttl), add);
    }

    /// Appends a value to the last segment of its key, or to a new one.
    fn append(
        &self,
        shares: &mut FairShares<CacheSegments>,
        owner: &str,
        name: &str,
        value: &[&[u8]],
    ) {
        let length = name.len() + value.iter().map(|part| part.len()).sum::<usize>();
        let needed = length + OVERHEAD;
        let share = shares.get(owner);
        let last = share.and_then(|segments| segments.all.back());
        if !last.is_some_and(|segment| segment.has_capacity(needed)) {
            // Doubled with each, so that a key with little holds little.
            let allocated = share.map_or(0, |segments| segments.allocated);
            let capacity = allocated.max(FIRST_SEGMENT_SIZE).min(self.segment);
            let capacity = capacity.max(needed);
            let segment = CacheSegment::open(capacity);
            let add = |segments: &mut CacheSegments| segments.push(segment);
            shares.add(owner, capacity, || CacheSegments::new(self.ttl), add);
        }
        let hash = self.hasher.hash_one(name);
        shares.update(owner, |segments| {
            if let Some(segment) = segments.all.back_mut()
                && let SegmentBytes::Open(bytes) = &mut segment.bytes
            {
                append(bytes, name, value);
            }
            segments.index_last(hash, name.len(), length);
        });
    }

    pub(super) fn get(&self, owner: &str, name: &str) -> Option<Bytes> {
        let hash = self.hasher.hash_one(name);
        let mut shares = self.shares();
        let found = shares.update(owner, |segments| segments.get(hash, name));
        let FoundValue {
            value,
            is_old,
            whole,
        } = found??;
        // It moves to the newest segment, so that it is not cleared soon.
        match whole {
            _ if !is_old => {}
            Some(whole) => self.push_whole(&mut shares, owner, name, whole),
            None => self.append(&mut shares, owner, name, &[&value]),
        }
        Some(value)
    }

    /// Uses an entry without its value; returns whether it is there.
    pub(super) fn touch(&self, owner: &str, name: &str) -> bool {
        let hash = self.hasher.hash_one(name);
        let mut shares = self.shares();
        let found = shares.update(owner, |segments| {
            let (entry, is_old) = segments.touch(hash, name)?;
            let is_short = entry.end - entry.name_end <= SHORT_VALUE;
            // A long one would be copied each time.
            Some((is_old && is_short).then(|| segments.value(entry)))
        });
        match found.flatten() {
            Some(Some(value)) => self.append(&mut shares, owner, name, &[&value]),
            Some(None) => {}
            None => return false,
        }
        true
    }

    /// Removes an entry; returns whether it was there.
    pub(super) fn remove(&self, owner: &str, name: &str) -> bool {
        let hash = self.hasher.hash_one(name);
        let removed = self.shares().update(owner, |segments| {
            let entry = segments.find(hash, name);
            entry.is_some_and(|entry| {
                segments.entries.remove(&hash);
                entry.last_used.elapsed() <= segments.ttl
            })
        });
        removed.unwrap_or(false)
    }

    #[cfg(test)]
    pub(super) fn allocated(&self) -> usize {
        self.shares().size()
    }
}

impl MemoryShare for CacheSegments {
    fn size(&self) -> usize {
        self.allocated
    }

    fn oldest_use(&self) -> Option<Instant> {
        self.all.front().map(|segment| segment.last_used)
    }

    fn remove_expired(&mut self) {
        while self
            .oldest_use()
            .is_some_and(|last_used| last_used.elapsed() > self.ttl)
        {
            self.evict_oldest();
        }
    }

    fn evict_oldest(&mut self) {
        let Some(segment) = self.all.pop_front() else {
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
    }
}

impl CacheSegments {
    fn new(ttl: Duration) -> CacheSegments {
        CacheSegments {
            ttl,
            all: VecDeque::new(),
            oldest: 0,
            entries: HashMap::default(),
            allocated: 0,
        }
    }

    fn push(&mut self, segment: CacheSegment) {
        self.allocated += segment.capacity;
        self.all.push_back(segment);
    }

    fn get(&mut self, hash: u64, name: &str) -> Option<FoundValue> {
        let (entry, is_old) = self.touch(hash, name)?;
        let segment = &self.all[(entry.segment - self.oldest) as usize];
        let whole = match &segment.bytes {
            SegmentBytes::Open(_) => None,
            SegmentBytes::Whole(bytes) => Some(bytes.clone()),
        };
        Some(FoundValue {
            value: self.value(entry),
            is_old,
            whole,
        })
    }

    fn value(&self, entry: EntryLocation) -> Bytes {
        let segment = &self.all[(entry.segment - self.oldest) as usize];
        match &segment.bytes {
            SegmentBytes::Open(bytes) => Bytes::copy_from_slice(&bytes[entry.name_end..entry.end]),
            SegmentBytes::Whole(bytes) => bytes.slice(entry.name_end..entry.end),
        }
    }

    /// Uses an entry; returns where it is, and whether it stands in the older half of the segments.
    fn touch(&mut self, hash: u64, name: &str) -> Option<(EntryLocation, bool)> {
        let entry = self.find(hash, name)?;
        if entry.last_used.elapsed() > self.ttl {
            self.entries.remove(&hash);
            return None;
        }
        let number = (entry.segment - self.oldest) as usize;
        let is_old = number < self.all.len() / 2;
        self.all[number].last_used = Instant::now();
        if let Some(entry) = self.entries.get_mut(&hash) {
            entry.last_used = Instant::now();
        }
        Some((entry, is_old))
    }

    fn find(&self, hash: u64, name: &str) -> Option<EntryLocation> {
        let entry = *self.entries.get(&hash)?;
        let segment = &self.all[(entry.segment - self.oldest) as usize];
        let is_same = segment.bytes.get()[entry.start..entry.name_end] == *name.as_bytes();
        is_same.then_some(entry)
    }

    /// Indexes the bytes that were appended last.
    fn index_last(&mut self, hash: u64, name: usize, length: usize) {
        let number = self.oldest + self.all.len() as u64 - 1;
        let Some(segment) = self.all.back_mut() else {
            return;
        };
        let (end, last_used) = (segment.bytes.get().len(), Instant::now());
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
}

fn append(bytes: &mut Vec<u8>, name: &str, value: &[&[u8]]) {
    bytes.extend_from_slice(name.as_bytes());
    for part in value {
        bytes.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests;
