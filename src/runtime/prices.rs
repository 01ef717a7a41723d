//! What a model's tokens cost, ready to be multiplied.

use crate::config::{Amount, Pricing};
use crate::model::{Money, Usage};

/// Those of tokens are for a million of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    input: Money,
    cached_input: Money,
    cache_write: Money,
    output: Money,
    thinking: Money,
    image_output: Money,
    per_request: Money,
    per_second: Money,
}

impl Prices {
    /// `None`: nothing has a price, and nothing is to be counted.
    pub fn of(pricing: &Pricing) -> Option<Prices> {
        if pricing.is_free() {
            return None;
        }
        let or = |price: &Option<Amount>, other: Money| {
            let price = price.as_ref();
            price.map_or(other, |amount| amount.money)
        };
        let input = or(&pricing.input, Money::ZERO);
        let output = or(&pricing.output, Money::ZERO);
        Some(Prices {
            input,
            cached_input: or(&pricing.cached_input, input),
            cache_write: or(&pricing.cache_write, input),
            output,
            thinking: or(&pricing.thinking, output),
            image_output: or(&pricing.image_output, output),
            per_request: or(&pricing.per_request, Money::ZERO),
            per_second: or(&pricing.per_second, Money::ZERO),
        })
    }

    /// Each token once: shares that are larger than their whole are cut.
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
            .map(|(price, count)| price.for_tokens(count))
            .sum();
        tokens + self.per_request + self.per_second.for_milliseconds(milliseconds)
    }

    /// The most that so much can cost, whatever kind of tokens they turn out to be.
    pub fn most(&self, input: u64, output: u64, milliseconds: u64) -> Money {
        let read = self.input.max(self.cached_input).max(self.cache_write);
        let said = self.output.max(self.thinking).max(self.image_output);
        read.for_tokens(input)
            + said.for_tokens(output)
            + self.per_request
            + self.per_second.for_milliseconds(milliseconds)
    }

    /// Whether time is a part of the price.
    pub const fn counts_time(&self) -> bool {
        !self.per_second.is_zero()
    }
}
