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

impl Pricing {
    /// The prices by their names in the config.
    const fn amounts(&self) -> [(&'static str, Option<&Amount>); 9] {
        [
            ("input", self.input.as_ref()),
            ("cached_input", self.cached_input.as_ref()),
            ("cache_write", self.cache_write.as_ref()),
            ("output", self.output.as_ref()),
            ("thinking", self.thinking.as_ref()),
            ("image_output", self.image_output.as_ref()),
            ("per_request", self.per_request.as_ref()),
            ("per_second", self.per_second.as_ref()),
            ("per_audio_minute", self.per_audio_minute.as_ref()),
        ]
    }

    /// The prices as one text, such as `input=1.25 output=10`, which usage records keep.
    pub fn to_text(&self) -> String {
        let amounts = self.amounts().into_iter();
        let named = amounts.filter_map(|(name, amount)| Some(format!("{name}={}", amount?.money)));
        named.collect::<Vec<_>>().join(" ")
    }

    /// Reads what `to_text` writes. `None`: it is no such text.
    pub fn from_text(text: &str) -> Option<Pricing> {
        let mut pricing = Pricing::default();
        for named in text.split_whitespace() {
            let (name, written) = named.split_once('=')?;
            let place = match name {
                "input" => &mut pricing.input,
                "cached_input" => &mut pricing.cached_input,
                "cache_write" => &mut pricing.cache_write,
                "output" => &mut pricing.output,
                "thinking" => &mut pricing.thinking,
                "image_output" => &mut pricing.image_output,
                "per_request" => &mut pricing.per_request,
                "per_second" => &mut pricing.per_second,
                "per_audio_minute" => &mut pricing.per_audio_minute,
                _ => return None,
            };
            *place = Some(Amount {
                written: written.to_owned(),
                money: Money::parse(written)?,
            });
        }
        Some(pricing)
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
