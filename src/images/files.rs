//! Image files that clients fetch by URL: in memory, with a limit of size and time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::{FairShares, MemoryShare};

/// The memory of an entry beside its content.
const ENTRY_OVERHEAD: usize = 256;

/// A stored file.
#[derive(Clone)]
pub struct StoredFile {
    pub mime: &'static str,
    pub bytes: Bytes,
}

/// The files of all keys. The id of a file holds its time of expiry, so that an expired file can be
/// told from one that never existed.
pub struct FileStore {
    files: Mutex<FairShares<KeyFiles>>,
}

/// The files of one key.
#[derive(Default)]
struct KeyFiles {
    by_id: HashMap<String, FileEntry>,
    /// The ids of the files in the order of their last use.
    by_use: BTreeMap<u64, String>,
    last_use: u64,
    size: usize,
}

struct FileEntry {
    file: StoredFile,
    /// Its place in `by_use`.
    used: u64,
    used_at: Instant,
}

impl KeyFiles {
    fn insert(&mut self, id: &str, file: StoredFile) {
        self.size += entry_size(id, &file);
        self.last_use += 1;
        let entry = FileEntry {
            file,
            used: self.last_use,
            used_at: Instant::now(),
        };
        self.by_use.insert(self.last_use, id.to_owned());
        self.by_id.insert(id.to_owned(), entry);
    }

    fn get(&mut self, id: &str) -> Option<StoredFile> {
        let entry = self.by_id.get_mut(id)?;
        let id = self.by_use.remove(&entry.used)?;
        self.last_use += 1;
        entry.used = self.last_use;
        entry.used_at = Instant::now();
        self.by_use.insert(self.last_use, id);
        Some(entry.file.clone())
    }

    fn remove(&mut self, id: &str) {
        if let Some(entry) = self.by_id.remove(id) {
            self.by_use.remove(&entry.used);
            self.size -= entry_size(id, &entry.file);
        }
    }
}

impl MemoryShare for KeyFiles {
    fn size(&self) -> usize {
        self.size
    }

    fn oldest_use(&self) -> Option<Instant> {
        let (_, id) = self.by_use.first_key_value()?;
        self.by_id.get(id).map(|entry| entry.used_at)
    }

    fn remove_expired(&mut self) {
        let now = seconds_now();
        let is_expired = |id: &&String| expiry(id).is_some_and(|expires| expires <= now);
        let expired: Vec<String> = self.by_id.keys().filter(is_expired).cloned().collect();
        for id in expired {
            self.remove(&id);
        }
    }

    fn evict_oldest(&mut self) {
        if let Some((_, id)) = self.by_use.pop_first() {
            self.remove(&id);
        }
    }
}

impl FileStore {
    pub fn new(size: usize) -> FileStore {
        FileStore {
            files: Mutex::new(FairShares::new(size)),
        }
    }

    fn files(&self) -> MutexGuard<'_, FairShares<KeyFiles>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a file and returns its id. `None`: it is larger than all files together may be.
    pub fn insert(
        &self,
        owner: &str,
        mime: &'static str,
        bytes: Bytes,
        ttl: Duration,
    ) -> Option<String> {
        let expires = seconds_now().saturating_add_unsigned(ttl.as_secs());
        let id = format!("{expires:x}-{:032x}", rand::random::<u128>());
        let file = StoredFile { mime, bytes };
        let needed = entry_size(&id, &file);
        let mut files = self.files();
        if needed > files.limit() {
            return None;
        }
        let insert = |share: &mut KeyFiles| share.insert(&id, file);
        files.add(owner, needed, KeyFiles::default, insert);
        Some(id)
    }

    /// Returns a file of the owner. `Err`: it has expired, or does not exist.
    pub fn get(&self, owner: &str, id: &str) -> Result<StoredFile, ApiError> {
        let mut files = self.files();
        if expiry(id).is_some_and(|expires| expires <= seconds_now()) {
            files.update(owner, |share| share.remove(id));
            return Err(expired());
        }
        let found = files.update(owner, |share| share.get(id)).flatten();
        found.ok_or_else(|| {
            let mut api_error =
                ApiError::new(ApiErrorKind::NotFound, "there is no such file of this key");
            api_error.code = Some("file_not_found".to_owned());
            api_error
        })
    }
}

fn entry_size(id: &str, file: &StoredFile) -> usize {
    id.len() + file.bytes.len() + ENTRY_OVERHEAD
}

/// The time of expiry that an id holds, in seconds since 1970.
fn expiry(id: &str) -> Option<i64> {
    let (expires, _) = id.split_once('-')?;
    i64::from_str_radix(expires, 16).ok()
}

fn expired() -> ApiError {
    let mut api_error = ApiError::invalid("the file has expired");
    api_error.status = 410;
    api_error.code = Some("expired".to_owned());
    api_error
}

fn seconds_now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(files: &FileStore, owner: &str, size: usize) -> String {
        let bytes = Bytes::from(vec![0; size]);
        let id = files.insert(owner, "image/png", bytes, Duration::from_secs(60));
        id.expect("it fits")
    }

    #[test]
    fn only_the_owner_gets_a_file_until_it_expires() {
        let files = FileStore::new(1 << 20);
        let status = |key: &str, id: &str| match files.get(key, id) {
            Ok(_) => 200,
            Err(api_error) => api_error.status,
        };
        let id = insert(&files, "a", 1);
        assert_eq!(
            [status("a", &id), status("b", &id), status("a", "x")],
            [200, 404, 404]
        );
        let bytes = Bytes::from_static(b"x");
        let id = files.insert("a", "image/png", bytes, Duration::ZERO);
        let id = id.expect("it fits");
        assert_eq!([status("a", &id), status("b", &id)], [410, 410]);
    }

    #[test]
    fn the_file_that_was_not_used_for_longest_is_evicted_first() {
        let files = FileStore::new(100_000);
        let used = insert(&files, "a", 10_000);
        let ids: Vec<String> = (0..50)
            .map(|_| {
                assert!(files.get("a", &used).is_ok());
                insert(&files, "a", 10_000)
            })
            .collect();
        assert!(ids[45..].iter().all(|id| files.get("a", id).is_ok()));
        assert!(files.get("a", &ids[0]).is_err());
        assert!(files.get("a", &used).is_ok());
        let large = Bytes::from(vec![0; 100_000]);
        let large = files.insert("a", "image/png", large, Duration::from_secs(60));
        assert_eq!(large, None);
    }

    #[test]
    fn a_key_does_not_evict_the_files_of_another() {
        let files = FileStore::new(100_000);
        let other = insert(&files, "b", 30_000);
        for _ in 0..100 {
            insert(&files, "a", 10_000);
        }
        assert!(files.get("b", &other).is_ok());
    }
}
