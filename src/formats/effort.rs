//! How much a model thinks: the words that formats and configs share, and the budgets of tokens that stand for them.

use crate::json::Node;
use crate::model::{ApiError, Depth, Effort};

/// The word for no thinking at all.
pub(super) const NO_EFFORT: &str = "none";

const NAMES: [(&str, Effort); 6] = [
    ("minimal", Effort::Minimal),
    ("low", Effort::Low),
    ("medium", Effort::Medium),
    ("high", Effort::High),
    ("xhigh", Effort::ExtraHigh),
    ("max", Effort::Max),
];

impl Effort {
    /// The word of the chat, responses and messages formats, and of configs.
    pub(super) fn name(self) -> &'static str {
        let name = NAMES.iter().find(|(_, effort)| *effort == self);
        name.map_or("", |(name, _)| name)
    }

    /// The effort of a word.
    pub(super) fn from_name(name: &str) -> Option<Effort> {
        let effort = NAMES.iter().find(|(known, _)| *known == name);
        effort.map(|(_, effort)| *effort)
    }

    /// The effort that stands for a budget of tokens.
    pub(super) const fn of_budget(tokens: u64) -> Effort {
        match tokens {
            0..=1024 => Effort::Low,
            1025..=8192 => Effort::Medium,
            _ => Effort::High,
        }
    }

    /// The budget of tokens that stands for an effort.
    pub(super) const fn budget(self) -> u64 {
        match self {
            Effort::Minimal => 512,
            Effort::Low => 1024,
            Effort::Medium => 8192,
            Effort::High => 24_576,
            Effort::ExtraHigh | Effort::Max => 32_768,
        }
    }
}

/// Decodes an effort, or `none`.
pub(super) fn decode_effort(node: Node<'_, '_>) -> Result<Depth, ApiError> {
    let path = node.path;
    let word = node.text()?;
    if word == NO_EFFORT {
        return Ok(Depth::Off);
    }
    let effort = Effort::from_name(&word).map(Depth::Effort);
    effort.ok_or_else(|| path.wrong_text("none, minimal, low, medium, high, xhigh or max", &word))
}
