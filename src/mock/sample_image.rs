//! The image that the mock answers with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A valid PNG of one blue pixel, in base64.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQazsIAAJbAXYK9nzKAAAAAElFTkSuQmCC";

/// Returns the image in base64, with at least `weight` bytes: PNG readers skip the padding.
pub(super) fn base64_png(weight: usize) -> String {
    let mut text = PNG.to_owned();
    let more = weight.saturating_sub(text.len()).div_ceil(4);
    text.reserve(more * 4);
    (0..more).for_each(|_| text.push_str("AAAA"));
    text
}

/// Returns the bytes of the image.
pub(super) fn png_bytes() -> Vec<u8> {
    STANDARD.decode(PNG).expect("base64, as it stands above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_a_png() {
        let bytes = png_bytes();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xaeB`\x82"));
    }
}
