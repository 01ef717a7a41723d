//! May this request go on? The key it carries, the models that key opens, its limits and its cap.

mod keyring;
mod leases;
mod limits;
mod shared;
mod spend;

pub use keyring::Keyring;
pub use leases::Leases;
pub use limits::{Admission, admit, admit_shared, admit_task};
pub use shared::SharedLimits;
pub use spend::{PendingReservation, Reserve, reserve};

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::model::{ApiError, ApiErrorKind, truncated};
use crate::runtime::{Key, Snapshot, key_hash};
use crate::store::may_be_stored_key;

/// Beside `Authorization: Bearer`; the header never decides the format.
const KEY_HEADERS: [&str; 3] = ["x-api-key", "x-vendor-api-key", "x-goog-api-key"];

/// Query parameters that may carry a key, where the path allows it, and must never go upstream.
pub const KEY_PARAMETER: &str = "key";

/// No client has more keys than these to try; who sends more does not ask for a key.
const LOOKED_UP: usize = 4;

/// Who asks, as far as memory knows.
pub enum KeyLookup {
    Found(Arc<Key>),
    /// The hashes of what was presented: the store may know one of them.
    Unknown(Vec<[u8; 32]>),
}

/// The key of a request. `query` only where the path allows a key there.
pub fn authenticate(
    snapshot: &Snapshot,
    keyring: Option<&Keyring>,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<KeyLookup, ApiError> {
    let (mut presented, mut unheard) = (false, Vec::new());
    for secret in secrets(headers, query) {
        presented = true;
        let hash = key_hash(&secret);
        if let Some(key) = snapshot.key(&hash) {
            return Ok(KeyLookup::Found(key.clone()));
        }
        if keyring.is_some() && may_be_stored_key(&secret) && unheard.len() < LOOKED_UP {
            unheard.push(hash);
        }
    }
    let held = keyring.and_then(|ring| ring.held(snapshot, &mut unheard));
    match held {
        Some(key) => key.map(KeyLookup::Found),
        None if !unheard.is_empty() => Ok(KeyLookup::Unknown(unheard)),
        None if presented => Err(invalid_key()),
        None => {
            let message = "an API key is missing: send it as `Authorization: Bearer <key>`";
            Err(ApiError::new(ApiErrorKind::Unauthenticated, message))
        }
    }
}

/// What a key is told that nobody knows.
pub fn invalid_key() -> ApiError {
    ApiError::new(ApiErrorKind::Unauthenticated, "the API key is not valid")
}

/// The same for a request that was admitted before, and goes on now.
pub fn reauthenticate(
    snapshot: &Snapshot,
    keyring: Option<&Keyring>,
    hash: [u8; 32],
) -> Result<KeyLookup, ApiError> {
    if let Some(key) = snapshot.key(&hash) {
        return Ok(KeyLookup::Found(key.clone()));
    }
    let mut unheard = vec![hash];
    match keyring.map(|ring| ring.held(snapshot, &mut unheard)) {
        None => Err(invalid_key()),
        Some(None) => Ok(KeyLookup::Unknown(unheard)),
        Some(Some(key)) => key.map(KeyLookup::Found),
    }
}

/// Whether the key opens the model; asked before the model is looked up, so that a key
/// learns nothing of models outside its globs.
pub fn authorize_model(key: &Key, model: &str) -> Result<(), ApiError> {
    if key.allows(model) {
        return Ok(());
    }
    let model = truncated(model);
    let message = format!("this API key does not open the model `{model}`");
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
    let asked = url::form_urlencoded::parse(query.unwrap_or("").as_bytes())
        .filter(|(name, _)| name == KEY_PARAMETER)
        .map(|(_, value)| Cow::Owned(value.into_owned().into_bytes()));
    bearer.chain(named).map(Cow::Borrowed).chain(asked)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}
