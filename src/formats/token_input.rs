//! Input that is a text, a list of texts, a list of tokens, or a list of such lists.

use crate::json::{DecodeResult, FromJson, JsonReader, decode_json};

/// What of a request's input has another number of tokens than its length in the body tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputSummary {
    /// The number of tokens that the body has as numbers, and the bytes that these take there.
    pub token_ids: u64,
    pub token_bytes: u64,
    /// The bytes of text that the upstream reads more than once.
    pub repeated_bytes: u64,
    /// There may be input that is no text in the body.
    pub has_unseen: bool,
    /// How many inputs there are, each of which may be as long as the model takes; 0 stands for one.
    pub inputs: u64,
}

/// What an input has.
#[derive(Default)]
pub(super) struct TokenInput {
    pub(super) inputs: usize,
    token_ids: u64,
    /// It has something else than texts or tokens, or both.
    pub(super) has_other: bool,
}

impl TokenInput {
    /// Counts an input; what is no JSON has something else.
    pub(super) fn count(written: &str) -> TokenInput {
        decode_json(written).unwrap_or(TokenInput {
            has_other: true,
            ..TokenInput::default()
        })
    }

    /// Returns how many inputs there are in what is written so; something else counts for all that it may be.
    pub(super) fn most_inputs(&self, written: &str) -> u64 {
        match self.has_other {
            true => count_inputs(written),
            false => self.inputs as u64,
        }
    }

    /// Summarizes the input that is written so.
    pub(super) fn summary(&self, written: &str) -> InputSummary {
        let summary = InputSummary {
            inputs: self.most_inputs(written),
            ..InputSummary::default()
        };
        match self.token_ids {
            _ if self.has_other => InputSummary {
                has_unseen: true,
                ..summary
            },
            0 => summary,
            token_ids => InputSummary {
                token_ids,
                token_bytes: written.len() as u64,
                ..summary
            },
        }
    }

    fn count_token(&mut self, reader: &mut JsonReader<'_>) -> DecodeResult {
        match reader.peek() {
            Some(b'0'..=b'9') => self.token_ids += 1,
            _ => self.has_other = true,
        }
        reader.skip()
    }
}

/// Counts the inputs of a list; something else may have as many as it has texts.
pub(super) fn count_inputs(written: &str) -> u64 {
    let (mut reader, mut count) = (JsonReader::new(written), 0);
    // What cannot be read no upstream reads either.
    let _ = match reader.peek() {
        Some(b'[') => reader.array(|reader| {
            count += 1;
            reader.skip()
        }),
        _ => count_texts(&mut reader, &mut count),
    };
    count.max(1)
}

fn count_texts(reader: &mut JsonReader<'_>, count: &mut u64) -> DecodeResult {
    match reader.peek() {
        Some(b'{') => reader.object(|reader, _| count_texts(reader, count)),
        Some(b'[') => reader.array(|reader| count_texts(reader, count)),
        first => {
            *count += u64::from(first == Some(b'"'));
            reader.skip()
        }
    }
}

impl<'a> FromJson<'a> for TokenInput {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if reader.peek() != Some(b'[') {
            self.has_other = reader.peek() != Some(b'"');
            self.inputs = usize::from(!self.has_other);
            return reader.skip();
        }
        let (mut texts, mut lists) = (0, 0);
        reader.array(|reader| match reader.peek() {
            Some(b'"') => {
                texts += 1;
                reader.skip()
            }
            Some(b'[') => {
                lists += 1;
                reader.array(|reader| self.count_token(reader))
            }
            _ => self.count_token(reader),
        })?;
        let has_bare_tokens = lists == 0 && self.token_ids > 0;
        self.inputs = texts + lists + usize::from(has_bare_tokens);
        self.has_other |= texts > 0 && (lists > 0 || self.token_ids > 0);
        Ok(())
    }
}
