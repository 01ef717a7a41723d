//! API keys: looked up by the hash of the secret, compared in constant time.

use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Account, Cap, InspectionSwitch, KeyLimiter, OwnerShare, RuntimeState};
use crate::config::{self, Limits};

/// An API key and its limits.
#[derive(Clone)]
pub struct Key {
    /// What the key owns goes by this. Unlike the name, no other key ever has it.
    pub id: Arc<str>,
    pub name: Arc<str>,
    sha256: [u8; 32],
    /// `None`: every model.
    models: Option<GlobSet>,
    /// Some models are not among these.
    is_restricted: bool,
    pub limits: Limits,
    pub limiter: Arc<KeyLimiter>,
    /// `None`: unlimited quota.
    pub cap: Option<Cap>,
    pub account: Arc<Account>,
    /// Whose share of what all keys have together it takes: that of the person whose account it belongs to, or its own.
    pub owner_id: Arc<str>,
    pub share: Arc<OwnerShare>,
    pub inspection: Arc<InspectionSwitch>,
}

/// Keeps the ids of keys apart from the hashes of their secrets.
const ID_SALT: &[u8] = b"omniglot key id";

/// The SHA-256 of a secret.
pub fn key_hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// The id of a key of the config, from the hash of its secret.
pub fn config_key_id(sha256: &[u8; 32]) -> String {
    // Not the hash itself: a record of usage should not help to guess a secret.
    let hash = key_hash(&[ID_SALT, sha256].concat());
    hash[..16]
        .iter()
        .fold("config-".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}

impl Key {
    /// Builds a key of the config. It is another key when it has another secret.
    pub fn of_config(settings: config::KeyConfig, state: &RuntimeState) -> Key {
        Key::build(config_key_id(&settings.sha256), None, settings, state)
    }

    /// Builds a key with this id. `account`: the id of the account of the person that it belongs to.
    pub fn build(
        id: String,
        account: Option<String>,
        settings: config::KeyConfig,
        state: &RuntimeState,
    ) -> Key {
        let is_all = |globs: &Vec<String>| globs.iter().any(|glob| glob == "*");
        let is_restricted = settings.models.as_ref().is_some_and(|globs| !is_all(globs));
        let models = settings.models.map(|globs| {
            let mut set = GlobSetBuilder::new();
            for glob in globs.iter().filter_map(|glob| Glob::new(glob).ok()) {
                set.add(glob);
            }
            // The config was checked; a set that cannot be built must not open every model.
            set.build().unwrap_or_else(|_| GlobSet::empty())
        });
        let owner_id = account.unwrap_or_else(|| id.clone());
        Key {
            share: state.share(&owner_id),
            owner_id: owner_id.into(),
            limiter: state.limiter(&id),
            cap: settings.spending_cap.map(|cap| Cap {
                amount: cap.money,
                reset: settings.reset,
            }),
            account: state.account(&id),
            inspection: state.inspection_switch(&id),
            id: id.into(),
            limits: settings.limits,
            name: settings.name.into(),
            sha256: settings.sha256,
            models,
            is_restricted,
        }
    }

    /// The same key, all whose limits it shares, with requests that are captured apart from its others.
    pub fn inspected_by(&self, inspection: Arc<InspectionSwitch>) -> Key {
        Key {
            inspection,
            ..self.clone()
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

    /// Tells whether there are models that the key may not use.
    pub const fn is_restricted(&self) -> bool {
        self.is_restricted
    }

    pub fn allows(&self, model: &str) -> bool {
        self.models.as_ref().is_none_or(|set| set.is_match(model))
    }
}
