//! The store, the limits store and the journal.

use std::fmt;
use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};

/// Where keys, usage and spending are kept.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreConfig {
    Sqlite(PathBuf),
    Postgres(ServerUrl),
}

/// Shown without its password.
#[derive(Debug, Clone)]
pub struct ServerUrl {
    pub url: SecretString,
    shown: String,
}

impl ServerUrl {
    /// The scheme as it is shown.
    pub fn new(scheme: &str, url: &url::Url) -> ServerUrl {
        let user = match url.username() {
            "" => String::new(),
            user => format!("{user}@"),
        };
        let port = url.port().map(|port| format!(":{port}"));
        // Parameters may hold a password too.
        let shown = format!(
            "{scheme}://{user}{}{}{}",
            url.host_str().unwrap_or_default(),
            port.unwrap_or_default(),
            url.path()
        );
        ServerUrl {
            url: url.as_str().into(),
            shown,
        }
    }
}

impl PartialEq for ServerUrl {
    fn eq(&self, other: &ServerUrl) -> bool {
        self.url.expose_secret() == other.url.expose_secret()
    }
}

/// A Redis where gateways together count what keys do.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitsStore(pub ServerUrl);

impl fmt::Display for LimitsStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.shown)
    }
}

impl fmt::Display for StoreConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreConfig::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            StoreConfig::Postgres(address) => out.write_str(&address.shown),
        }
    }
}

/// The journal, where usage records wait until the store has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalConfig {
    pub path: PathBuf,
    /// In bytes; what would go beyond is not written.
    pub limit: u64,
    /// How much of the disk of a SQLite store is left to usage records.
    pub min_free: u64,
}
