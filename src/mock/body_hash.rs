//! The hash of a request body, from which everything that looks random is made.

use sha2::{Digest as _, Sha256};

use crate::model::Format;

/// The time of creation of every response, so that the same request gives the same bytes.
pub(super) const CREATED: i64 = 1_760_000_000;

/// The SHA-256 of a request body.
pub(super) struct BodyHash {
    hex: String,
    bytes: usize,
}

impl BodyHash {
    /// Hashes a body.
    pub(super) fn of(body: &[u8]) -> BodyHash {
        let digest = Sha256::digest(body);
        BodyHash {
            hex: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            bytes: body.len(),
        }
    }

    /// Returns the first digits.
    pub(super) fn short(&self) -> &str {
        &self.hex[..12]
    }

    /// Returns the hash and the length of the body as text.
    pub(super) fn to_text(&self) -> String {
        format!("{} bytes {}", self.hex, self.bytes)
    }

    /// Returns the id of the response in a format.
    pub(super) fn id(&self, format: Format) -> String {
        let prefix = match format {
            Format::Chat => "chatcmpl-mock-",
            Format::Messages => "msg_mock",
            Format::Native => "mock-",
            Format::Responses => "resp_mock",
            Format::Images => "img-mock-",
        };
        format!("{prefix}{}", self.short())
    }
}
