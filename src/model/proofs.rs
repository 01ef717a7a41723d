//! The proofs in one reply, in order: what a client must send back, kept for one that does not.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::{Format, Issuer, Seal};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proofs(pub Vec<Proof>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    Thought {
        text: String,
        seal: Option<Seal<'static>>,
    },
    /// A call as the client knows it.
    Call {
        id: String,
        name: String,
        seal: Option<Seal<'static>>,
    },
}

/// Where the proofs of an earlier reply are found by one of its calls.
pub trait Recall: Debug {
    fn proofs(&self, call_id: &str) -> Option<Proofs>;
}

impl Proof {
    pub const fn seal(&self) -> Option<&Seal<'static>> {
        match self {
            Proof::Thought { seal, .. } | Proof::Call { seal, .. } => seal.as_ref(),
        }
    }
}

impl Proofs {
    /// Whether an upstream of this format issued any of them.
    pub fn are_of(&self, format: Format) -> bool {
        let mut seals = self.0.iter().filter_map(Proof::seal);
        seals.any(|seal| seal.issuer.format() == format)
    }

    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|proof| match proof {
            Proof::Call { id, .. } => Some(id.as_str()),
            Proof::Thought { .. } => None,
        })
    }

    /// In bytes, roughly.
    pub fn size(&self) -> usize {
        let size = |proof: &Proof| {
            let words = match proof {
                Proof::Thought { text, .. } => text.len(),
                Proof::Call { id, name, .. } => id.len() + name.len(),
            };
            words + proof.seal().map_or(0, |seal| seal.data.len()) + size_of::<Proof>()
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
