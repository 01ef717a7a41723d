//! The prices of a model per token, per request, per millisecond and per minute of a recording.

use crate::config::{Amount, Pricing};
use crate::model::{Money, Usage};

/// Prices of one token each, of a request, of a millisecond, and of a minute of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    input: Money,
    cached_input: Money,
    cache_write: Money,
    output: Money,
    thinking: Money,
    image_output: Money,
    per_request: Money,
    per_millisecond: Money,
    per_audio_minute: Money,
}

impl Prices {
    /// `None`: the model is free.
    pub fn from_pricing(pricing: &Pricing) -> Option<Prices> {
        if pricing.is_free() {
            return None;
        }
        let written = |price: &Option<Amount>| price.as_ref().map(|amount| amount.money);
        let or =
            |price: &Option<Amount>, other: Money| written(price).map_or(other, Money::per_token);
        let input = or(&pricing.input, Money::ZERO);
        let output = or(&pricing.output, Money::ZERO);
        let per_second = written(&pricing.per_second).unwrap_or_default();
        Some(Prices {
            input,
            cached_input: or(&pricing.cached_input, input),
            cache_write: or(&pricing.cache_write, input),
            output,
            thinking: or(&pricing.thinking, output),
            image_output: or(&pricing.image_output, output),
            per_request: written(&pricing.per_request).unwrap_or_default(),
            per_millisecond: per_second.per_millisecond(),
            per_audio_minute: written(&pricing.per_audio_minute).unwrap_or_default(),
        })
    }

    /// The cost of a request; every token counts once, and parts larger than their total are cut.
    pub fn cost(&self, usage: &Usage, milliseconds: u64) -> Money {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let thinking = usage.thinking.min(usage.output);
        let images = usage.image_output.min(usage.output - thinking);
        let tokens = [
            (self.input, usage.input - cached - written),
            (self.cached_input, cached),
            (self.cache_write, written),
            (self.output, usage.output - thinking - images),
            (self.thinking, thinking),
            (self.image_output, images),
        ];
        let tokens: Money = tokens
            .into_iter()
            .map(|(price, count)| price.times(count))
            .sum();
        tokens + self.per_request + self.per_millisecond.times(milliseconds)
    }

    /// The highest possible cost of so many tokens, whatever kind they turn out to be.
    pub fn max_cost(&self, input: u64, output: u64, milliseconds: u64) -> Money {
        let output_price = self.output.max(self.thinking).max(self.image_output);
        self.max_input_cost(input)
            + output_price.times(output)
            + self.per_request
            + self.per_millisecond.times(milliseconds)
    }

    /// The highest possible cost of so many tokens of input.
    pub fn max_input_cost(&self, input: u64) -> Money {
        let price = self.input.max(self.cached_input).max(self.cache_write);
        price.times(input)
    }

    /// The cost of a recording of so many milliseconds, beside that of its request.
    pub const fn audio_cost(&self, milliseconds: u64) -> Money {
        self.per_audio_minute.for_part_of_minute(milliseconds)
    }

    /// Tells whether the minutes of recordings have a price.
    pub const fn charges_audio(&self) -> bool {
        !self.per_audio_minute.is_zero()
    }

    /// Tells whether tokens of the output have a price.
    pub fn charges_output(&self) -> bool {
        self.output.max(self.thinking).max(self.image_output) > Money::ZERO
    }

    /// Tells whether the model is charged by time.
    pub const fn charges_time(&self) -> bool {
        !self.per_millisecond.is_zero()
    }
}
