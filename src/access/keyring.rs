//! The keys of the store, held in memory and kept in step with it; what memory does not know is
//! looked up once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use moka::future::Cache;
use tokio::sync::Notify;

use super::invalid_key;
use super::limits::{ASK_AGAIN, again_after};
use crate::config::Limits;
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::model::{ApiError, ApiErrorKind, Spending};
use crate::runtime::{Key, KeyLimiter, Runtime, Snapshot};
use crate::store::{Store, StoreError, StoredKey};

/// How long and of how many keys it is remembered that the store does not know them.
const UNKNOWN_FOR: Duration = Duration::from_secs(3);
const UNKNOWN_KEYS: u64 = 10_000;

/// More accounts than this are opened with one question for all, which reads what everybody has spent since the
/// process began: so many are new at its start, when that is little.
const MANY: usize = 1_000;

/// What strangers may ask of the store: guesses must not keep it from its work.
const LOOKUPS: Limits = Limits {
    requests_per_minute: Some(1200),
    tokens_per_minute: None,
    concurrency: Some(64),
};

pub struct Keyring {
    store: Store,
    /// What it still has from an earlier process is not in the store: until it is, no account is opened.
    journal: Arc<Journal>,
    began: Timestamp,
    ring: RwLock<Ring>,
    unknown: Cache<[u8; 32], ()>,
    lookups: Arc<KeyLimiter>,
    /// ReservationResult when accounts may have to be opened.
    wanted: Notify,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Ring {
    keys: HashMap<[u8; 32], Held>,
    /// Every change up to this is in.
    seen: i64,
}

#[derive(Clone)]
struct Held {
    key: Arc<Key>,
    expires: Option<i64>,
}

/// Why a key is not remembered as unknown.
#[derive(Clone)]
enum Outcome {
    Found(Held),
    /// Too many ask for what is not there.
    Crowded,
    Failed,
}

impl Keyring {
    pub fn new(store: Store, journal: Arc<Journal>, metrics: Arc<Metrics>) -> Keyring {
        Keyring {
            store,
            journal,
            began: Timestamp::now(),
            ring: RwLock::default(),
            unknown: Cache::builder()
                .max_capacity(UNKNOWN_KEYS)
                .time_to_live(UNKNOWN_FOR)
                .build(),
            lookups: Arc::default(),
            wanted: Notify::new(),
            metrics,
        }
    }

    /// The first of these that memory knows and that may be used; or why not, if it knows them all.
    /// Those that it does not know are left.
    pub(super) fn held(
        &self,
        snapshot: &Snapshot,
        hashes: &mut Vec<[u8; 32]>,
    ) -> Option<Result<Arc<Key>, ApiError>> {
        if hashes.is_empty() {
            return None;
        }
        let (mut found, mut refused) = (None, None);
        let ring = self.ring();
        hashes.retain(|hash| {
            match ring.held(hash).map(|held| usable(held, snapshot)) {
                None => return true,
                Some(Ok(key)) => found = found.take().or(Some(key)),
                Some(Err(api_error)) => refused = refused.take().or(Some(api_error)),
            }
            false
        });
        match found {
            Some(key) => Some(Ok(key)),
            None => refused.filter(|_| hashes.is_empty()).map(Err),
        }
    }

    /// The same of the store. Who asks for the same one waits for the same answer.
    pub async fn look_up(
        &self,
        runtime: &Runtime,
        snapshot: &Snapshot,
        hashes: &[[u8; 32]],
    ) -> Result<Arc<Key>, ApiError> {
        let mut refused = None;
        for hash in hashes {
            let asked = self.unknown.try_get_with(*hash, self.ask(runtime, hash));
            let api_error = match asked.await.map_err(|outcome| Outcome::clone(&outcome)) {
                Ok(()) => continue,
                Err(Outcome::Found(held)) => match usable(&held, snapshot) {
                    Ok(key) => return Ok(key),
                    Err(api_error) => api_error,
                },
                Err(Outcome::Crowded) => later("too many unknown API keys are being tried"),
                Err(Outcome::Failed) => later("the API key cannot be looked up now"),
            };
            refused = refused.or(Some(api_error));
        }
        Err(refused.unwrap_or_else(invalid_key))
    }

    async fn ask(&self, runtime: &Runtime, hash: &[u8; 32]) -> Result<(), Outcome> {
        // Who came a moment too late to wait with the others finds what they were told.
        if let Some(held) = self.ring().held(hash) {
            return Err(Outcome::Found(held.clone()));
        }
        let permit = self.lookups.admit(&LOOKUPS, Instant::now());
        let _permit = permit.map_err(|_| Outcome::Crowded)?;
        let answer = self.store.query(self.fetch(hash)).await;
        self.metrics.looked_up(match &answer {
            Ok(Some(_)) => "found",
            Ok(None) => "unknown",
            Err(_) => "failed",
        });
        let Some((found, spent, now)) = answer.map_err(|_| Outcome::Failed)? else {
            return Ok(());
        };
        match self.take(runtime, found) {
            Some(held) => {
                if let Some(spent) = spent {
                    held.key.account.open(spent, now);
                }
                Err(Outcome::Found(held))
            }
            None => Ok(()),
        }
    }

