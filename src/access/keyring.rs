//! Caches the keys of the store in memory and follows its changes; a key that is not cached is looked up once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use moka::future::Cache;
use tokio::sync::Notify;

use super::cached_keys::{CachedKey, CachedKeys};
use super::errors::{RETRY_SOON, invalid_key, retry_after};
use super::temporary_secrets::TemporarySecrets;
use crate::config::Limits;
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::model::{ApiError, ApiErrorKind, Spending};
use crate::runtime::{InspectionSwitch, Key, KeyLimiter, KeyOwner, Runtime, Snapshot};
use crate::store::{Store, StoreError, StoredKey};

/// For how long, and for how many keys, it is cached that the store does not know them.
const UNKNOWN_FOR: Duration = Duration::from_secs(3);
const UNKNOWN_KEYS: u64 = 10_000;

/// From so many new accounts on, the spending of all keys is loaded with one query.
const BULK_LOAD_FROM: usize = 1_000;

/// Limits of lookups: guessed keys must not overload the store.
const LOOKUP_LIMITS: Limits = Limits {
    requests_per_minute: Some(1200),
    tokens_per_minute: None,
    concurrency: Some(64),
};

pub struct Keyring {
    store: Store,
    /// While it has records of an earlier process, the spending in the store is incomplete and is not loaded.
    journal: Arc<Journal>,
    began: Timestamp,
    cached_keys: RwLock<CachedKeys>,
    unknown: Cache<[u8; 32], ()>,
    temporary: TemporarySecrets,
    lookups: Arc<KeyLimiter>,
    /// ReservationResult when accounts may have to be opened.
    sync_requested: Notify,
    metrics: Arc<Metrics>,
}

/// A key of the store with what it and its owner had spent at a time, if that is complete.
struct FetchedKey {
    key: StoredKey,
    spent: Option<[Spending; 2]>,
    at: Timestamp,
}

/// The outcome of a lookup that is not cached as unknown.
#[derive(Clone)]
enum LookupOutcome {
    Found(CachedKey),
    /// Too many unknown keys are being looked up.
    TooMany,
    Failed,
}

impl Keyring {
    pub fn new(store: Store, journal: Arc<Journal>, metrics: Arc<Metrics>) -> Keyring {
        Keyring {
            store,
            journal,
            began: Timestamp::now(),
            cached_keys: RwLock::default(),
            unknown: Cache::builder()
                .max_capacity(UNKNOWN_KEYS)
                .time_to_live(UNKNOWN_FOR)
                .build(),
            lookups: Arc::default(),
            temporary: TemporarySecrets::default(),
            sync_requested: Notify::new(),
            metrics,
        }
    }

    /// A key that is cached, or the error if it is and may not be used.
    pub(super) fn cached(
        &self,
        snapshot: &Snapshot,
        hash: &[u8; 32],
    ) -> Option<Result<Arc<Key>, ApiError>> {
        if let Some(cached) = self.cache().get(hash) {
            return Some(usable(cached, snapshot));
        }
        // Only what is not cached may be one of these.
        let temporary = self.temporary.find(hash)?;
        let inspected = |key: &Arc<Key>| key.inspected_by(temporary.inspection.clone());
        let mut of_config = snapshot.keys.values();
        match of_config.find(|key| key.id == temporary.key_id) {
            Some(key) => Some(Ok(Arc::new(inspected(key)))),
            None => {
                let key = self.cached_by_id(snapshot, &temporary.key_id)?;
                Some(key.map(|key| Arc::new(inspected(&key))))
            }
        }
    }

    /// Makes a secret of a key that is valid for a minute, in this process alone. `inspection` captures what is asked with it.
    pub async fn issue_secret(
        &self,
        runtime: &Runtime,
        id: &str,
        inspection: Arc<InspectionSwitch>,
    ) -> Result<String, ApiError> {
        let snapshot = runtime.snapshot();
        let is_of_config = snapshot.keys.values().any(|key| &*key.id == id);
        if !is_of_config && self.cached_by_id(&snapshot, id).is_none() {
            self.look_up_id(runtime, &snapshot, id).await?;
        }
        Ok(self.temporary.issue(id, inspection))
    }

    /// The same of a key by its id, whatever its secret is now.
    pub(super) fn cached_by_id(
        &self,
        snapshot: &Snapshot,
        id: &str,
    ) -> Option<Result<Arc<Key>, ApiError>> {
        let keys = self.cache();
        let [hash, _] = keys.hashes.get(id)?;
        keys.get(hash.as_ref()?)
            .map(|cached| usable(cached, snapshot))
    }

