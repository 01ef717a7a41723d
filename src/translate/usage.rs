//! Measures the usage of a response: the upstream's own counts, and an estimate of the rest.
//!
//! A stream that breaks off may have reported its usage early or not at all. The content after the
//! last report is estimated as it comes, so that no text is buffered.

use crate::formats::{Codec, ContentTokens, ResponseObserver};
use crate::model::{Block, Delta, Losses, Media, PartKind, Response, Source, Usage};

/// The tokens of a request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredUsage {
    pub usage: Usage,
    /// Some of it is an estimate.
    pub estimated: bool,
}

impl MeasuredUsage {
    /// Returns the usage of a request without a response.
    pub fn without_response(input: u64) -> MeasuredUsage {
        MeasuredUsage {
            usage: Usage {
                input,
                ..Usage::default()
            },
            estimated: true,
        }
    }
}

/// Measures the usage of a response: what its upstream has counted, and an estimate of what it has not. A complete response may
/// have no count of its output, or one that cannot be read. `input` estimates the tokens of its request.
pub(super) fn measure(observer: &ResponseObserver, input: impl FnOnce() -> u64) -> MeasuredUsage {
    let reported = observer.usage.unwrap_or_default();
    let uncounted = observer.uncounted;
    let thinking = uncounted.reasoning_tokens();
    let images = uncounted.image_tokens();
    let output = thinking
        .saturating_add(uncounted.text_tokens())
        .saturating_add(images);
    let is_input_reported = reported.input > 0;
    MeasuredUsage {
        estimated: !is_input_reported || output > 0,
        usage: Usage {
            input: if is_input_reported {
                reported.input
            } else {
                input()
            },
            output: reported.output.saturating_add(output),
            thinking: reported.thinking.saturating_add(thinking),
            image_output: reported.image_output.saturating_add(images),
            ..reported
        },
    }
}

/// Adds a delta of a stream.
pub(super) fn add_delta(content: &mut ContentTokens, in_reasoning: bool, delta: &Delta<'_>) {
    match delta {
        Delta::Text(text) | Delta::Arguments(text) => match in_reasoning {
            true => content.add_plain_reasoning(text),
            false => content.add_plain_text(text),
        },
        Delta::Signature(signature) => content.add_plain_signature(&signature.data),
        Delta::Citation(_) | Delta::Logprob(_) => {}
    }
}

/// Adds what a block of a stream holds when it is opened.
pub(super) fn add_block(content: &mut ContentTokens, block: &Block<'_>) {
    match block {
        Block::Media(media) => add_media(content, media),
        Block::Call { name, .. } => content.add_plain_text(name),
        Block::Text | Block::Refusal | Block::Reasoning => {}
    }
}

fn add_media(content: &mut ContentTokens, media: &Media<'_>) {
    let length = match &media.source {
        Source::Base64(text) | Source::Plain(text) => text.len(),
        Source::Url(_) | Source::File(_) => 0,
    };
    content.add_media(&media.mime, length as u64);
}

/// Counts the content of a JSON response.
pub(super) fn content_tokens(response: &Response<'_>) -> ContentTokens {
    let mut content = ContentTokens::default();
    let parts = response.choices.iter().flat_map(|choice| &choice.parts);
    for part in parts {
        match &part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) => content.add_plain_text(text),
            PartKind::Reasoning { text, .. } => content.add_plain_reasoning(text),
            PartKind::Call(call) => {
                content.add_plain_text(&call.name);
                content.add_plain_text(&call.arguments.to_text());
            }
            PartKind::Media(media) => add_media(&mut content, media),
            PartKind::Result(_) => {}
        }
    }
    content
}

/// Counts the images of a response.
pub(super) fn count_images(response: &Response<'_>) -> u64 {
    let parts = response.choices.iter().flat_map(|choice| &choice.parts);
    parts.filter(|part| is_image(&part.kind)).count() as u64
}

fn is_image(part: &PartKind<'_>) -> bool {
    matches!(part, PartKind::Media(media) if media.mime.starts_with("image/"))
}

/// Counts the content of a response that passes through. It is decoded only for this, so callers do
/// it only for backends that report no usage.
pub(super) fn content_tokens_of_body(codec: &dyn Codec, body: &[u8]) -> ContentTokens {
    let response = codec.decode_response(body, &mut Losses::default());
    response.as_ref().map(content_tokens).unwrap_or_default()
}

#[cfg(test)]
mod tests;
