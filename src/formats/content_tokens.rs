//! How much content of a stream has come, for streams that break off before their usage.

use super::text_tokens::{FRACTIONS_PER_BYTE, FRACTIONS_PER_TOKEN, weigh_json_text, weigh_text};
use crate::json::RawJson;

/// About how many tokens the content has that has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentTokens {
    text: CountedText,
    reasoning: CountedText,
    /// The signatures of reasoning, which hold what is hidden of it.
    signatures: CountedText,
    images: u64,
}

/// Text that has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CountedText {
    /// Its weight, in fractions of a token.
    weight: u64,
    /// How many pieces it came in. A piece has a token at least, since no upstream sends less.
    pieces: u64,
}

/// The tokens of an image.
const TOKENS_PER_IMAGE: u64 = 765;

/// How many bytes of audio in base64 have as many tokens as one byte of text: a token is about a KiB.
const AUDIO_BYTES: u64 = (1 << 10) / 3;

/// The bytes of text that are a token.
const BYTES_PER_TOKEN: u64 = 4;

impl CountedText {
    const fn add(&mut self, weight: u64) {
        self.weight += weight;
        self.pieces += (weight > 0) as u64;
    }

    /// Adds what has as many tokens as so many bytes of text, however many pieces it came in.
    const fn add_bytes(&mut self, bytes: u64) {
        self.weight += bytes * FRACTIONS_PER_BYTE;
    }

    /// Adds what the whole weighs beyond the pieces that have come of it.
    const fn add_rest(&mut self, whole: CountedText, before: CountedText) {
        let pieces = self.weight.saturating_sub(before.weight);
        self.weight += whole.weight.saturating_sub(pieces);
    }

    fn tokens(self) -> u64 {
        self.weight.div_ceil(FRACTIONS_PER_TOKEN).max(self.pieces)
    }
}

impl ContentTokens {
    /// Adds a JSON string of text as it stands in the body, where there is one.
    pub(super) fn add_text(&mut self, raw: Option<RawJson<'_>>) {
        self.text.add(weigh_json_text(inner_text(raw)));
    }

    /// Adds a JSON string of reasoning, likewise.
    pub(super) fn add_reasoning(&mut self, raw: Option<RawJson<'_>>) {
        self.reasoning.add(weigh_json_text(inner_text(raw)));
    }

    /// Adds a JSON string that holds encrypted reasoning, likewise.
    pub(super) fn add_signature(&mut self, raw: Option<RawJson<'_>>) {
        self.signatures.add_bytes(string_length(raw));
    }

    /// Adds a value of any kind: a string by its text, anything else by its JSON.
    pub(super) fn add_value(&mut self, raw: Option<RawJson<'_>>) {
        let Some(value) = raw else {
            return;
        };
        match value.get().starts_with('"') {
            true => self.add_text(raw),
            false => self.add_plain_text(value.get()),
        }
    }

    /// Adds text as it is.
    pub fn add_plain_text(&mut self, text: &str) {
        self.text.add(weigh_text(text.as_bytes()));
    }

    /// Adds reasoning as it is.
    pub fn add_plain_reasoning(&mut self, text: &str) {
        self.reasoning.add(weigh_text(text.as_bytes()));
    }

    /// Adds encrypted reasoning as it is.
    pub const fn add_plain_signature(&mut self, data: &str) {
        self.signatures.add_bytes(data.len() as u64);
    }

    /// Adds a JSON string of audio in base64.
    pub(super) fn add_audio(&mut self, raw: Option<RawJson<'_>>) {
        self.text
            .add_bytes(string_length(raw).div_ceil(AUDIO_BYTES));
    }

    /// Adds audio as it is, of which so many bytes are a token.
    pub const fn add_recording(&mut self, length: usize, bytes_per_token: u64) {
        let bytes = (length as u64 * BYTES_PER_TOKEN).div_ceil(bytes_per_token);
        self.text.add_bytes(bytes);
    }

    /// Adds an image, be it a part of one.
    pub const fn add_image(&mut self) {
        self.images += TOKENS_PER_IMAGE;
    }

    /// Adds media in base64 by its kind.
    pub fn add_media(&mut self, mime: &str, length: u64) {
        match mime.split('/').next() {
            Some("audio" | "video") => self.text.add_bytes(length.div_ceil(AUDIO_BYTES)),
            _ => self.add_image(),
        }
    }

    /// Adds what an item holds beyond the pieces that have come of it; `before`: what had come before the item.
    pub(super) const fn add_rest(&mut self, whole: ContentTokens, before: ContentTokens) {
        self.text.add_rest(whole.text, before.text);
        self.reasoning.add_rest(whole.reasoning, before.reasoning);
        let images = self.images.saturating_sub(before.images);
        self.images += whole.images.saturating_sub(images);
    }

    /// The upstream has counted the reasoning so far.
    pub(super) fn forget_reasoning(&mut self) {
        (self.reasoning, self.signatures) = Default::default();
    }

    /// The tokens of the text.
    pub fn text_tokens(&self) -> u64 {
        self.text.tokens()
    }

    /// The tokens of the reasoning, also of the part of it that is hidden.
    pub fn reasoning_tokens(&self) -> u64 {
        self.reasoning.tokens().max(self.signatures.tokens())
    }

    /// The tokens of the images.
    pub const fn image_tokens(&self) -> u64 {
        self.images
    }
}

/// The length of a JSON string without its quotes; escapes are not decoded.
pub(super) fn string_length(raw: Option<RawJson<'_>>) -> u64 {
    inner_text(raw).len() as u64
}

/// What stands between the quotes of a JSON string; of any other value, nothing.
fn inner_text(raw: Option<RawJson<'_>>) -> &[u8] {
    let string = raw.map_or("", RawJson::get);
    match string.as_bytes() {
        [b'"', inner @ .., b'"'] => inner,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_a_token_at_least() {
        let mut content = ContentTokens::default();
        for _ in 0..100 {
            content.add_plain_text("a");
            content.add_plain_text("");
            content.add_plain_reasoning("the ");
        }
        assert_eq!(
            (content.text_tokens(), content.reasoning_tokens()),
            (100, 100)
        );
        content.add_plain_text(&"word".repeat(100));
        assert_eq!(content.text_tokens(), 125);
    }
}
