//! The `usage` of a response. The format counts cached input apart from `input_tokens`.

use serde::Serialize;

use crate::formats::reported_usage::ReportedUsage;
use crate::formats::token_count::TokenCount;
use crate::json::{DecodeResult, FromJson, JsonReader, RawJson, decode_json, from_json};
use crate::model::{CompactionUsage, Usage};

from_json! {
    /// The `usage` of an upstream's response or event; in a stream, two events have one each.
    pub(super) struct RawMessagesUsage {
        "input_tokens" => input_tokens: TokenCount,
        "cache_read_input_tokens" => cache_read_input_tokens: TokenCount,
        "cache_creation_input_tokens" => cache_creation_input_tokens: TokenCount,
        "output_tokens" => output_tokens: TokenCount,
        "output_tokens_details" => output_tokens_details: Option<RawMessagesOutputDetails>,
        "iterations" => iterations: Option<RawIterations>,
    }
}

from_json! {
    struct RawMessagesOutputDetails {
        "thinking_tokens" => thinking_tokens: TokenCount,
    }
}

impl RawMessagesUsage {
    /// The known counts and these, which may have counted the output anew.
    pub(super) fn report(&self, known: Option<Usage>) -> ReportedUsage {
        ReportedUsage::of_parts(self.merge(known), self.output_tokens.tokens())
    }

    /// Adds these counts to the known ones; a count that is present replaces the known one.
    pub(super) fn merge(&self, known: Option<Usage>) -> Usage {
        let known = known.unwrap_or_default();
        let apart = known.compaction;
        let known_uncached = known
            .input
            .saturating_sub(known.cached)
            .saturating_sub(known.cache_written)
            .saturating_sub(apart.uncached);
        let known_cached = known.cached.saturating_sub(apart.cached);
        let known_written = known.cache_written.saturating_sub(apart.cache_written);
        let known_output = known.output.saturating_sub(apart.output);
        let compaction = self.iterations.as_ref().map_or(apart, |it| it.compaction);
        let or = |count: TokenCount, known| count.known().unwrap_or(known);
        let counts = compaction.plus(CompactionUsage {
            uncached: or(self.input_tokens, known_uncached),
            cached: or(self.cache_read_input_tokens, known_cached),
            cache_written: or(self.cache_creation_input_tokens, known_written),
            output: or(self.output_tokens, known_output),
        });
        let details = self.output_tokens_details.as_ref();
        Usage {
            input: counts
                .uncached
                .saturating_add(counts.cached)
                .saturating_add(counts.cache_written),
            cached: counts.cached,
            cache_written: counts.cache_written,
            output: counts.output,
            thinking: or(
                details.map_or_else(TokenCount::default, |details| details.thinking_tokens),
                known.thinking,
            ),
            compaction,
            ..Usage::default()
        }
    }
}

/// The `iterations` of a response: what its parts have used. The counts beside them have all but compactions.
#[derive(Default)]
struct RawIterations {
    compaction: CompactionUsage,
}

from_json! {
    struct RawIteration<'a> {
        "type" => kind: RawJson<'a>,
        "input_tokens" => input_tokens: TokenCount,
        "cache_read_input_tokens" => cache_read_input_tokens: TokenCount,
        "cache_creation_input_tokens" => cache_creation_input_tokens: TokenCount,
        "output_tokens" => output_tokens: TokenCount,
    }
}

/// Values of other types are skipped.
impl<'a> FromJson<'a> for RawIterations {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        let mut raw = RawJson::default();
        raw.decode(reader)?;
        let iterations: Vec<RawJson<'_>> = decode_json(raw.get()).unwrap_or_default();
        for iteration in iterations {
            let counts: RawIteration<'_> = decode_json(iteration.get()).unwrap_or_default();
            if counts.kind.get() == "\"compaction\"" {
                self.compaction = self.compaction.plus(CompactionUsage {
                    uncached: counts.input_tokens.tokens(),
                    cached: counts.cache_read_input_tokens.tokens(),
                    cache_written: counts.cache_creation_input_tokens.tokens(),
                    output: counts.output_tokens.tokens(),
                });
            }
        }
        Ok(())
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
    use super::{RawMessagesUsage, encode_usage};
    use crate::json::decode_json;
    use crate::model::Usage;

    const COMPACTED: &str = r#"{"input_tokens":23,"output_tokens":10,"iterations":[
        {"type":"compaction","input_tokens":180,"cache_read_input_tokens":5,"cache_creation_input_tokens":7,"output_tokens":350},
        {"type":"message","input_tokens":23,"output_tokens":10},{"type":7},{"output_tokens":"x"},9]}"#;

    fn counts(usage: Usage) -> [u64; 4] {
        [usage.input, usage.cached, usage.cache_written, usage.output]
    }

    #[test]
    fn a_compaction_counts_beside_the_rest() {
        let raw: RawMessagesUsage = decode_json(COMPACTED).expect("counts");
        let usage = raw.merge(None);
        assert_eq!(counts(usage), [215, 5, 7, 360]);
        // Once, however often it is reported.
        assert_eq!(raw.merge(Some(usage)), usage);
        let later: RawMessagesUsage = decode_json(r#"{"output_tokens":12}"#).expect("counts");
        assert_eq!(counts(later.merge(Some(usage))), [215, 5, 7, 362]);
        let odd = r#"{"input_tokens":1,"iterations":{"type":"compaction","input_tokens":9}}"#;
        let odd: RawMessagesUsage = decode_json(odd).expect("counts");
        assert_eq!(counts(odd.merge(None)), [1, 0, 0, 0]);
    }

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
