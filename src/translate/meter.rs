//! What a reply took: the upstream's own counts, and an estimate of what it did not count.
//!
//! A stream that breaks off has told its counts late, early or not at all. What came after the last
//! of them is weighed by its bytes, so that a stream needs two numbers and no memory of its words.

use crate::formats::{Codec, ContentBytes, ResponseObserver};
use crate::model::{Arguments, Delta, Losses, PartKind, Response, Usage};

/// In most languages a token takes about as many bytes, with all that stands around words.
const BYTES_OF_TOKEN: u64 = 4;
/// And never fewer than this in what people send: three are one letter of Chinese.
const FEWEST_BYTES_OF_TOKEN: u64 = 3;
/// An image that came or went, in bytes of text that would cost as much.
const PICTURE: u64 = 765 * BYTES_OF_TOKEN;

/// The tokens of a request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredUsage {
    pub usage: Usage,
    /// Some of it the upstream has not counted itself.
    pub estimated: bool,
}

impl MeasuredUsage {
    /// Of a request that nothing has come back for.
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

pub(super) fn of(observer: &ResponseObserver, input: impl FnOnce() -> u64) -> MeasuredUsage {
    let told = observer.usage.unwrap_or_default();
    if observer.ended && observer.api_error.is_none() && !told.is_blank() {
        // Final, and the same that a whole reply would tell.
        return MeasuredUsage {
            usage: told,
            estimated: false,
        };
    }
    let heard = observer.uncounted;
    let thinking = heard.reasoning.div_ceil(BYTES_OF_TOKEN);
    let output = thinking.saturating_add(heard.text.div_ceil(BYTES_OF_TOKEN));
    let is_input_told = told.input > 0;
    MeasuredUsage {
        estimated: !is_input_told || output > 0,
        usage: Usage {
            input: if is_input_told { told.input } else { input() },
            output: told.output.saturating_add(output),
            thinking: told.thinking.saturating_add(thinking),
            ..told
        },
    }
}

/// One more piece of a stream.
pub(super) fn hear(heard: &mut ContentBytes, thinks: bool, delta: &Delta<'_>) {
    let (Delta::Text(text) | Delta::Arguments(text)) = delta else {
        return;
    };
    let bytes = text.len() as u64;
    match thinks {
        true => heard.reasoning += bytes,
        false => heard.text += bytes,
    }
}

/// A whole reply.
pub(super) fn heard(response: &Response<'_>) -> ContentBytes {
    let mut heard = ContentBytes::default();
    let parts = response.choices.iter().flat_map(|choice| &choice.parts);
    for part in parts {
        match &part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) => heard.text += text.len() as u64,
            PartKind::Reasoning { text, .. } => heard.reasoning += text.len() as u64,
            PartKind::Call(call) => {
                let arguments = match &call.arguments {
                    Arguments::Text(text) => text.len(),
                    Arguments::Tree(_) => call.arguments.to_text().len(),
                };
                heard.text += (call.name.len() + arguments) as u64;
            }
            PartKind::Media(_) => heard.text += PICTURE,
            PartKind::Result(_) => {}
        }
    }
    heard
}

pub(super) fn pictures(response: &Response<'_>) -> u64 {
    let parts = response.choices.iter().flat_map(|choice| &choice.parts);
    parts.filter(|part| is_picture(&part.kind)).count() as u64
}

fn is_picture(part: &PartKind<'_>) -> bool {
    matches!(part, PartKind::Media(media) if media.mime.starts_with("image/"))
}

/// The same of one that passes unread. Only backends that count nothing make it worth the reading.
pub(super) fn heard_in(codec: &dyn Codec, body: &[u8]) -> ContentBytes {
    let response = codec.decode_response(body, &mut Losses::default());
    response.as_ref().map(heard).unwrap_or_default()
}

/// How much of a request's body is text and how much is data, such as images.
///
/// Found out by looking at a few places only: an image of 20 MiB must not be walked through to
/// learn that it is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BodyEstimate {
    text: u64,
    data: u64,
}

/// Bodies are looked at in so many places at most, and no shorter stretch than this is data.
const LOOKS: usize = 4096;
const STRETCH: usize = 4 << 10;
/// How much is looked at in a place. Text has a space, a quote or a mark of some kind in it.
const GLIMPSE: usize = 48;

/// Data is mostly images, and then less than this; documents take about as much: a page's worth
/// of tokens for what a page takes in base64.
const TOKENS_OF_PAGE: u64 = 1000;
const DATA_OF_PAGE: u64 = (64 << 10) / 3 * 4;

impl BodyEstimate {
    pub fn of(body: &[u8]) -> BodyEstimate {
        let stretch = (body.len() / LOOKS).max(STRETCH);
        let mut bulk = BodyEstimate::default();
        for part in body.chunks(stretch) {
            let middle = part.len() / 2;
            let glimpse = &part[middle..part.len().min(middle + GLIMPSE)];
            let bytes = part.len() as u64;
            match part.len() == stretch && (is_base64(glimpse) || !is_text(glimpse)) {
                true => bulk.data += bytes,
                false => bulk.text += bytes,
            }
        }
        bulk
    }

    /// About how many tokens that is.
    pub fn tokens(self) -> u64 {
        self.text.div_ceil(BYTES_OF_TOKEN) + self.data_tokens()
    }

    /// No less than it will be, as far as one can tell.
    pub fn max_tokens(self) -> u64 {
        self.text.div_ceil(FEWEST_BYTES_OF_TOKEN) + self.data_tokens()
    }

    const fn data_tokens(self) -> u64 {
        // Up to 1000 tokens for every page begun: no overflow below an exabyte.
        self.data.div_ceil(DATA_OF_PAGE) * TOKENS_OF_PAGE
    }
}

fn is_base64(bytes: &[u8]) -> bool {
    let in_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    bytes.iter().all(in_alphabet)
}

/// Characters may be cut in two at either end.
fn is_text(bytes: &[u8]) -> bool {
    let start = bytes.iter().take_while(|byte| *byte & 0xc0 == 0x80).count();
    match std::str::from_utf8(&bytes[start.min(3)..]) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests;
