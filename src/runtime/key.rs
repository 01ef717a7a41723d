//! API keys: looked up by the hash of the secret, compared in constant time.

use std::fmt;
use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Account, Cap, InspectionSwitch, KeyLimiter, OwnerShare, RuntimeState};
use crate::config::{self, Limits};
use crate::model::{CapKind, Money};

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
    /// The person or team that it belongs to.
    pub owner: Option<KeyOwner>,
    /// Whose share of what all keys have together it takes: that of its owner, or its own.
    pub owner_id: Arc<str>,
    pub share: Arc<OwnerShare>,
    pub inspection: Arc<InspectionSwitch>,
}

/// The person or team that a key belongs to.
#[derive(Clone)]
pub struct KeyOwner {
    pub id: Arc<str>,
    /// Of the account.
    pub name: Arc<str>,
    /// It holds above those of the keys. `None`: unlimited.
    pub cap: Option<Cap>,
    pub account: Arc<Account>,
}

/// What a [`KeyOwner`] is made from.
pub struct OwnerSettings {
    pub id: String,
    pub name: String,
    pub cap: Option<Cap>,
}

/// A cap that the requests of a key keep within: its own, or that of its owner.
#[derive(Clone, Copy)]
pub struct CappedAccount<'k> {
    pub kind: CapKind,
    pub id: &'k Arc<str>,
    pub name: &'k str,
    pub cap: Cap,
    pub account: &'k Arc<Account>,
}

/// As messages name it to who holds the key.
impl fmt::Display for CappedAccount<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CapKind::Key => write!(out, "the API key `{}`", self.name),
            CapKind::Account => write!(out, "the account `{}` of this API key", self.name),
        }
    }
}

/// The longest name of a model that globs are tried on, in bytes: a client may write any length, and matching takes time.
const MAX_MATCHED: usize = 256;

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

    /// Builds a key with this id. `owner`: the person or team that it belongs to.
    pub fn build(
        id: String,
        owner: Option<OwnerSettings>,
        settings: config::KeyConfig,
        state: &RuntimeState,
    ) -> Key {
        let is_all = |globs: &Vec<String>| globs.iter().any(|glob| glob == "*");
        let is_restricted = settings.models.as_ref().is_some_and(|globs| !is_all(globs));
        let models = settings.models.map(|globs| {
            let mut set = GlobSetBuilder::new();
            // The store may have globs of an earlier version, which knew no limit.
            let globs = globs.iter().filter(|glob| config::model_glob(glob).is_ok());
            for glob in globs.filter_map(|glob| Glob::new(glob).ok()) {
                set.add(glob);
            }
            // The config was checked; a set that cannot be built must not open every model.
            set.build().unwrap_or_else(|_| GlobSet::empty())
        });
        let owner = owner.map(|owner| KeyOwner {
            account: state.account(&owner.id),
            id: owner.id.into(),
            name: owner.name.into(),
            cap: owner.cap,
        });
        let owner_id = owner.as_ref().map_or(&*id, |owner| &*owner.id);
        let account = state.account(&id);
        account.set_owner(owner.as_ref().map(|owner| owner.account.clone()));
        Key {
            share: state.share(owner_id),
            owner_id: owner_id.into(),
            limiter: state.limiter(&id),
            cap: settings.spending_cap.map(|cap| Cap {
                amount: cap.money,
                reset: settings.reset,
            }),
            account,
            owner,
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

    /// Tells whether a spending cap holds for its requests: its own, or that of its owner.
    pub fn is_capped(&self) -> bool {
        self.cap.is_some() || self.owner.as_ref().is_some_and(|owner| owner.cap.is_some())
    }

    /// One of its caps.
    pub fn capped(&self) -> Option<CappedAccount<'_>> {
        self.own_cap().or_else(|| self.owner_cap())
    }

    /// Its own cap.
    pub fn own_cap(&self) -> Option<CappedAccount<'_>> {
        self.cap.map(|cap| CappedAccount {
            kind: CapKind::Key,
            id: &self.id,
            name: &self.name,
            cap,
            account: &self.account,
        })
    }

    /// The cap of its owner.
    pub fn owner_cap(&self) -> Option<CappedAccount<'_>> {
        let owner = self.owner.as_ref()?;
        owner.cap.map(|cap| CappedAccount {
            kind: CapKind::Account,
            id: &owner.id,
            name: &owner.name,
            cap,
            account: &owner.account,
        })
    }

    /// Adds a cost; also where there is no cap, as there may be one later.
    pub fn spend(&self, cost: Money, at: Timestamp) {
        self.account.spend(cost, at);
        if let Some(owner) = &self.owner {
            owner.account.spend(cost, at);
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
        let is_matched = |set: &GlobSet| model.len() <= MAX_MATCHED && set.is_match(model);
        self.models.as_ref().is_none_or(is_matched)
    }
}
