//! Input that is a text, a list of texts, a list of tokens, or a list of such lists.

use crate::json::{DecodeResult, FieldIndex, FromJson, JsonReader, decode_json};

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

impl InputSummary {
    /// The input of a body that cannot be read: it may be anything.
    pub(super) fn unreadable() -> InputSummary {
        InputSummary {
            has_unseen: true,
            ..InputSummary::default()
        }
    }
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

/// Counts the inputs of a list, also those of lists in it; something else may have as many as it has texts.
pub(super) fn count_inputs(written: &str) -> u64 {
    let (mut reader, mut count) = (JsonReader::new(written), 0);
    // What cannot be read no upstream reads either.
    match reader.peek() {
        Some(b'[') => count = count_items(&mut reader).unwrap_or_default(),
        _ => {
            let _ = count_texts(&mut reader, &mut count);
        }
    }
    count.max(1)
}

/// Counts the inputs in lists that stand in fields of the body which are not known: an upstream may read those too.
/// `may_hold`: tells by its name whether a field may have inputs.
pub(super) fn count_unknown_inputs(
    body: &[u8],
    fields: &FieldIndex,
    may_hold: fn(&str) -> bool,
) -> u64 {
    let mut count: u64 = 0;
    let mut reader = JsonReader::new(str::from_utf8(body).unwrap_or_default());
    let _ = reader.object(|reader, key| {
        if fields.knows_top(key) || !may_hold(key) {
            return reader.skip();
        }
        match reader.peek() {
            Some(b'{') => count_texts(reader, &mut count)?,
            _ => count += count_items(reader)?,
        }
        Ok(())
    });
    count
}

/// Counts the items of lists at any depth, of which a list of tokens is one.
fn count_items(reader: &mut JsonReader<'_>) -> DecodeResult<u64> {
    let (mut count, mut has_tokens) = (0, false);
    match reader.peek() {
        Some(b'[') => reader.array(|reader| {
            match reader.peek() {
                Some(b'0'..=b'9' | b'-') => {
                    has_tokens = true;
                    reader.skip()?;
                }
                _ => count += count_items(reader)?.max(1),
            }
            Ok(())
        })?,
        Some(b'{') => reader.object(|reader, _| {
            count += count_items(reader)?;
            Ok(())
        })?,
        _ => reader.skip()?,
    }
    Ok(count + u64::from(has_tokens))
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

#[cfg(test)]
mod tests {
    use super::count_inputs;
    use crate::formats::EmbedMethod;
    use crate::model::Format;

    #[test]
    fn lists_in_lists_are_inputs() {
        for (written, inputs) in [
            (r#""a""#, 1),
            (r#"["a",{}]"#, 2),
            (r#"[["a","b","c"]]"#, 3),
            (r#"[[1,2],"a"]"#, 2),
            (r#"[[[1,2],[3]]]"#, 2),
            (r#"[{"title":"a","text":"b"}]"#, 1),
            (r#"[{"content":["a","b"]},{"image":"x"}]"#, 3),
            (r#"[{"content":{"parts":[{"text":"a"},{"text":"b"}]}}]"#, 2),
            (r#"{"a":["b","c"]}"#, 2),
        ] {
            assert_eq!(count_inputs(written), inputs, "{written}");
        }
    }

    #[test]
    fn fields_that_are_not_known_may_have_inputs() {
        for (fields, inputs) in [
            (r#""input":"a""#, 1),
            (r#""input":["a","b"],"dimensions":3"#, 2),
            (r#""input":"a","texts":["b","c"]"#, 3),
            (r#""input":"a","more":{"texts":["b",["c","d"]]}"#, 4),
            (r#""input":"a","texts":{"a":"b","c":"d"}"#, 3),
            (r#""input":"a","input_type":"query","truncate":true"#, 1),
            (r#""input":"a","embedding_types":["float","int8"]"#, 1),
            (r#""input":[["a","b"]]"#, 2),
        ] {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            let codec = Format::Chat.codec().embedding_codec().expect("a codec");
            let summary = codec.summarize(EmbedMethod::Batch, None, body.as_bytes());
            assert_eq!(
                summary.expect("a summary").1.input.inputs,
                inputs,
                "{fields}"
            );
        }
    }
}