    /// Looks a key up in the store by its id. Its requests were counted when they were made.
    pub async fn look_up_id(
        &self,
        runtime: &Runtime,
        snapshot: &Snapshot,
        id: &str,
    ) -> Result<Arc<Key>, ApiError> {
        let found = async {
            let found = self.store.key_by_id(id).await?;
            Ok(found.filter(|key| key.revoked.is_none() && !key.is_disabled))
        };
        let fetched = self.store.query("", self.fetch(runtime, found)).await;
        let fetched = fetched.map_err(|_| try_later("the API key cannot be looked up now"))?;
        let cached = fetched.and_then(|fetched| {
            let hash = fetched.key.settings.sha256;
            self.insert_fetched(runtime, fetched, &hash)
        });
        usable(&cached.ok_or_else(invalid_key)?, snapshot)
    }

    /// Looks a key up in the store. Concurrent lookups of one key share one query.
    pub async fn look_up(
        &self,
        runtime: &Runtime,
        snapshot: &Snapshot,
        hash: &[u8; 32],
    ) -> Result<Arc<Key>, ApiError> {
        let lookup = self.unknown.try_get_with(*hash, self.query(runtime, hash));
        match lookup.await.as_ref().map_err(|outcome| &**outcome) {
            Ok(()) => Err(invalid_key()),
            Err(LookupOutcome::Found(cached)) => usable(cached, snapshot),
            Err(LookupOutcome::TooMany) => Err(too_many_unknown()),
            Err(LookupOutcome::Failed) => Err(try_later("the API key cannot be looked up now")),
        }
    }

    async fn query(&self, runtime: &Runtime, hash: &[u8; 32]) -> Result<(), LookupOutcome> {
        // A lookup that just ended may have cached it.
        if let Some(cached) = self.cache().get(hash) {
            return Err(LookupOutcome::Found(cached.clone()));
        }
        let permit = self.lookups.admit(&LOOKUP_LIMITS, Instant::now());
        let _permit = permit.map_err(|_| LookupOutcome::TooMany)?;
        let answer = self
            .store
            .query("", self.fetch(runtime, self.store.key(hash)))
            .await;
        self.metrics.record_key_lookup(match &answer {
            Ok(Some(_)) => "found",
            Ok(None) => "unknown",
            Err(_) => "failed",
        });
        let fetched = answer.map_err(|_| LookupOutcome::Failed)?;
        let cached = fetched.and_then(|fetched| self.insert_fetched(runtime, fetched, hash));
        cached.map_or(Ok(()), |cached| Err(LookupOutcome::Found(cached)))
    }

    /// Loads a key, and what it has spent if that is complete.
    async fn fetch(
        &self,
        runtime: &Runtime,
        found: impl Future<Output = Result<Option<StoredKey>, StoreError>>,
    ) -> Result<Option<FetchedKey>, StoreError> {
        let Some(key) = found.await? else {
            return Ok(None);
        };
        let (began, at) = (self.began, Timestamp::now());
        if !self.journal.has_flushed_previous() {
            return Ok(Some(FetchedKey {
                key,
                spent: None,
                at,
            }));
        }
        let mut spent = self.store.spending(Some(&key.id), began, at).await?;
        let own = spent.remove(&key.id).unwrap_or_default();
        let is_loaded = |id: &str| {
            let account = runtime.state.find_account(id);
            account.is_some_and(|account| account.is_loaded())
        };
        let of_owner = match &key.owner {
            Some(owner) if !is_loaded(&owner.id) => {
                self.store.account_spending(&owner.id, began, at).await?
            }
            Some(_) | None => Spending::default(),
        };
        let spent = Some([own, of_owner]);
        Ok(Some(FetchedKey { key, spent, at }))
    }

    /// Caches a key that was fetched with what it has spent, under the hash of this secret of it.
    fn insert_fetched(
        &self,
        runtime: &Runtime,
        fetched: FetchedKey,
        hash: &[u8; 32],
    ) -> Option<CachedKey> {
        let cached = self.insert(runtime, fetched.key, hash)?;
        if let Some([own, of_owner]) = fetched.spent {
            cached.key.account.load_spent(own, fetched.at);
            if let Some(owner) = &cached.key.owner {
                owner.account.load_spent(of_owner, fetched.at);
            }
        }
        Some(cached)
    }

    /// Caches a key that was looked up, unless a later change of it is cached already.
    fn insert(&self, runtime: &Runtime, found: StoredKey, hash: &[u8; 32]) -> Option<CachedKey> {
        let mut keys = self
            .cached_keys
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if found.revision > keys.revision {
            self.share_queries(&found);
            keys.put(found, runtime);
        }
        keys.by_hash.get(hash).cloned()
    }

    /// Applies the changes of the store, and loads the spending of new accounts.
    pub async fn sync(&self, runtime: &Runtime) -> Result<(), StoreError> {
        let revision = self.cache().revision;
        let changes = self.store.keys_since(revision).await?;
        if !changes.is_empty() {
            self.apply(runtime, changes);
        }
        self.open_accounts(runtime).await
    }

