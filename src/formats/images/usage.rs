//! The `usage` of a response, which counts text and image tokens apart.

use serde::Serialize;

use crate::formats::reported_usage::ReportedUsage;
use crate::formats::token_count::TokenCount;
use crate::json::from_json;
use crate::model::Usage;

from_json! {
    /// The `usage` of an upstream's response or event.
    pub(super) struct RawImageUsage {
        "input_tokens" => input_tokens: TokenCount,
        "output_tokens" => output_tokens: TokenCount,
        "input_tokens_details" => input_tokens_details: Option<RawImageTokenDetails>,
        "output_tokens_details" => output_tokens_details: Option<RawImageTokenDetails>,
    }
}

from_json! {
    struct RawImageTokenDetails {
        "image_tokens" => image_tokens: TokenCount,
    }
}

/// Decodes `usage`.
pub(super) fn decode_usage(usage: &RawImageUsage) -> Usage {
    let image_tokens = |details: Option<&RawImageTokenDetails>| details?.image_tokens.known();
    let output = usage.output_tokens.tokens();
    Usage {
        input: usage.input_tokens.tokens(),
        output,
        image_input: image_tokens(usage.input_tokens_details.as_ref()).unwrap_or_default(),
        // Without details all output is taken for images.
        image_output: image_tokens(usage.output_tokens_details.as_ref()).unwrap_or(output),
        ..Usage::default()
    }
}

impl RawImageUsage {
    /// Adds the usage of one image of a stream to that of the images before it.
    pub(super) fn report(&self, before: Option<Usage>) -> ReportedUsage {
        let more = decode_usage(self);
        ReportedUsage::of_parts(before.unwrap_or_default().plus(more), more.output)
    }
}

/// The `usage` of a response to a client.
#[derive(Serialize)]
pub(super) struct ImageUsage {
    input_tokens: u64,
    input_tokens_details: ImageTokenDetails,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_details: Option<ImageTokenDetails>,
    total_tokens: u64,
}

#[derive(Serialize)]
struct ImageTokenDetails {
    image_tokens: u64,
    text_tokens: u64,
}

impl ImageTokenDetails {
    const fn of(image_tokens: u64, all: u64) -> ImageTokenDetails {
        ImageTokenDetails {
            image_tokens,
            text_tokens: all.saturating_sub(image_tokens),
        }
    }
}

/// Encodes `usage`.
pub(super) fn encode_usage(usage: Usage) -> ImageUsage {
    let has_details = usage.image_output > 0;
    ImageUsage {
        input_tokens: usage.input,
        input_tokens_details: ImageTokenDetails::of(usage.image_input, usage.input),
        output_tokens: usage.output,
        output_tokens_details: has_details
            .then(|| ImageTokenDetails::of(usage.image_output, usage.output)),
        total_tokens: usage.input.saturating_add(usage.output),
    }
}
