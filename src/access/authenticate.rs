//! Finds the API key of a request and checks which models it may use.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::errors::invalid_key;
use super::keyring::Keyring;
use crate::model::{ApiError, ApiErrorKind, truncated};
use crate::runtime::{Key, Snapshot, key_hash};
use crate::store::may_be_stored_key;

/// Headers that may carry the key beside `Authorization: Bearer`; they do not decide the format.
const KEY_HEADERS: [&str; 3] = ["x-api-key", "x-vendor-api-key", "x-goog-api-key"];

/// The query parameter that may carry a key, where the path allows it; it is never sent upstream.
pub const KEY_PARAMETER: &str = "key";

/// Maximum number of presented keys that are looked up in the store for one request.
const MAX_LOOKUPS: usize = 4;

/// The key of a request, as far as it is known in memory.
pub enum KeyLookup {
    Found(Arc<Key>),
    /// The hashes of the presented secrets: the store may know one of them.
    Unknown(Vec<[u8; 32]>),
}

/// Authenticates a request. `query` is given only where the path allows a key there.
pub fn authenticate(
    snapshot: &Snapshot,
    keyring: Option<&Keyring>,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<KeyLookup, ApiError> {
    let (mut presented, mut unknown) = (false, Vec::new());
    for secret in secrets(headers, query) {
        presented = true;
        let hash = key_hash(&secret);
        if let Some(key) = snapshot.key(&hash) {
            return Ok(KeyLookup::Found(key.clone()));
        }
        if keyring.is_some() && may_be_stored_key(&secret) && unknown.len() < MAX_LOOKUPS {
            unknown.push(hash);
        }
    }
    let cached = keyring.and_then(|ring| ring.cached(snapshot, &mut unknown));
    match cached {
        Some(key) => key.map(KeyLookup::Found),
        None if !unknown.is_empty() => Ok(KeyLookup::Unknown(unknown)),
        None if presented => Err(invalid_key()),
        None => {
            let message = "an API key is missing: send it as `Authorization: Bearer <key>`";
            Err(ApiError::new(ApiErrorKind::Unauthenticated, message))
        }
    }
}

/// Authenticates a task again that was accepted earlier, by the hash of its key.
pub fn reauthenticate(
    snapshot: &Snapshot,
    keyring: Option<&Keyring>,
    hash: [u8; 32],
) -> Result<KeyLookup, ApiError> {
    if let Some(key) = snapshot.key(&hash) {
        return Ok(KeyLookup::Found(key.clone()));
    }
    let mut unknown = vec![hash];
    match keyring.map(|ring| ring.cached(snapshot, &mut unknown)) {
        None => Err(invalid_key()),
        Some(None) => Ok(KeyLookup::Unknown(unknown)),
        Some(Some(key)) => key.map(KeyLookup::Found),
    }
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

fn secrets<'a>(
    headers: &'a HeaderMap,
    query: Option<&'a str>,
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let bearer = headers
        .get_all(AUTHORIZATION)
        .into_iter()
        .filter_map(|value| bearer(value.as_bytes()));
    let named = KEY_HEADERS
        .into_iter()
        .flat_map(|name| headers.get_all(name))
        .map(|value| value.as_bytes());
    let in_query = url::form_urlencoded::parse(query.unwrap_or("").as_bytes())
        .filter(|(name, _)| name == KEY_PARAMETER)
        .map(|(_, value)| Cow::Owned(value.into_owned().into_bytes()));
    bearer.chain(named).map(Cow::Borrowed).chain(in_query)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}
