//! Secrets of keys that are valid for a minute, and in this process alone: the console asks with them in the name of a person.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::runtime::{InspectionSwitch, key_hash};
use crate::store::new_secret;

/// How long a request may begin with it.
const VALID_FOR: Duration = Duration::from_secs(60);

/// The secrets by their hashes.
#[derive(Default)]
pub(super) struct TemporarySecrets(RwLock<HashMap<[u8; 32], TemporarySecret>>);

#[derive(Clone)]
pub(super) struct TemporarySecret {
    pub(super) key_id: Arc<str>,
    until: Instant,
    /// Captures the requests with this secret, and no others of the key.
    pub(super) inspection: Arc<InspectionSwitch>,
}

impl TemporarySecrets {
    /// Makes one for a key.
    pub(super) fn issue(&self, key_id: &str, inspection: Arc<InspectionSwitch>) -> String {
        let (secret, now) = (new_secret(), Instant::now());
        let mut secrets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        secrets.retain(|_, other| other.until > now);
        let temporary = TemporarySecret {
            key_id: key_id.into(),
            until: now + VALID_FOR,
            inspection,
        };
        secrets.insert(key_hash(secret.as_bytes()), temporary);
        secret
    }

    /// The secret with this hash, if its time is not over.
    pub(super) fn find(&self, hash: &[u8; 32]) -> Option<TemporarySecret> {
        let secrets = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = secrets.get(hash)?;
        (found.until > Instant::now()).then(|| found.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_valid_for_a_minute() {
        let secrets = TemporarySecrets::default();
        let secret = secrets.issue("one", Arc::default());
        let hash = key_hash(secret.as_bytes());
        assert_eq!(&*secrets.find(&hash).expect("it is valid").key_id, "one");
        assert!(secrets.find(&key_hash(b"another")).is_none());
        let mut held = secrets.0.write().expect("no panic");
        held.get_mut(&hash).expect("it").until = Instant::now();
        drop(held);
        assert!(secrets.find(&hash).is_none());
        secrets.issue("two", Arc::default());
        assert_eq!(secrets.0.read().expect("no panic").len(), 1);
    }
}
