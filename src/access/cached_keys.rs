//! Keys of the store in memory, by the hashes of their secrets.

use std::collections::HashMap;
use std::sync::Arc;

use subtle::ConstantTimeEq as _;

use crate::runtime::{Cap, Key, OwnerSettings, Runtime};
use crate::store::StoredKey;

#[derive(Default)]
pub(super) struct CachedKeys {
    pub(super) by_hash: HashMap<[u8; 32], CachedKey>,
    /// What each key is cached under, by its id: the hash of its secret, and that of the one before.
    pub(super) hashes: HashMap<Arc<str>, [Option<[u8; 32]>; 2]>,
    /// Every change up to this revision is included.
    pub(super) revision: i64,
}

#[derive(Clone)]
pub(super) struct CachedKey {
    pub(super) key: Arc<Key>,
    /// Of the secret that it is cached under.
    pub(super) sha256: [u8; 32],
    /// Of this secret.
    pub(super) expires: Option<i64>,
}

impl CachedKeys {
    pub(super) fn get(&self, hash: &[u8; 32]) -> Option<&CachedKey> {
        let cached = self.by_hash.get(hash);
        cached.filter(|cached| bool::from(cached.sha256.ct_eq(hash)))
    }

    /// Caches a key under its secret, and under the one before while that works.
    pub(super) fn put(&mut self, found: StoredKey, runtime: &Runtime) {
        self.remove(&found.id);
        let (sha256, expires, previous) = (found.settings.sha256, found.expires, found.previous);
        let name = found.account;
        let owner = found.owner.map(|owner| OwnerSettings {
            cap: owner.spending_cap.map(|amount| Cap {
                amount,
                reset: owner.reset,
            }),
            id: owner.id,
            name,
        });
        let key = Key::build(found.id, owner, found.settings, &runtime.state);
        let key = Arc::new(key);
        let hashes = [Some(sha256), previous.map(|previous| previous.sha256)];
        self.hashes.insert(key.id.clone(), hashes);
        if let Some(previous) = previous {
            let cached = CachedKey {
                key: key.clone(),
                sha256: previous.sha256,
                expires: Some(expires.map_or(previous.until, |at| at.min(previous.until))),
            };
            self.by_hash.insert(previous.sha256, cached);
        }
        let cached = CachedKey {
            key,
            sha256,
            expires,
        };
        self.by_hash.insert(sha256, cached);
    }

    /// Forgets a key under every secret that it was cached under.
    pub(super) fn remove(&mut self, id: &str) {
        let hashes = self.hashes.remove(id).unwrap_or_default();
        for hash in hashes.into_iter().flatten() {
            self.by_hash.remove(&hash);
        }
    }
}
