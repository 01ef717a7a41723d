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

/// What a price is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceUnit {
    MillionTokens,
    Request,
    Second,
    Minute,
}

/// One line of a bill: so much of something, its price, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillLine {
    /// The name of the price in the config.
    pub item: &'static str,
    /// Tokens, requests, or milliseconds of what is priced by time.
    pub count: u64,
    pub unit: PriceUnit,
    /// For one unit.
    pub price: Money,
    pub amount: Money,
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

    /// The tokens by their prices; every token counts once, and parts larger than their total are cut.
    fn tokens(&self, usage: &Usage) -> [(&'static str, Money, u64); 6] {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let thinking = usage.thinking.min(usage.output);
        let images = usage.image_output.min(usage.output - thinking);
        [
            ("input", self.input, usage.input - cached - written),
            ("cached_input", self.cached_input, cached),
            ("cache_write", self.cache_write, written),
            ("output", self.output, usage.output - thinking - images),
            ("thinking", self.thinking, thinking),
            ("image_output", self.image_output, images),
        ]
    }

    /// The cost of a request.
    pub fn cost(&self, usage: &Usage, milliseconds: u64) -> Money {
        let tokens = self.tokens(usage).into_iter();
        let tokens: Money = tokens.map(|(_, price, count)| price.times(count)).sum();
        tokens + self.per_request + self.per_millisecond.times(milliseconds)
    }

    /// The cost of a request and its recording, line by line; the amounts add up to it.
    pub fn bill(&self, usage: &Usage, milliseconds: u64, audio: u64) -> Vec<BillLine> {
        let tokens = self.tokens(usage).into_iter();
        let tokens = tokens.map(|(item, price, count)| BillLine {
            item,
            count,
            unit: PriceUnit::MillionTokens,
            price: price.times(1_000_000),
            amount: price.times(count),
        });
        let others = [
            BillLine {
                item: "per_request",
                count: 1,
                unit: PriceUnit::Request,
                price: self.per_request,
                amount: self.per_request,
            },
            BillLine {
                item: "per_second",
                count: milliseconds,
                unit: PriceUnit::Second,
                price: self.per_millisecond.times(1000),
                amount: self.per_millisecond.times(milliseconds),
            },
            BillLine {
                item: "per_audio_minute",
                count: audio,
                unit: PriceUnit::Minute,
                price: self.per_audio_minute,
                amount: self.audio_cost(audio),
            },
        ];
        let others = others.into_iter().filter(|line| !line.price.is_zero());
        let lines = tokens.chain(others);
        lines.filter(|line| line.count > 0).collect()
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

    /// The cost of further requests that an upstream bills one as, without their tokens.
    pub const fn further_requests_cost(&self, count: u64) -> Money {
        self.per_request.times(count)
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

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "input=1.25 cached_input=0.125 cache_write=1.5625 output=10 thinking=12 image_output=40 \
         per_request=0.001 per_second=0.000000007 per_audio_minute=0.006";

    fn prices(text: &str) -> Prices {
        let pricing = Pricing::from_text(text).expect("prices");
        assert_eq!(pricing.to_text(), text, "it is written as it was read");
        Prices::from_pricing(&pricing).expect("a price")
    }

    #[test]
    fn the_lines_of_a_bill_add_up_to_the_last_digit() {
        let usage = Usage {
            input: 1_234_567,
            cached: 1000,
            cache_written: 77,
            output: 891,
            thinking: 300,
            image_output: 1,
            ..Usage::default()
        };
        let blank = Usage::default();
        for (text, usage, milliseconds, audio) in [
            (ALL, usage, 1501, 61_003),
            (ALL, blank, 0, 0),
            ("input=3", usage, 9, 9),
            ("per_audio_minute=0.007", blank, 0, 1),
        ] {
            let prices = prices(text);
            let lines = prices.bill(&usage, milliseconds, audio);
            let sum: Money = lines.iter().map(|line| line.amount).sum();
            let cost = prices.cost(&usage, milliseconds) + prices.audio_cost(audio);
            assert_eq!(sum, cost, "{text}: {lines:?}");
            assert!(lines.iter().all(|line| line.count > 0));
        }
        let lines = prices(ALL).bill(&usage, 1501, 61_003);
        let input = &lines[0];
        assert_eq!((input.item, input.count), ("input", 1_233_490));
        assert_eq!(input.price.to_string(), "1.25");
        assert_eq!(input.amount.to_string(), "1.5418625");
        assert_eq!(lines.len(), 9);
    }

    #[test]
    fn what_is_no_price_is_not_read() {
        assert_eq!(Pricing::from_text(""), Some(Pricing::default()));
        for wrong in ["input", "input=", "input=x", "inputs=1", "input=-1"] {
            assert_eq!(Pricing::from_text(wrong), None, "{wrong}");
        }
    }
}
