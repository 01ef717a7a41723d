//! A credential that was fetched just now.

use std::time::Duration;

use http::HeaderValue;

use crate::runtime::CredentialValue;

/// A credential that was fetched just now.
pub struct NewCredential {
    pub value: CredentialValue,
    /// How long it is valid.
    pub life: Duration,
    /// When its source wants to be asked again, where it says so.
    pub refresh_in: Option<Duration>,
}

impl NewCredential {
    /// A bearer token. `Err`: no header can hold it.
    pub(super) fn bearer(token: &str, life: Duration) -> Result<NewCredential, String> {
        let is_token = |byte: u8| byte.is_ascii_graphic();
        if token.is_empty() || !token.bytes().all(is_token) {
            return Err("the token is empty, or no header can hold it".to_owned());
        }
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = value.map_err(|_| "no header can hold the token".to_owned())?;
        value.set_sensitive(true);
        Ok(NewCredential {
            value: CredentialValue::Bearer(value),
            life,
            refresh_in: None,
        })
    }
}
