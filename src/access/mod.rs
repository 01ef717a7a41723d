//! May this request go on? The key it carries, the models that key opens, its limits and its cap.

mod limits;
mod spend;

pub use limits::{Admission, enter};
pub use spend::reserve;

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::model::{Fault, FaultKind, shortened};
use crate::runtime::{Key, Snapshot};

/// Beside `Authorization: Bearer`; the header never decides the format.
const KEY_HEADERS: [&str; 3] = ["x-api-key", "x-vendor-api-key", "x-goog-api-key"];

/// Query parameters that may carry a key, where the path allows it, and must never go upstream.
pub const KEY_PARAMETER: &str = "key";

/// The key of a request. `query` only where the path allows a key there.
pub fn admit(
    snapshot: &Snapshot,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Arc<Key>, Fault> {
    let mut presented = false;
    for secret in secrets(headers, query) {
        presented = true;
        if let Some(key) = snapshot.key(&secret) {
            return Ok(key.clone());
        }
    }
    let message = if presented {
        "the API key is not valid"
    } else {
        "an API key is missing: send it as `Authorization: Bearer <key>`"
    };
    Err(Fault::new(FaultKind::Unauthenticated, message))
}

/// The key of a request that was admitted before, and goes on now.
pub fn readmit(snapshot: &Snapshot, known: &[u8; 32]) -> Result<Arc<Key>, Fault> {
    let gone = || {
        Fault::new(
            FaultKind::Unauthenticated,
            "the API key is not valid any more",
        )
    };
    snapshot.known_key(known).cloned().ok_or_else(gone)
}

/// Whether the key opens the model; asked before the model is looked up, so that a key
/// learns nothing of models outside its globs.
pub fn allow(key: &Key, model: &str) -> Result<(), Fault> {
    if key.allows(model) {
        return Ok(());
    }
    let model = shortened(model);
    let message = format!("this API key does not open the model `{model}`");
    Err(Fault::new(FaultKind::Forbidden, message))
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
