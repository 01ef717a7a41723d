//! Usage: the token counts of a response.

use serde::Serialize;

use crate::formats::token_count::TokenCount;
use crate::json::{RawJson, decode_json, from_json};
use crate::model::Usage;

from_json! {
    /// The `usage` object as an upstream sends it.
    pub(super) struct ReceivedUsage {
        "input_tokens" => input_tokens: TokenCount,
        "output_tokens" => output_tokens: TokenCount,
        "input_tokens_details" => input_tokens_details: Option<ReceivedInputDetails>,
        "output_tokens_details" => output_tokens_details: Option<ReceivedOutputDetails>,
    }
}

from_json! {
    struct ReceivedInputDetails {
        "cached_tokens" => cached_tokens: TokenCount,
        "cache_write_tokens" => cache_write_tokens: TokenCount,
    }
}

from_json! {
    struct ReceivedOutputDetails {
        "reasoning_tokens" => reasoning_tokens: TokenCount,
    }
}

from_json! {
    /// What the upstream's own tools have used beside the model.
    struct ReceivedToolUsage {
        "image_gen" => image_generation: Option<ReceivedImageUsage>,
    }
}

from_json! {
    struct ReceivedImageUsage {
        "input_tokens" => input_tokens: TokenCount,
        "output_tokens" => output_tokens: TokenCount,
        "input_tokens_details" => input_tokens_details: Option<ReceivedImageInput>,
    }
}

from_json! {
    struct ReceivedImageInput {
        "image_tokens" => image_tokens: TokenCount,
    }
}

impl ReceivedImageUsage {
    /// Decodes the counts: all of the output is images.
    fn decode(&self) -> Usage {
        let input = self.input_tokens_details.as_ref();
        Usage {
            input: self.input_tokens.tokens(),
            image_input: input.map_or(0, |details| details.image_tokens.tokens()),
            output: self.output_tokens.tokens(),
            image_output: self.output_tokens.tokens(),
            ..Usage::default()
        }
    }
}

/// Decodes the counts of a response: `usage` has those of the model alone, without the upstream's tool for images.
pub(super) fn decode_usage(
    usage: Option<&ReceivedUsage>,
    of_tools: Option<RawJson<'_>>,
) -> Option<Usage> {
    let usage = usage?.decode();
    let of_tools = of_tools.and_then(|raw| decode_json::<ReceivedToolUsage>(raw.get()).ok());
    let images = of_tools.and_then(|tools| tools.image_generation);
    Some(images.map_or(usage, |images| usage.plus(images.decode())))
}

impl ReceivedUsage {
    /// Decodes the counts.
    fn decode(&self) -> Usage {
        let input = self.input_tokens_details.as_ref();
        let output = self.output_tokens_details.as_ref();
        Usage {
            input: self.input_tokens.tokens(),
            cached: input.map_or(0, |details| details.cached_tokens.tokens()),
            cache_written: input.map_or(0, |details| details.cache_write_tokens.tokens()),
            output: self.output_tokens.tokens(),
            thinking: output.map_or(0, |details| details.reasoning_tokens.tokens()),
            ..Usage::default()
        }
    }
}

/// The `usage` object as it is encoded. The format requires the details even where they are 0.
#[derive(Serialize)]
pub(super) struct ResponsesUsage {
    input_tokens: u64,
    input_tokens_details: InputTokensDetails,
    output_tokens: u64,
    output_tokens_details: OutputTokensDetails,
    total_tokens: u64,
}

#[derive(Serialize)]
struct InputTokensDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct OutputTokensDetails {
    reasoning_tokens: u64,
}

impl From<Usage> for ResponsesUsage {
    fn from(usage: Usage) -> ResponsesUsage {
        ResponsesUsage {
            input_tokens: usage.input,
            input_tokens_details: InputTokensDetails {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.cache_written,
            },
            output_tokens: usage.output,
            output_tokens_details: OutputTokensDetails {
                reasoning_tokens: usage.thinking,
            },
            total_tokens: usage.input.saturating_add(usage.output),
        }
    }
}
