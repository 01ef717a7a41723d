//! The server that gave an id: only there the id stands for what a key was given.

use sha2::{Digest as _, Sha256};

use crate::config::BaseUrl;

/// How many bytes of a hash tell servers apart.
const LENGTH: usize = 16;

/// A server, by its base URL: upstreams with different credentials for one may share what it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdOrigin([u8; LENGTH]);

impl IdOrigin {
    pub fn of(base: &BaseUrl) -> IdOrigin {
        let BaseUrl {
            tls,
            host,
            port,
            prefix,
            ..
        } = base;
        let hash = Sha256::digest(format!("{tls} {host} {port} {prefix}"));
        IdOrigin(std::array::from_fn(|at| hash[at]))
    }

    /// Reads one as it was stored. `None`: it was stored before origins were, and may be any.
    pub fn from_stored(bytes: &[u8]) -> Option<IdOrigin> {
        bytes.try_into().ok().map(IdOrigin)
    }

    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
