//! Files that are kept for the clients whose images they are, in memory, within a bound and for a while.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::model::{ApiError, ApiErrorKind};

/// What an entry costs beside its content.
const OVERHEAD: usize = 256;

#[derive(Clone)]
pub struct File {
    owner: Arc<str>,
    pub mime: &'static str,
    pub bytes: Bytes,
}

/// The moment a file expires stands in its id, so that one which is gone can be told from one
/// which never was.
pub struct Files {
    kept: Cache<String, File>,
}

impl Files {
    pub fn new(size: usize) -> Files {
        let weigh = |id: &String, file: &File| {
            let size = id.len() + file.bytes.len() + OVERHEAD;
            u32::try_from(size).unwrap_or(u32::MAX)
        };
        Files {
            kept: Cache::builder()
                .max_capacity(size as u64)
                .weigher(weigh)
                // By default one that nobody has fetched yet has to give way to those that were.
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }
    }

    /// The id that it is kept under.
    pub fn keep(&self, owner: &str, mime: &'static str, bytes: Bytes, ttl: Duration) -> String {
        let expires = seconds_now().saturating_add_unsigned(ttl.as_secs());
        let id = format!("{expires:x}-{:032x}", rand::random::<u128>());
        let file = File {
            owner: owner.into(),
            mime,
            bytes,
        };
        self.kept.insert(id.clone(), file);
        id
    }

    pub fn get(&self, owner: &str, id: &str) -> Result<File, ApiError> {
        let expires = id.split_once('-').map(|(expires, _)| expires);
        let expires = expires.and_then(|text| i64::from_str_radix(text, 16).ok());
        if expires.is_some_and(|expires| expires <= seconds_now()) {
            self.kept.invalidate(id);
            return Err(gone());
        }
        let found = self.kept.get(id).filter(|file| *file.owner == *owner);
        found.ok_or_else(|| {
            let mut api_error =
                ApiError::new(ApiErrorKind::NotFound, "there is no such file of this key");
            api_error.code = Some("file_not_found".to_owned());
            api_error
        })
    }
}

fn gone() -> ApiError {
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
    fn a_file_is_its_keys_own_until_it_expires() {
        let files = Files::new(1 << 20);
        let keep = |ttl| files.keep("a", "image/png", Bytes::from_static(b"x"), ttl);
        let status = |key: &str, id: &str| match files.get(key, id) {
            Ok(_) => 200,
            Err(api_error) => api_error.status,
        };
        let id = keep(Duration::from_secs(60));
        assert_eq!(
            [status("a", &id), status("b", &id), status("a", "x")],
            [200, 404, 404]
        );
        let id = keep(Duration::ZERO);
        assert_eq!([status("a", &id), status("b", &id)], [410, 410]);
    }

    #[test]
    fn the_oldest_makes_room_for_the_newest() {
        let files = Files::new(100_000);
        let keep = |_| {
            let bytes = Bytes::from(vec![0; 10_000]);
            files.keep("a", "image/png", bytes, Duration::from_secs(60))
        };
        let ids: Vec<String> = (0..50).map(keep).collect();
        files.kept.run_pending_tasks();
        assert!(ids[45..].iter().all(|id| files.get("a", id).is_ok()));
        assert!(files.get("a", &ids[0]).is_err());
    }
}
