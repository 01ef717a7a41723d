//! The state that outlives a reload, by name or id: loads, circuit breakers, rate limiters and accounts.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::body_memory::{BodyMemory, BodyMemoryShare};
use super::credential::{FetchedCredential, FetchedCredentials};
use super::large_body_places::{LargeBodyPlace, LargeBodyPlaces};
use super::places::{GlobalPermit, Places};
use super::{
    Account, DiscoveredModels, Health, InspectionSwitch, Inspector, KeyErrors, KeyLimiter,
    OwnerShare, UpstreamLoad,
};
use crate::config::CredentialSource;

#[derive(Default)]
pub struct RuntimeState {
    loads: StateMap<String>,
    healths: StateMap<(String, String), Health>,
    limiters: StateMap<String, KeyLimiter>,
    shares: StateMap<String, OwnerShare>,
    /// Of all clients without a key.
    keyless: Arc<OwnerShare>,
    accounts: StateMap<String, Account>,
    inspection_switches: StateMap<String, InspectionSwitch>,
    pub inspector: Inspector,
    /// Of the present day.
    pub key_errors: KeyErrors,
    credentials: FetchedCredentials,
    discovered: StateMap<String, DiscoveredModels>,
    places: Arc<Places>,
    /// How many requests may be in flight where the config does not say so.
    default_places: OnceLock<u64>,
    body_memory: Arc<BodyMemory>,
    large_bodies: AllLargeBodies,
}

struct AllLargeBodies(LargeBodyPlaces);

impl Default for AllLargeBodies {
    fn default() -> AllLargeBodies {
        AllLargeBodies(LargeBodyPlaces::of_all())
    }
}

/// State by name. Snapshots hold what they use; no request searches here.
struct StateMap<K, T = UpstreamLoad>(Mutex<HashMap<K, Arc<T>>>);

impl<K, T> Default for StateMap<K, T> {
    fn default() -> StateMap<K, T> {
        StateMap(Mutex::default())
    }
}

impl<K: Eq + Hash, T: Default> StateMap<K, T> {
    fn get(&self, key: K) -> Arc<T> {
        let mut things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        things.entry(key).or_default().clone()
    }

    fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Arc<T>>
    where
        K: Borrow<Q>,
    {
        let things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        things.get(key).cloned()
    }

    /// Removes entries that nobody else holds.
    fn remove_unused(&self) {
        self.remove_unused_unless(|_| false);
    }

    /// Removes entries that nobody else holds, unless they are needed.
    fn remove_unused_unless(&self, is_needed: impl Fn(&T) -> bool) {
        let mut things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        things.retain(|_, thing| Arc::strong_count(thing) > 1 || is_needed(thing));
    }
}

impl RuntimeState {
    pub(super) fn load(&self, upstream: &str) -> Arc<UpstreamLoad> {
        self.loads.get(upstream.to_owned())
    }

    /// The circuit breaker of one model at one upstream, by the upstream's name of the model.
    pub(super) fn health(&self, upstream: &str, model: &str) -> Arc<Health> {
        self.healths.get((upstream.to_owned(), model.to_owned()))
    }

    pub(super) fn credential(&self, source: CredentialSource) -> Arc<FetchedCredential> {
        self.credentials.get(source)
    }

    /// The models that an upstream lists, by all that the list depends on.
    pub(super) fn discovered(&self, key: &str) -> Arc<DiscoveredModels> {
        self.discovered.get(key.to_owned())
    }

    pub(super) fn limiter(&self, key_id: &str) -> Arc<KeyLimiter> {
        self.limiters.get(key_id.to_owned())
    }

    pub(super) fn share(&self, owner_id: &str) -> Arc<OwnerShare> {
        self.shares.get(owner_id.to_owned())
    }

    /// The account of a key, or of an owner of keys, by the id.
    pub(super) fn account(&self, id: &str) -> Arc<Account> {
        self.accounts.get(id.to_owned())
    }

    /// The same, if there is one.
    pub fn find_account(&self, id: &str) -> Option<Arc<Account>> {
        self.accounts.find(id)
    }

    /// What tells the requests of a key whether they are inspected.
    pub fn inspection_switch(&self, key_id: &str) -> Arc<InspectionSwitch> {
        self.inspection_switches.get(key_id.to_owned())
    }

    /// The memory of one more body, of a request of this owner.
    pub fn body_memory(&self, owner: &Arc<OwnerShare>) -> BodyMemoryShare {
        BodyMemoryShare::new(self.body_memory.clone(), owner.clone())
    }

    /// The memory of the body of a response to a client without a key: all of these together are one owner.
    pub fn keyless_memory(&self) -> BodyMemoryShare {
        self.body_memory(&self.keyless)
    }

    /// A place to work on a large body of a request of this owner, as soon as there is one; without an owner, of a client
    /// without a key.
    pub fn large_body_place(
        &self,
        owner: Option<&Arc<OwnerShare>>,
    ) -> impl Future<Output = Option<LargeBodyPlace>> + Send + use<> {
        let of_owner = owner.unwrap_or(&self.keyless).large_bodies.semaphore();
        LargeBodyPlaces::take(of_owner, self.large_bodies.0.semaphore())
    }

    /// Called when a snapshot has been replaced.
    pub(super) fn remove_unused(&self) {
        self.loads.remove_unused();
        self.healths.remove_unused();
        self.limiters.remove_unused();
        self.shares.remove_unused();
        self.discovered.remove_unused();
        self.inspection_switches
            .remove_unused_unless(InspectionSwitch::is_on);
        // A key that is removed and added again keeps what it has spent.
        self.accounts
            .remove_unused_unless(|account| !account.is_unused());
    }

    /// Limits the requests in flight where the config does not: each takes a file of those that the system allows.
    pub fn set_default_places(&self, places: u64) {
        // The process starts once.
        let _ = self.default_places.set(places);
    }

    /// Admits one more request of an owner; `None`: all together have reached the limit, or others wait for a place.
    pub fn admit(
        &self,
        limit: Option<u64>,
        owner: &Arc<OwnerShare>,
        now: Instant,
    ) -> Option<GlobalPermit> {
        let limit = limit.or_else(|| self.default_places.get().copied());
        self.places.admit(limit, owner, now)
    }
}
