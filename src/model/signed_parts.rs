//! The signed parts of a response, stored for clients that do not send signatures back.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::{Format, Issuer, Signature};

/// The signed parts of one response, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedParts(pub Vec<SignedPart>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignedPart {
    Reasoning {
        text: String,
        signature: Option<Signature<'static>>,
    },
    /// A call with the client's id and name.
    Call {
        id: String,
        name: String,
        signature: Option<Signature<'static>>,
    },
}

/// Finds the signed parts of earlier responses. Many calls may lead to one response, which may be large: its
/// parts are fetched apart.
pub trait SignatureLookup: Debug {
    /// Returns the number of the response that made a call.
    fn response_of_call(&self, call_id: &str) -> Option<u64>;
    /// Returns the signed parts of a response by its number.
    fn signed_parts(&self, response: u64) -> Option<SignedParts>;
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
    /// Tells whether an upstream of this format issued any of the signatures.
    pub fn issued_by(&self, format: Format) -> bool {
        let mut signatures = self.0.iter().filter_map(SignedPart::signature);
        signatures.any(|signature| signature.issuer.format() == format)
    }

    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            SignedPart::Call { id, .. } => Some(id.as_str()),
            SignedPart::Reasoning { .. } => None,
        })
    }

    /// The approximate size in bytes.
    pub fn size(&self) -> usize {
        let size = |part: &SignedPart| {
            let words = match part {
                SignedPart::Reasoning { text, .. } => text.len(),
                SignedPart::Call { id, name, .. } => id.len() + name.len(),
            };
            words
                + part.signature().map_or(0, |signature| signature.data.len())
                + size_of::<SignedPart>()
        };
        self.0.iter().map(size).sum()
    }
}

impl Issuer {
    /// The format whose models accept it.
    pub const fn format(self) -> Format {
        match self {
            Issuer::Thinking | Issuer::Redacted => Format::Messages,
            Issuer::Native => Format::Native,
            Issuer::Responses => Format::Responses,
        }
    }
}
