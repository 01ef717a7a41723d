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

    /// Summarizes the input that is written so.
    pub(super) fn summary(&self, written: &str) -> InputSummary {
        match self.token_ids {
            _ if self.has_other => InputSummary {
                has_unseen: true,
                ..InputSummary::default()
            },
            0 => InputSummary::default(),
            token_ids => InputSummary {
                token_ids,
                token_bytes: written.len() as u64,
                ..InputSummary::default()
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
