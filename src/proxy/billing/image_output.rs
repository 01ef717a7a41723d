//! The most tokens of the images that the images API or the tool of an upstream makes: neither has a limit for them.

use super::max_input::ToolRounds;
use crate::formats::{DEFAULT_TOOL_ROUNDS, RequestFindings};
use crate::model::Format;
use crate::runtime::Attempt;

/// The tokens of an image where the request leaves its size to the model: no size that OpenAI's models take has more.
const MAX_TOKENS: u64 = 24_576;

/// Those of a small one, at least: older models count it otherwise.
const MIN_TOKENS: u64 = 8192;

/// The tokens of the partial images that a stream may have before the image.
const PARTIAL_IMAGES: u64 = 512;

/// An image of high quality has this many patches along its longer side, with a token for each and more for its pixels.
const PATCHES: u128 = 96;

/// Returns the most tokens of an image of this width and height.
pub(in crate::proxy) fn max_image_tokens(pixels: Option<(u32, u32)>) -> u64 {
    let Some((width, height)) = pixels else {
        return MAX_TOKENS;
    };
    let (long, short) = (u128::from(width.max(height)), u128::from(width.min(height)));
    let rows = (2 * PATCHES * short + long) / (2 * long.max(1));
    let tokens = (PATCHES * rows * (2_000_000 + long * short)).div_ceil(4_000_000);
    let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
    tokens.saturating_add(PARTIAL_IMAGES).max(MIN_TOKENS)
}

/// Returns the most tokens of the images that an upstream of the responses format makes with its own tool, beside the limit of the
/// output: one for each choice, which translation limits it to where it has no other tool, else as many as it may call tools.
pub(super) fn max_tool_images(
    findings: &RequestFindings,
    choices: u64,
    pixels: Option<(u32, u32)>,
    attempt: &Attempt,
    client: Format,
) -> u64 {
    if attempt.upstream.format != Format::Responses || !findings.may_make_images {
        return 0;
    }
    let images = match client {
        Format::Responses => ToolRounds::of(findings).at(Format::Responses, true),
        _ if findings.tool_rounds > 0 => choices.max(DEFAULT_TOOL_ROUNDS),
        _ => choices,
    };
    let images = images.saturating_mul(findings.images_per_call.max(1));
    max_image_tokens(pixels).saturating_mul(images)
}

#[cfg(test)]
mod tests {
    use super::max_image_tokens;

    #[test]
    fn a_large_image_has_more_tokens_than_a_small_one() {
        for (width, height, tokens) in [
            (256, 256, 8192),
            (1024, 1024, 8192),
            (3584, 2048, 12_329 + 512),
            (2048, 3584, 12_329 + 512),
            (2880, 2880, 23_719 + 512),
            (1, u32::MAX, 8192),
        ] {
            let most = max_image_tokens(Some((width, height)));
            assert_eq!(most, tokens, "{width}x{height}");
        }
        assert!(max_image_tokens(None) > 23_719 + 512);
        assert!(max_image_tokens(Some((u32::MAX, u32::MAX))) > 1 << 55);
    }
}
