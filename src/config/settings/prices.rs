//! Prices of models, and when a spending cap resets.

use crate::model::Money;

/// The prices of a model; token prices are for a million tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pricing {
    pub currency: Option<String>,
    pub input: Option<Amount>,
    pub output: Option<Amount>,
    pub per_request: Option<Amount>,
    pub per_second: Option<Amount>,
    /// For each minute of a recording whose text is asked for.
    pub per_audio_minute: Option<Amount>,
    /// Absent: the price of the input, here and for `cache_write`.
    pub cached_input: Option<Amount>,
    pub cache_write: Option<Amount>,
    /// Absent: the price of the output, here and for `image_output`.
    pub thinking: Option<Amount>,
    pub image_output: Option<Amount>,
}

impl Pricing {
    /// The currency label.
    pub fn currency(&self) -> &str {
        self.currency.as_deref().unwrap_or("USD per 1M tokens")
    }

    /// Tells whether the model has no price at all.
    pub const fn is_free(&self) -> bool {
        self.input.is_none()
            && self.output.is_none()
            && self.per_request.is_none()
            && self.per_second.is_none()
            && self.per_audio_minute.is_none()
            && self.cached_input.is_none()
            && self.cache_write.is_none()
            && self.thinking.is_none()
            && self.image_output.is_none()
    }
}

/// An amount of money, and its source text, which the catalog shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    pub written: String,
    pub money: Money,
}

/// When a spending cap resets, in UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reset {
    /// Never.
    #[default]
    Never,
    Daily,
    Monthly,
}

impl Reset {
    pub const WORDS: [(&str, Reset); 3] = [
        ("none", Reset::Never),
        ("daily", Reset::Daily),
        ("monthly", Reset::Monthly),
    ];

    pub fn word(self) -> &'static str {
        let found = Reset::WORDS.iter().find(|(_, reset)| *reset == self);
        found.map_or("none", |(word, _)| word)
    }

    pub fn from_word(word: &str) -> Option<Reset> {
        let found = Reset::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, reset)| *reset)
    }
}
