//! How much content of a stream has come, for streams that break off before their usage.

use crate::json::RawJson;

/// The length in bytes of the content that has come. Media count as the text that has as many tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentBytes {
    pub text: u64,
    pub reasoning: u64,
    /// The signatures of reasoning, which hold what is hidden of it.
    pub signatures: u64,
    pub images: u64,
}

/// The bytes of text that have as many tokens as an image.
const IMAGE_BYTES: u64 = 765 * 4;

/// How many bytes of audio in base64 have as many tokens as one byte of text: a token is about a KiB.
const AUDIO_BYTES: u64 = (1 << 10) / 3;

/// The same of audio as it is.
const RECORDING_BYTES: u64 = (1 << 10) / 4;

impl ContentBytes {
    /// Adds a JSON string of text as it stands in the body, where there is one.
    pub(super) fn add_text(&mut self, raw: Option<RawJson<'_>>) {
        self.text += string_length(raw);
    }

    /// Adds a JSON string of reasoning, likewise.
    pub(super) fn add_reasoning(&mut self, raw: Option<RawJson<'_>>) {
        self.reasoning += string_length(raw);
    }

    /// Adds a JSON string that holds encrypted reasoning, likewise.
    pub(super) fn add_signature(&mut self, raw: Option<RawJson<'_>>) {
        self.signatures += string_length(raw);
    }

    /// Adds a value of any kind: a string by its text, anything else by its JSON.
    pub(super) fn add_value(&mut self, raw: Option<RawJson<'_>>) {
        let Some(value) = raw else {
            return;
        };
        match value.get().starts_with('"') {
            true => self.add_text(raw),
            false => self.text += value.get().len() as u64,
        }
    }

    /// Adds a JSON string of audio in base64.
    pub(super) fn add_audio(&mut self, raw: Option<RawJson<'_>>) {
        self.text += string_length(raw).div_ceil(AUDIO_BYTES);
    }

    /// Adds audio as it is.
    pub fn add_recording(&mut self, length: usize) {
        self.text += (length as u64).div_ceil(RECORDING_BYTES);
    }

    /// Adds an image, be it a part of one.
    pub fn add_image(&mut self) {
        self.images += IMAGE_BYTES;
    }

    /// Adds media in base64 by its kind.
    pub fn add_media(&mut self, mime: &str, length: u64) {
        match mime.split('/').next() {
            Some("audio" | "video") => self.text += length.div_ceil(AUDIO_BYTES),
            _ => self.add_image(),
        }
    }

    /// The upstream has counted the reasoning so far.
    pub(super) fn forget_reasoning(&mut self) {
        (self.reasoning, self.signatures) = (0, 0);
    }

    /// All of it, of whatever kind.
    pub fn total(&self) -> u64 {
        self.text + self.reasoning + self.signatures + self.images
    }

    /// The reasoning, also the part of it that is hidden.
    pub fn all_reasoning(&self) -> u64 {
        self.reasoning.max(self.signatures)
    }
}

/// The length of a JSON string without its quotes; escapes are not decoded.
pub(super) fn string_length(raw: Option<RawJson<'_>>) -> u64 {
    let string = raw.map_or("", RawJson::get);
    match string.as_bytes() {
        [b'"', inner @ .., b'"'] => inner.len() as u64,
        _ => 0,
    }
}
