//! The proofs in one reply, in order: what a client must send back, kept for one that does not.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::{Format, Issuer, Signature};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedParts(pub Vec<SignedPart>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignedPart {
    Reasoning {
        text: String,
        signature: Option<Signature<'static>>,
    },
    /// A call as the client knows it.
    Call {
        id: String,
        name: String,
        signature: Option<Signature<'static>>,
    },
}

/// Where the proofs of an earlier reply are found by one of its calls.
pub trait SignatureLookup: Debug {
    fn signed_parts(&self, call_id: &str) -> Option<SignedParts>;
}

impl SignedPart {
    pub const fn signature(&self) -> Option<&Signature<'static>> {
        match self {
            SignedPart::Reasoning { signature, .. } | SignedPart::Call { signature, .. } => {
                signature.as_ref()
            }
        }
    }
}

impl SignedParts {
    /// Whether an upstream of this format issued any of them.
    pub fn issued_by(&self, format: Format) -> bool {
        let mut signatures = self.0.iter().filter_map(SignedPart::signature);
        signatures.any(|signature| signature.issuer.format() == format)
    }

    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|proof| match proof {
            SignedPart::Call { id, .. } => Some(id.as_str()),
            SignedPart::Reasoning { .. } => None,
        })
    }

    /// In bytes, roughly.
    pub fn size(&self) -> usize {
        let size = |proof: &SignedPart| {
            let words = match proof {
                SignedPart::Reasoning { text, .. } => text.len(),
                SignedPart::Call { id, name, .. } => id.len() + name.len(),
            };
            words
                + proof
                    .signature()
                    .map_or(0, |signature| signature.data.len())
                + size_of::<SignedPart>()
        };
        self.0.iter().map(size).sum()
    }
}

impl Issuer {
    /// Whose models can read it.
    pub const fn format(self) -> Format {
        match self {
            Issuer::Thinking | Issuer::Redacted => Format::Messages,
            Issuer::Native => Format::Native,
            Issuer::Responses => Format::Responses,
        }
    }
}
