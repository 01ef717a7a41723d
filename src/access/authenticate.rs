//! Finds the API key of a request and checks which models it may use.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use super::keyring::Keyring;
use crate::model::{ApiError, ApiErrorKind, truncated};
use crate::runtime::{Key, Snapshot, key_hash};
use crate::store::may_be_stored_key;

/// Headers that may carry the key beside `Authorization: Bearer`; they do not decide the format.
static KEY_HEADERS: [HeaderName; 4] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-vendor-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
];

/// The query parameter that may carry a key, where the path allows it; it is never sent upstream.
pub const KEY_PARAMETER: &str = "key";

/// The key of a request, as far as it is known in memory.
pub enum KeyLookup {
    Found(Arc<Key>),
    /// The hash of a secret that the store may know.
    Unknown([u8; 32]),
    /// The id of a key that the store may know.
    UnknownId(String),
    /// The secret is none of the config, and cannot be one of the store.
    Wrong,
}

/// Authenticates a request. `query` is given only where the path allows a key there.
pub fn authenticate(
    snapshot: &Snapshot,
    keyring: Option<&Keyring>,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<KeyLookup, ApiError> {
    let secret = only_secret(headers, query)?;
    let hash = key_hash(&secret);
    match find(snapshot, keyring, &hash)? {
        Some(key) => Ok(KeyLookup::Found(key)),
        None if keyring.is_some() && may_be_stored_key(&secret) => Ok(KeyLookup::Unknown(hash)),
        None => Ok(KeyLookup::Wrong),
    }
}

/// The key of a task that was accepted earlier.
pub struct TaskKey {
    pub id: String,
    /// Of the secret that it had then.
    pub hash: [u8; 32],
}

/// Authenticates a task again that was accepted earlier. Its key may have another secret since then, and is the same.
pub fn reauthenticate(
    snapshot: &Snapshot,
    keyring: Option<&Keyring>,
    task: &TaskKey,
) -> Result<KeyLookup, ApiError> {
    // A key of the config with another secret is another key.
    if let Some(key) = snapshot.key(&task.hash) {
        return Ok(KeyLookup::Found(key.clone()));
    }
    match keyring.map(|keyring| keyring.cached_by_id(snapshot, &task.id)) {
        Some(Some(key)) => key.map(KeyLookup::Found),
        Some(None) => Ok(KeyLookup::UnknownId(task.id.clone())),
        None => Ok(KeyLookup::Wrong),
    }
}

/// Finds a key in memory. `Err`: it is known, and may not be used now.
fn find(
    snapshot: &Snapshot,
    keyring: Option<&Keyring>,
    hash: &[u8; 32],
) -> Result<Option<Arc<Key>>, ApiError> {
    if let Some(key) = snapshot.key(hash) {
        return Ok(Some(key.clone()));
    }
    match keyring.and_then(|ring| ring.cached(snapshot, hash)) {
        Some(key) => key.map(Some),
        None => Ok(None),
    }
}

/// The secret of a request. It may be sent in several places, but it must be the same: otherwise one
/// request could try many.
fn only_secret<'a>(
    headers: &'a HeaderMap,
    query: Option<&'a str>,
) -> Result<Cow<'a, [u8]>, ApiError> {
    let error = |message| ApiError::new(ApiErrorKind::Unauthenticated, message);
    let mut secrets = secrets(headers, query).filter(|secret| !secret.is_empty());
    let Some(secret) = secrets.next() else {
        let message = match is_signed_for_aws(headers) {
            true => {
                "the request is signed with credentials of AWS, and a signature has no API key: send the key as \
                 `Authorization: Bearer <key>`, which SDKs do by their api_key or by AWS_BEARER_TOKEN_BEDROCK"
            }
            false => "an API key is missing: send it as `Authorization: Bearer <key>`",
        };
        return Err(error(message));
    };
    if secrets.any(|other| other != secret) {
        let message = "the request carries several API keys that differ (in `Authorization`, `x-api-key`, \
             `x-vendor-api-key`, `x-goog-api-key`, `api-key` or `?key=`); send one";
        return Err(error(message));
    }
    Ok(secret)
}

/// The secret of a request that has been authenticated: what is shown of the request must not have it. What else its query calls
/// a key has opened nothing, and may be any number of texts of any length.
pub fn presented_secret(headers: &HeaderMap, query: Option<&str>) -> Option<Vec<u8>> {
    let mut secrets = secrets(headers, query).filter(|secret| !secret.is_empty());
    secrets.next().map(Cow::into_owned)
}

/// Checks whether the key may use the model; called before the model is looked up, so that a key
/// learns nothing of models outside of its globs.
pub fn authorize_model(key: &Key, model: &str) -> Result<(), ApiError> {
    if key.allows(model) {
        return Ok(());
    }
    let model = truncated(model);
    let message = format!("this API key may not use the model `{model}`");
    Err(ApiError::new(ApiErrorKind::Forbidden, message))
}

/// The error for a request that names a model beside its own, at an upstream that may take either.
pub fn refuse_other_model(key: &Key, field: &str) -> ApiError {
    let (key, why) = match key.is_restricted() {
        true => (&key.name, "may use some models only"),
        false => (&key.name, "has a spending cap"),
    };
    let message = format!(
        "{field}: the API key `{key}` {why}, and this field may name another model than `model`; leave it out"
    );
    ApiError::invalid(message).at(field)
}

fn secrets<'a>(
    headers: &'a HeaderMap,
    query: Option<&'a str>,
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let bearer = headers
        .get_all(AUTHORIZATION)
        .into_iter()
        .filter_map(|value| bearer(value.as_bytes()));
    let named = KEY_HEADERS
        .iter()
        .flat_map(|name| headers.get_all(name))
        .map(|value| value.as_bytes());
    let in_query = url::form_urlencoded::parse(query.unwrap_or("").as_bytes())
        .filter(|(name, _)| name == KEY_PARAMETER)
        .map(|(_, value)| Cow::Owned(value.into_owned().into_bytes()));
    bearer.chain(named).map(Cow::Borrowed).chain(in_query)
}

fn is_signed_for_aws(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).into_iter();
    values.any(|value| value.as_bytes().starts_with(b"AWS4-HMAC-SHA256"))
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}