    fn apply(&self, runtime: &Runtime, changes: Vec<StoredKey>) {
        let snapshot = runtime.snapshot();
        let mut keys = self
            .cached_keys
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            keys.revision = change.revision;
            if change.revoked.is_some() || change.is_disabled {
                self.store.share_queries(&change.id, None);
                keys.remove(&change.id);
                continue;
            }
            if snapshot.key_names.contains(change.settings.name.as_str()) {
                warn_shadowed(&change.settings.name);
            }
            self.share_queries(&change);
            keys.put(change, runtime);
        }
    }

    fn share_queries(&self, key: &StoredKey) {
        let account = key.owner.as_ref().map(|owner| &*owner.id);
        self.store.share_queries(&key.id, account);
    }

    async fn open_accounts(&self, runtime: &Runtime) -> Result<(), StoreError> {
        let snapshot = runtime.snapshot();
        let mut pending: Vec<Arc<Key>> = snapshot.keys.values().cloned().collect();
        pending.extend(self.cached_keys());
        let is_loaded = |key: &Key| {
            let owner = key.owner.as_ref();
            key.account.is_loaded() && owner.is_none_or(|owner| owner.account.is_loaded())
        };
        pending.retain(|key| !is_loaded(key));
        if pending.is_empty() || !self.journal.has_flushed_previous() {
            return Ok(());
        }
        let of_config: Vec<(&str, &str)> = snapshot
            .keys
            .values()
            .map(|key| (&*key.name, &*key.id))
            .collect();
        self.store.adopt(&of_config).await?;
        let now = Timestamp::now();
        let mut spent = HashMap::new();
        if pending.len() > BULK_LOAD_FROM {
            spent = self.store.spending(None, self.began, now).await?;
        } else {
            for key in &pending {
                spent.extend(self.store.spending(Some(&key.id), self.began, now).await?);
            }
        }
        for key in &pending {
            let before: Spending = spent.get(&*key.id).copied().unwrap_or_default();
            key.account.load_spent(before, now);
        }
        // Those with a cap first: only for them does it matter soon.
        let mut owners: Vec<&KeyOwner> = pending
            .iter()
            .filter_map(|key| key.owner.as_ref())
            .collect();
        owners.sort_by_key(|owner| owner.cap.is_none());
        for owner in owners {
            if !owner.account.is_loaded() {
                let store = &self.store;
                let before = store.account_spending(&owner.id, self.began, now).await?;
                owner.account.load_spent(before, now);
            }
        }
        Ok(())
    }

    fn cache(&self) -> RwLockReadGuard<'_, CachedKeys> {
        self.cached_keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys that were used, each once.
    pub fn cached_keys(&self) -> Vec<Arc<Key>> {
        let cache = self.cache();
        let hashes = cache.hashes.values();
        let newest = hashes.filter_map(|hashes| hashes.iter().flatten().next());
        newest
            .filter_map(|hash| Some(cache.by_hash.get(hash)?.key.clone()))
            .collect()
    }

    /// Called after a reload: the config may have new keys, or keys that shadow those of the store.
    pub fn on_reload(&self, snapshot: &Snapshot) {
        for key in self.cached_keys() {
            if snapshot.key_names.contains(&key.name) {
                warn_shadowed(&key.name);
            }
        }
        self.sync_requested.notify_one();
    }

    /// Waits until a sync is requested.
    pub async fn sync_requested(&self) {
        self.sync_requested.notified().await;
    }
}

fn warn_shadowed(name: &str) {
    log::warn!("the config has a key named {name:?}: the key of that name in the store is refused");
}

/// Checks whether a cached key may be used now.
fn usable(cached: &CachedKey, snapshot: &Snapshot) -> Result<Arc<Key>, ApiError> {
    // Usage is reported by name: both would be one.
    if snapshot.key_names.contains(&cached.key.name) {
        return Err(invalid_key());
    }
    let now = Timestamp::now().as_millisecond();
    if cached.expires.is_some_and(|expires| expires <= now) {
        let message = "the API key has expired";
        return Err(ApiError::new(ApiErrorKind::Unauthenticated, message));
    }
    Ok(cached.key.clone())
}

fn try_later(reason: &str) -> ApiError {
    let api_error = ApiError::new(ApiErrorKind::Overloaded, format!("{reason}; try again"));
    retry_after(api_error, RETRY_SOON)
}

/// The store is well, and is not asked for more keys than it should look for.
fn too_many_unknown() -> ApiError {
    let message = "too many unknown API keys are being tried; try again";
    retry_after(
        ApiError::new(ApiErrorKind::RateLimited, message),
        RETRY_SOON,
    )
}

#[cfg(test)]
mod tests;
