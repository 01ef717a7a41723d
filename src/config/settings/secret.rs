//! Secrets that can be compared.

use std::fmt;
use std::hash::{Hash, Hasher};

use secrecy::{ExposeSecret as _, SecretString};

/// A secret of the config that can be compared, but is never shown.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    pub fn new(text: String) -> Secret {
        Secret(SecretString::from(text))
    }

    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expose().hash(state);
    }
}
