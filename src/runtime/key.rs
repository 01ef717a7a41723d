//! API keys: looked up by the hash of the secret, compared in constant time.

use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Account, Cap, KeyLimiter, RuntimeState};
use crate::config::{self, Limits};

/// An API key and its limits.
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

/// The SHA-256 of a secret.
pub fn key_hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

impl Key {
    pub fn build(settings: config::KeyConfig, state: &RuntimeState) -> Key {
        let models = settings.models.map(|globs| {
            let mut set = GlobSetBuilder::new();
            for glob in globs.iter().filter_map(|glob| Glob::new(glob).ok()) {
                set.add(glob);
            }
            // The config was checked; a set that cannot be built must not open every model.
            set.build().unwrap_or_else(|_| GlobSet::empty())
        });
        Key {
            limiter: state.limiter(&settings.name),
            cap: settings.spending_cap.map(|cap| Cap {
                amount: cap.money,
                reset: settings.reset,
            }),
            account: state.account(&settings.name),
            limits: settings.limits,
            name: settings.name.into(),
            sha256: settings.sha256,
            models,
        }
    }

    /// The hash that the key is known by.
    pub const fn hash(&self) -> [u8; 32] {
        self.sha256
    }

    /// Tells whether the key has limits per minute.
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
