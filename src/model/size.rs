//! Estimates the encoded size of requests and responses in bytes.

use super::{Arguments, Media, Part, PartKind, Request, Response, Source};

/// Bytes for names, brackets and quotes.
const PER_PART: usize = 64;
const PER_TOOL: usize = 512;

impl Request<'_> {
    /// The estimated size of texts and data, with an allowance for the syntax around them.
    pub fn size(&self) -> usize {
        let turns = self.turns.iter().map(|turn| sum(&turn.parts));
        turns.sum::<usize>() + self.tools.len() * PER_TOOL
    }

    /// The lengths of the images, recordings and documents in base64. Files of text are none of these.
    pub fn media_lengths(&self) -> Vec<u64> {
        let mut lengths = Vec::new();
        for turn in &self.turns {
            add_media_lengths(&turn.parts, &mut lengths);
        }
        if let Some(mask) = &self.output.image_options.mask {
            lengths.extend(media_length(mask));
        }
        lengths
    }
}

fn add_media_lengths(parts: &[Part<'_>], lengths: &mut Vec<u64>) {
    for part in parts {
        match &part.kind {
            PartKind::Media(media) => lengths.extend(media_length(media)),
            PartKind::Result(result) => add_media_lengths(&result.parts, lengths),
            _ => {}
        }
    }
}

fn media_length(media: &Media<'_>) -> Option<u64> {
    let Source::Base64(data) = &media.source else {
        return None;
    };
    let is_media = ["image/", "audio/", "video/", "application/pdf"]
        .iter()
        .any(|kind| media.mime.starts_with(kind));
    is_media.then_some(data.len() as u64)
}

impl Response<'_> {
    /// The estimated size of texts and data, with an allowance for the syntax around them.
    pub fn size(&self) -> usize {
        let choices = self.choices.iter();
        choices.map(|choice| sum(&choice.parts)).sum()
    }
}

fn sum(parts: &[Part<'_>]) -> usize {
    parts.iter().map(|part| PER_PART + size(&part.kind)).sum()
}

fn size(part: &PartKind<'_>) -> usize {
    match part {
        PartKind::Text(text) | PartKind::Refusal(text) => text.len(),
        PartKind::Media(Media { source, .. }) => match source {
            Source::Base64(text) | Source::Url(text) | Source::File(text) | Source::Plain(text) => {
                text.len()
            }
        },
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