    /// A key, and what it has spent if that can be known.
    async fn fetch(
        &self,
        hash: &[u8; 32],
    ) -> Result<Option<(StoredKey, Option<Spending>, Timestamp)>, StoreError> {
        let Some(found) = self.store.key(hash).await? else {
            return Ok(None);
        };
        let (name, now) = (&found.settings.name, Timestamp::now());
        if !self.journal.has_flushed_previous() {
            return Ok(Some((found, None, now)));
        }
        let mut spent = self.store.spending(Some(name), self.began, now).await?;
        let spent = spent.remove(name).unwrap_or_default();
        Ok(Some((found, Some(spent), now)))
    }

    /// A key that was looked up, unless a later change to it is in already.
    fn take(&self, runtime: &Runtime, found: StoredKey) -> Option<Held> {
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        let hash = found.settings.sha256;
        if found.revision > ring.seen {
            ring.keys.insert(hash, Held::build(found, runtime));
        }
        ring.keys.get(&hash).cloned()
    }

    /// Brings memory into step with the store, and fills the accounts that are new here.
    pub async fn follow(&self, runtime: &Runtime) -> Result<(), StoreError> {
        let seen = self.ring().seen;
        let changes = self.store.keys_since(seen).await?;
        if !changes.is_empty() {
            self.apply(runtime, changes);
        }
        self.open_accounts(runtime).await
    }

    fn apply(&self, runtime: &Runtime, changes: Vec<StoredKey>) {
        let snapshot = runtime.snapshot();
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            let hash = change.settings.sha256;
            ring.seen = change.revision;
            if change.revoked.is_some() {
                ring.keys.remove(&hash);
                continue;
            }
            let held = Held::build(change, runtime);
            if snapshot.key_names.contains(&held.key.name) {
                warn_of_shadow(&held.key.name);
            }
            ring.keys.insert(hash, held);
        }
    }

    async fn open_accounts(&self, runtime: &Runtime) -> Result<(), StoreError> {
        let snapshot = runtime.snapshot();
        let mut waiting: Vec<Arc<Key>> = snapshot.keys.values().cloned().collect();
        waiting.extend(self.all_held());
        waiting.retain(|key| !key.account.is_open());
        if waiting.is_empty() || !self.journal.has_flushed_previous() {
            return Ok(());
        }
        let now = Timestamp::now();
        let mut spent = HashMap::new();
        if waiting.len() > MANY {
            spent = self.store.spending(None, self.began, now).await?;
        } else {
            for key in &waiting {
                spent.extend(
                    self.store
                        .spending(Some(&key.name), self.began, now)
                        .await?,
                );
            }
        }
        for key in waiting {
            let before: Spending = spent.get(&*key.name).copied().unwrap_or_default();
            key.account.open(before, now);
        }
        Ok(())
    }

    fn ring(&self) -> RwLockReadGuard<'_, Ring> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_held(&self) -> Vec<Arc<Key>> {
        let ring = self.ring();
        ring.keys.values().map(|held| held.key.clone()).collect()
    }

    /// Another config is in force: it may have keys that are new here, or that stand in front of others.
    pub fn note_reload(&self, snapshot: &Snapshot) {
        for key in self.all_held() {
            if snapshot.key_names.contains(&key.name) {
                warn_of_shadow(&key.name);
            }
        }
        self.wanted.notify_one();
    }

    /// Returns when memory may be out of step for a reason of this process's own.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }
}

fn warn_of_shadow(name: &str) {
    log::warn!("the config has a key named {name:?}: the one in the store is not let in");
}

/// Whether a key that is there may be used at this moment.
fn usable(held: &Held, snapshot: &Snapshot) -> Result<Arc<Key>, ApiError> {
    // Both would share limits and account.
    if snapshot.key_names.contains(&held.key.name) {
        return Err(invalid_key());
    }
    let now = Timestamp::now().as_millisecond();
    if held.expires.is_some_and(|expires| expires <= now) {
        let message = "the API key has expired";
        return Err(ApiError::new(ApiErrorKind::Unauthenticated, message));
    }
    Ok(held.key.clone())
}

fn later(reason: &str) -> ApiError {
    let api_error = ApiError::new(ApiErrorKind::Overloaded, format!("{reason}; try again"));
    again_after(api_error, ASK_AGAIN)
}

impl Ring {
    fn held(&self, hash: &[u8; 32]) -> Option<&Held> {
        let held = self.keys.get(hash);
        held.filter(|held| held.key.has_hash(hash))
    }
}

impl Held {
    fn build(found: StoredKey, runtime: &Runtime) -> Held {
        Held {
            key: Arc::new(Key::build(found.settings, &runtime.state)),
            expires: found.expires,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::store::KeyChange;

    #[tokio::test]
    async fn who_comes_after_the_answer_is_not_looked_up_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let text = format!("store: \"sqlite:{}\"", path.display());
        let config = config::parse("test.yaml", &text, &|_| None).expect("a good config");
        let settings = config.store.clone().expect("a store");
        let store = Store::open(&settings).await.expect("a store");
        let journal = Journal::open(folder.path(), 1 << 20).expect("a journal");
        let keyring = Keyring::new(store.clone(), Arc::new(journal), Arc::default());
        let runtime = Runtime::new(config);
        let created = store.create_key("dev", &KeyChange::default()).await;
        let hashes = [created.expect("a key").0.settings.sha256];

        let snapshot = runtime.snapshot();
        let first = keyring.look_up(&runtime, &snapshot, &hashes).await;
        // It had been found missing before the first one was told.
        let late = keyring.look_up(&runtime, &snapshot, &hashes).await;
        let (first, late) = (first.expect("a key"), late.expect("a key"));
        assert!(Arc::ptr_eq(&first, &late));
    }
}
