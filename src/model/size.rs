//! Estimates the encoded size of requests and responses in bytes.

use super::{Arguments, Media, Part, PartKind, Request, Response, Source};

/// Bytes for names, brackets and quotes.
const PER_PART: usize = 64;
const PER_TOOL: usize = 512;

/// The types of files that hold one image: others, such as TIFF, may have hundreds of pages.
const SINGLE_IMAGES: [&str; 9] = [
    "image/png",
    "image/jpeg",
    "image/jpg",
    "image/gif",
    "image/webp",
    "image/heic",
    "image/heif",
    "image/avif",
    "image/bmp",
];

impl Request<'_> {
    /// The estimated size of texts and data, with an allowance for the syntax around them.
    pub fn size(&self) -> usize {
        let turns = self.turns.iter().map(|turn| sum(&turn.parts));
        turns.sum::<usize>() + self.tools.len() * PER_TOOL
    }

    /// What of the input has another number of tokens than its length in the body tells. `is_image_link` tells whether what
    /// is linked as an image may be one, and `is_text_file` whether a file of this name may be text.
    pub fn input_media(
        &self,
        is_image_link: fn(&str) -> bool,
        is_text_file: fn(&str) -> bool,
    ) -> InputMedia {
        let names = MediaNames {
            is_image_link,
            is_text_file,
        };
        let mut found = InputMedia {
            // What these find becomes input as well.
            has_unseen: self.search.is_some() || self.code_execution,
            ..InputMedia::default()
        };
        for turn in &self.turns {
            found.add_parts(&turn.parts, names);
        }
        if let Some(mask) = &self.output.image_options.mask {
            found.add(mask, names);
        }
        found
    }
}

/// The part of a request's input whose number of tokens the length of the body does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputMedia {
    /// The lengths of the images, recordings and documents in base64. Files of text are none of these.
    pub lengths: Vec<u64>,
    /// How many images the upstream fetches.
    pub linked_images: u64,
    /// How many media there are of any kind, those in text too.
    pub count: u64,
    /// There is input of which the body does not tell the length: documents, recordings and other files, and what the upstream's
    /// own tools find.
    pub has_unseen: bool,
}

/// What the names of media tell.
#[derive(Clone, Copy)]
struct MediaNames {
    is_image_link: fn(&str) -> bool,
    is_text_file: fn(&str) -> bool,
}

impl InputMedia {
    fn add_parts(&mut self, parts: &[Part<'_>], names: MediaNames) {
        for part in parts {
            match &part.kind {
                PartKind::Media(media) => self.add(media, names),
                PartKind::Result(result) => self.add_parts(&result.parts, names),
                _ => {}
            }
        }
    }

    fn add(&mut self, media: &Media<'_>, names: MediaNames) {
        self.count += 1;
        match &media.source {
            Source::Base64(data) => {
                let is_image = media.mime.starts_with("image/");
                let is_one_image = SINGLE_IMAGES.contains(&&*media.mime);
                let kinds = ["audio/", "video/", "application/pdf"];
                if is_image || kinds.iter().any(|kind| media.mime.starts_with(kind)) {
                    self.lengths.push(data.len() as u64);
                }
                // Few bytes may hold hundreds of pages, or hours of silence. Upstreams go by the name of a file, too: one
                // without any is no file of text, whatever its type.
                let is_text = || {
                    let name = media.name.as_deref();
                    media.mime.starts_with("text/") && name.is_some_and(names.is_text_file)
                };
                self.has_unseen |= !is_one_image && !is_text();
            }
            Source::Url(url) if media.mime.starts_with("image/") && (names.is_image_link)(url) => {
                self.linked_images += 1;
            }
            Source::File(_) if media.mime.starts_with("image/") => self.linked_images += 1,
            Source::Url(_) | Source::File(_) => self.has_unseen = true,
            Source::Plain(_) => {}
        }
    }
}

impl Response<'_> {
    /// The estimated size of texts and data, with an allowance for the syntax around them.
    pub fn size(&self) -> usize {
        let choices = self.choices.iter();
        choices.map(|choice| sum(&choice.parts)).sum()
    }
}

impl Media<'_> {
    /// The size of its data, or of what refers to it.
    pub fn size(&self) -> usize {
        match &self.source {
            Source::Base64(text) | Source::Url(text) | Source::File(text) | Source::Plain(text) => {
                text.len()
            }
        }
    }
}

fn sum(parts: &[Part<'_>]) -> usize {
    parts.iter().map(|part| PER_PART + size(&part.kind)).sum()
}

fn size(part: &PartKind<'_>) -> usize {
    match part {
        PartKind::Text(text) | PartKind::Refusal(text) => text.len(),
        PartKind::Media(media) => media.size(),
        PartKind::Reasoning { text, signature } => {
            text.len()
                + signature
                    .as_ref()
                    .map_or(0, |signature| signature.data.len())
        }
        PartKind::Call(call) => match &call.arguments {
            Arguments::Text(text) => text.len(),
            Arguments::Tree(_) => PER_PART,
        },
        PartKind::Result(result) => sum(&result.parts),
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::RequestHead;
    use crate::model::{Format, Losses};

    #[test]
    fn text_and_data_count() {
        let text = "x".repeat(5000);
        let body = format!(
            r#"{{"contents": [{{"role": "user", "parts": [{{"text": "{text}"}},
                {{"inlineData": {{"mimeType": "image/png", "data": "{text}"}}}},
                {{"functionResponse": {{"name": "f", "response": {{"output": "{text}"}}}}}}]}}]}}"#
        );
        let codec = Format::Native.codec();
        let request = codec.decode_request(
            &RequestHead::default(),
            body.as_bytes(),
            &mut Losses::default(),
        );
        let size = request.expect("a request").size();
        assert!((15_000..16_000).contains(&size), "{size}");
    }
}
