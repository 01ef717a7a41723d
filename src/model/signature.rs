//! Signatures of reasoning and calls, and the wrapping that carries them through another format.
//!
//! A signature goes back only to the format that issued it. In any other format it travels in that
//! format's own opaque field as `base64("omniglot/1 " + code + "\n" + raw)`.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use memchr::memmem::Finder;

use serde::{Deserialize, Serialize};

use super::Text;
use super::text::borrowed;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature<'a> {
    pub issuer: Issuer,
    pub data: Text<'a>,
}

/// Which opaque field of which format the data came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Issuer {
    /// The signature of a thinking block of the messages format.
    Thinking,
    /// A redacted thinking block of the messages format.
    Redacted,
    /// A part's signature in the native format.
    Native,
    /// A reasoning item of the responses format: its id, a line feed, its ciphertext.
    Responses,
}

const MARK: &str = "omniglot/1 ";

/// Clients may re-encode a value with the URL-safe alphabet, with or without padding.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);

impl Issuer {
    const ALL: [Issuer; 4] = [
        Issuer::Thinking,
        Issuer::Redacted,
        Issuer::Native,
        Issuer::Responses,
    ];

    /// Tells whether a signature is worth nothing without the text that it was made for.
    pub const fn needs_text(self) -> bool {
        matches!(self, Issuer::Thinking)
    }

    const fn code(self) -> char {
        match self {
            Issuer::Thinking => 'm',
            Issuer::Redacted => 'r',
            Issuer::Native => 'n',
            Issuer::Responses => 'e',
        }
    }
}

/// The start of every wrapped signature.
const WRAPPED: &[u8] = b"b21uaWdsb3QvMS";

impl Signature<'_> {
    /// Tells whether a body may contain a wrapped signature.
    pub fn may_be_in(body: &[u8]) -> bool {
        static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(WRAPPED));
        FINDER.find(body).is_some()
    }

    /// The same signature, without a copy of its data.
    pub fn borrowed(&self) -> Signature<'_> {
        Signature {
            issuer: self.issuer,
            data: borrowed(&self.data),
        }
    }

    /// Wraps the signature for the opaque field of another format.
    pub fn wrap(&self) -> String {
        STANDARD.encode(format!("{MARK}{}\n{}", self.issuer.code(), self.data))
    }

    /// Unwraps a wrapped signature; `None` for anything else.
    pub fn unwrap_text(wrapped: &str) -> Option<Signature<'static>> {
        let url_safe = wrapped.contains(['-', '_']);
        let alphabet = if url_safe {
            &alphabet::URL_SAFE
        } else {
            &alphabet::STANDARD
        };
        let bytes = GeneralPurpose::new(alphabet, LENIENT)
            .decode(wrapped)
            .ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (code, data) = text.strip_prefix(MARK)?.split_once('\n')?;
        let issuer = Issuer::ALL
            .into_iter()
            .find(|issuer| code.len() == 1 && code.starts_with(issuer.code()))?;
        Some(Signature {
            issuer,
            data: data.to_owned().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_survives_both_alphabets_and_lost_padding() {
        for issuer in Issuer::ALL {
            let signature = Signature {
                issuer,
                data: "a?>~ÿ\nsecond line".into(),
            };
            let wrapped = signature.wrap();
            assert!(wrapped.starts_with("b21uaWdsb3QvMS"));
            assert!(Signature::may_be_in(
                format!("{{\"a\":\"{wrapped}\"}}").as_bytes()
            ));
            assert_eq!(Signature::unwrap_text(&wrapped), Some(signature.clone()));
            let url_safe = wrapped.replace('+', "-").replace('/', "_");
            assert_eq!(
                Signature::unwrap_text(url_safe.trim_end_matches('=')),
                Some(signature)
            );
        }
    }

    #[test]
    fn foreign_values_are_not_unwrapped() {
        for foreign in ["", "EqQBCkYIBRgC", "skip_thought_signature_validator", "{}"] {
            assert_eq!(Signature::unwrap_text(foreign), None);
        }
    }
}
