//! The `usage` of a response. The format counts cached input apart from `input_tokens`.

use serde::Serialize;

use crate::json::{Fields, from_json};
use crate::model::{ApiError, Usage};

from_json! {
    /// The `usage` of an upstream's response or event; in a stream, two events have one each.
    pub(super) struct RawMessagesUsage {
        "input_tokens" => input_tokens: Option<u64>,
        "cache_read_input_tokens" => cache_read_input_tokens: Option<u64>,
        "cache_creation_input_tokens" => cache_creation_input_tokens: Option<u64>,
        "output_tokens" => output_tokens: Option<u64>,
        "output_tokens_details" => output_tokens_details: Option<RawMessagesOutputDetails>,
    }
}

from_json! {
    struct RawMessagesOutputDetails {
        "thinking_tokens" => thinking_tokens: Option<u64>,
    }
}

/// Decodes `usage` from the fields of a response.
pub(super) fn decode_usage(fields: &mut Fields<'_, '_>) -> Result<Option<Usage>, ApiError> {
    let usage = fields.node("usage");
    let usage = usage.map(|usage| usage.fields(|mut fields| RawMessagesUsage::of(&mut fields)));
    Ok(usage.transpose()?.map(|usage| usage.merge(None)))
}

impl RawMessagesUsage {
    fn of(fields: &mut Fields<'_, '_>) -> Result<RawMessagesUsage, ApiError> {
        let details = fields.node("output_tokens_details");
        let details = details.map(|details| {
            details.fields(|mut fields| {
                let thinking_tokens = fields.u64("thinking_tokens")?;
                Ok(RawMessagesOutputDetails { thinking_tokens })
            })
        });
        Ok(RawMessagesUsage {
            output_tokens_details: details.transpose()?,
            input_tokens: fields.u64("input_tokens")?,
            cache_read_input_tokens: fields.u64("cache_read_input_tokens")?,
            cache_creation_input_tokens: fields.u64("cache_creation_input_tokens")?,
            output_tokens: fields.u64("output_tokens")?,
        })
    }

    /// Adds these counts to the known ones; a count that is present replaces the known one.
    pub(super) fn merge(&self, known: Option<Usage>) -> Usage {
        let known = known.unwrap_or_default();
        let known_uncached = known
            .input
            .saturating_sub(known.cached)
            .saturating_sub(known.cache_written);
        let uncached = self.input_tokens.unwrap_or(known_uncached);
        let cached = self.cache_read_input_tokens.unwrap_or(known.cached);
        let cache_written = self
            .cache_creation_input_tokens
            .unwrap_or(known.cache_written);
        let details = self.output_tokens_details.as_ref();
        Usage {
            input: uncached
                .saturating_add(cached)
                .saturating_add(cache_written),
            cached,
            cache_written,
            output: self.output_tokens.unwrap_or(known.output),
            thinking: details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(known.thinking),
            ..Usage::default()
        }
    }
}

/// The `usage` of a response to a client.
#[derive(Serialize, Default)]
pub(super) struct MessagesUsage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_details: Option<MessagesOutputDetails>,
}

#[derive(Serialize)]
struct MessagesOutputDetails {
    thinking_tokens: u64,
}

/// Encodes `usage`; unknown counts are zero.
pub(super) fn encode_usage(usage: Option<Usage>) -> MessagesUsage {
    let usage = usage.unwrap_or_default();
    let thinking = Some(usage.thinking).filter(|&tokens| tokens > 0);
    // Some upstreams count the same tokens as read and as written; here the three must add up.
    let cached = usage.cached.min(usage.input);
    let written = usage.cache_written.min(usage.input - cached);
    MessagesUsage {
        input_tokens: usage.input - cached - written,
        cache_creation_input_tokens: written,
        cache_read_input_tokens: cached,
        output_tokens: usage.output,
        output_tokens_details: thinking
            .map(|thinking_tokens| MessagesOutputDetails { thinking_tokens }),
    }
}

#[cfg(test)]
mod tests {
    use super::encode_usage;
    use crate::model::Usage;

    #[test]
    fn the_three_counts_of_input_add_up_to_it() {
        let usage = |cached, cache_written| Usage {
            input: 10,
            cached,
            cache_written,
            ..Usage::default()
        };
        for (cached, written) in [(0, 0), (4, 3), (8, 8), (12, 1)] {
            let encoded = encode_usage(Some(usage(cached, written)));
            let sum = encoded.input_tokens
                + encoded.cache_read_input_tokens
                + encoded.cache_creation_input_tokens;
            assert_eq!(sum, 10);
        }
    }
}
