//! Keys: looked up by the hash of what a client presents, compared in constant time.

use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Account, Cap, KeyLimiter, RuntimeState, Snapshot};
use crate::config::{self, Limits};

pub struct Key {
    pub name: Arc<str>,
    sha256: [u8; 32],
    /// `None`: every model.
    models: Option<GlobSet>,
    pub limits: Limits,
    pub limiter: Arc<KeyLimiter>,
    /// `None`: unlimited quota.
    pub cap: Option<Cap>,
    pub account: Arc<Account>,
}

pub fn key_hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

impl Key {
    pub fn build(settings: config::KeyConfig, live: &RuntimeState) -> Key {
        let models = settings.models.map(|globs| {
            let mut set = GlobSetBuilder::new();
            for glob in globs.iter().filter_map(|glob| Glob::new(glob).ok()) {
                set.add(glob);
            }
            // The config was checked; a set that cannot be built must not open every model.
            set.build().unwrap_or_else(|_| GlobSet::empty())
        });
        Key {
            limiter: live.limiter(&settings.name),
            cap: settings.spending_cap.map(|cap| Cap {
                amount: cap.money,
                reset: settings.reset,
            }),
            account: live.account(&settings.name),
            limits: settings.limits,
            name: settings.name.into(),
            sha256: settings.sha256,
            models,
        }
    }

    /// What it is known by, which is not what opens it.
    pub const fn hash(&self) -> [u8; 32] {
        self.sha256
    }

    /// Whether anything it does is counted per minute.
    pub fn is_limited(&self) -> bool {
        self.limits.requests_per_minute.is_some() || self.limits.tokens_per_minute.is_some()
    }

    pub fn has_hash(&self, presented: &[u8; 32]) -> bool {
        bool::from(self.sha256.ct_eq(presented))
    }

    pub fn allows(&self, model: &str) -> bool {
        self.models.as_ref().is_none_or(|set| set.is_match(model))
    }
}

impl Snapshot {
    /// By the hash of what was presented.
    pub fn key(&self, presented: &[u8; 32]) -> Option<&Arc<Key>> {
        let key = self.keys.get(presented);
        key.filter(|key| key.has_hash(presented))
    }
}
