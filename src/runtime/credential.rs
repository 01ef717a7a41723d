//! Credentials that are fetched: the current one, the requests that wait for it, and what outlives a reload.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::HeaderValue;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::config::CredentialSource;

/// How often an upstream's refusal has a credential fetched again. One that refuses all of them must not make the gateway
/// ask for a new one with every request.
const REJECTION_INTERVAL: Duration = Duration::from_secs(10);

/// A credential as it was fetched.
pub struct Credential {
    pub value: CredentialValue,
    /// When the next one is fetched, while this one is still in use.
    pub refresh_at: Instant,
    /// When it is not used any more.
    pub expires_at: Instant,
}

pub enum CredentialValue {
    /// The value of the header `authorization`, with the word `Bearer`.
    Bearer(HeaderValue),
    /// Signs each request.
    Aws {
        credentials: AwsCredentials,
        scope: SigningScope,
    },
}

/// A key of AWS.
#[derive(Debug, Clone)]
pub struct AwsCredentials {
    pub access_key_id: String,
    pub secret_access_key: SecretString,
    /// Only of credentials that expire.
    pub session_token: Option<SecretString>,
    /// Absent: they do not expire.
    pub expires_at: Option<Timestamp>,
}

/// The part of AWS that a signature is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningScope {
    pub region: String,
    pub service: String,
}

impl CredentialValue {
    /// Everything in it that no log and no client may see.
    pub fn secrets(&self) -> Vec<&[u8]> {
        match self {
            CredentialValue::Bearer(value) => {
                let value = value.as_bytes();
                vec![value.strip_prefix(b"Bearer ").unwrap_or(value)]
            }
            CredentialValue::Aws { credentials, .. } => {
                let token = credentials.session_token.iter();
                let secrets = [&credentials.secret_access_key].into_iter().chain(token);
                let secrets = secrets.map(|secret| secret.expose_secret().as_bytes());
                secrets
                    .chain([credentials.access_key_id.as_bytes()])
                    .collect()
            }
        }
    }
}

/// Hides the value.
impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter
            .debug_struct("Credential")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// A source and what was fetched from it last. Reading it takes no lock.
pub struct FetchedCredential {
    pub source: CredentialSource,
    current: ArcSwapOption<Credential>,
    /// The one before: an upstream may still speak of it.
    previous: ArcSwapOption<Credential>,
    outcome: watch::Sender<FetchOutcome>,
    wanted: Notify,
    rejected_at: Mutex<Option<Instant>>,
}

/// How the last fetch went.
#[derive(Debug, Clone, Default)]
struct FetchOutcome {
    /// `None`: it went well, or there was none yet.
    failure: Option<Arc<str>>,
}

impl FetchedCredential {
    pub fn new(source: CredentialSource) -> FetchedCredential {
        FetchedCredential {
            source,
            current: ArcSwapOption::empty(),
            previous: ArcSwapOption::empty(),
            outcome: watch::Sender::new(FetchOutcome::default()),
            wanted: Notify::new(),
            rejected_at: Mutex::default(),
        }
    }

    /// The current credential, unless it has expired.
    pub fn current(&self) -> Option<Arc<Credential>> {
        let current = self.current.load();
        let current = current.as_ref()?;
        (Instant::now() < current.expires_at).then(|| current.clone())
    }

    /// The current credential; waits for the first one. `Err`: why there is none, until a later fetch succeeds.
    pub async fn get(&self) -> Result<Arc<Credential>, Arc<str>> {
        let mut outcomes = self.outcome.subscribe();
        loop {
            let failure = outcomes.borrow_and_update().failure.clone();
            if let Some(current) = self.current() {
                return Ok(current);
            }
            if let Some(failure) = failure {
                return Err(failure);
            }
            self.wanted.notify_one();
            if outcomes.changed().await.is_err() {
                return Err("the gateway is about to stop".into());
            }
        }
    }

    /// Drops a credential that an upstream has refused. `false`: it is fetched no sooner than planned, because another
    /// one was refused just now.
    pub fn reject(&self, refused: &Arc<Credential>) -> bool {
        let is_refused = |current: &Arc<Credential>| Arc::ptr_eq(current, refused);
        if !self.current.load().as_ref().is_some_and(is_refused) {
            // Somebody else has had it replaced.
            return true;
        }
        let now = Instant::now();
        let mut rejected_at = self
            .rejected_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if rejected_at.is_some_and(|at| now < at + REJECTION_INTERVAL) {
            return false;
        }
        *rejected_at = Some(now);
        self.previous.store(self.current.swap(None));
        self.wanted.notify_one();
        true
    }

    /// Replaces the credential, and wakes all who wait for one.
    pub fn set(&self, credential: Credential) {
        let before = self.current.swap(Some(Arc::new(credential)));
        if before.is_some() {
            self.previous.store(before);
        }
        self.outcome.send_modify(|outcome| outcome.failure = None);
    }

    /// Notes that no credential could be fetched; the one before stays until it expires.
    pub fn set_failed(&self, reason: &str) {
        let failure = Some(reason.into());
        self.outcome
            .send_modify(|outcome| outcome.failure = failure);
    }

    /// Waits until a request wants a credential that is not there.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// The credentials that an upstream may know, for what must not be shown.
    pub fn recent(&self) -> impl Iterator<Item = Arc<Credential>> {
        let recent = [self.current.load_full(), self.previous.load_full()];
        recent.into_iter().flatten()
    }
}

/// All credentials in use, by their sources.
#[derive(Default)]
pub(super) struct FetchedCredentials(Mutex<HashMap<CredentialSource, Weak<FetchedCredential>>>);

impl FetchedCredentials {
    /// The credential of a source, with all that was fetched from it so far.
    pub(super) fn get(&self, source: CredentialSource) -> Arc<FetchedCredential> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&source).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, known| known.strong_count() > 0);
        let made = Arc::new(FetchedCredential::new(source.clone()));
        all.insert(source, Arc::downgrade(&made));
        made
    }
}
