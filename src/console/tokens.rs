//! Random tokens of sessions and links: 256 bits, of which only the hash is stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng as _;
use sha2::{Digest as _, Sha256};

/// A new token, and its hash.
pub struct NewToken {
    pub token: String,
    pub sha256: [u8; 32],
}

impl NewToken {
    pub fn generate() -> NewToken {
        let mut bytes = [0; 32];
        rand::rng().fill_bytes(&mut bytes);
        let token = URL_SAFE_NO_PAD.encode(bytes);
        NewToken {
            sha256: token_hash(&token),
            token,
        }
    }
}

pub fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
