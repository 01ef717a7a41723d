//! Image files that clients fetch by URL: in memory, with a limit of size and time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::model::{ApiError, ApiErrorKind};

/// The memory of an entry beside its content.
const ENTRY_OVERHEAD: usize = 256;

/// A stored file and the key that owns it.
#[derive(Clone)]
pub struct StoredFile {
    owner: Arc<str>,
    pub mime: &'static str,
    pub bytes: Bytes,
}

/// The files of all keys. The id of a file holds its time of expiry, so that an expired file can be
/// told from one that never existed.
pub struct FileStore {
    files: Cache<String, StoredFile>,
}

impl FileStore {
    pub fn new(size: usize) -> FileStore {
        let weigh = |id: &String, file: &StoredFile| {
            let size = id.len() + file.bytes.len() + ENTRY_OVERHEAD;
            u32::try_from(size).unwrap_or(u32::MAX)
        };
        FileStore {
            files: Cache::builder()
                .max_capacity(size as u64)
                .weigher(weigh)
                // The default policy evicts files that nobody has fetched yet before others.
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }
    }

    /// Stores a file and returns its id.
    pub fn insert(&self, owner: &str, mime: &'static str, bytes: Bytes, ttl: Duration) -> String {
        let expires = seconds_now().saturating_add_unsigned(ttl.as_secs());
        let id = format!("{expires:x}-{:032x}", rand::random::<u128>());
        let file = StoredFile {
            owner: owner.into(),
            mime,
            bytes,
        };
        self.files.insert(id.clone(), file);
        id
    }

    /// Returns a file of the owner. `Err`: it has expired, or does not exist.
    pub fn get(&self, owner: &str, id: &str) -> Result<StoredFile, ApiError> {
        let expires = id.split_once('-').map(|(expires, _)| expires);
        let expires = expires.and_then(|text| i64::from_str_radix(text, 16).ok());
        if expires.is_some_and(|expires| expires <= seconds_now()) {
            self.files.invalidate(id);
            return Err(expired());
        }
        let found = self.files.get(id).filter(|file| *file.owner == *owner);
        found.ok_or_else(|| {
            let mut api_error =
                ApiError::new(ApiErrorKind::NotFound, "there is no such file of this key");
            api_error.code = Some("file_not_found".to_owned());
            api_error
        })
    }
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

    #[test]
    fn only_the_owner_gets_a_file_until_it_expires() {
        let files = FileStore::new(1 << 20);
        let insert = |ttl| files.insert("a", "image/png", Bytes::from_static(b"x"), ttl);
        let status = |key: &str, id: &str| match files.get(key, id) {
            Ok(_) => 200,
            Err(api_error) => api_error.status,
        };
        let id = insert(Duration::from_secs(60));
        assert_eq!(
            [status("a", &id), status("b", &id), status("a", "x")],
            [200, 404, 404]
        );
        let id = insert(Duration::ZERO);
        assert_eq!([status("a", &id), status("b", &id)], [410, 410]);
    }

    #[test]
    fn the_oldest_file_is_evicted_first() {
        let files = FileStore::new(100_000);
        let insert = |_| {
            let bytes = Bytes::from(vec![0; 10_000]);
            files.insert("a", "image/png", bytes, Duration::from_secs(60))
        };
        let ids: Vec<String> = (0..50).map(insert).collect();
        files.files.run_pending_tasks();
        assert!(ids[45..].iter().all(|id| files.get("a", id).is_ok()));
        assert!(files.get("a", &ids[0]).is_err());
    }
}
