//! The secrets of keys, and the hashes that are stored of them.

use rand::distr::{Alphanumeric, SampleString as _};

/// The prefix of a secret, and how many random letters and digits follow.
const SECRET: &str = "sk-omniglot-";
const RANDOM: usize = 40;

/// Length of the part of a secret that lists show.
pub(super) const SHOWN: usize = SECRET.len() + 6;

/// Tells whether a secret has the form of the store's keys; others are never looked up.
pub fn may_be_stored_key(secret: &[u8]) -> bool {
    let random = secret.strip_prefix(SECRET.as_bytes());
    random.is_some_and(|random| {
        random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// A new secret of the form that all keys of the store have.
pub fn new_secret() -> String {
    let random = Alphanumeric.sample_string(&mut rand::rng(), RANDOM);
    format!("{SECRET}{random}")
}

pub(super) fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    (text.len() == 64).then_some(bytes)
}
