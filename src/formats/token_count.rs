//! Decodes the token counts that upstreams report.

use crate::json::{DecodeResult, FromJson, JsonReader, RawJson};

/// A count of tokens. A response is good even where its count is not: one that is negative or no number is the same as none,
/// and is estimated later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::formats) struct TokenCount(Option<u64>);

impl TokenCount {
    /// The count, where there is one.
    pub(in crate::formats) const fn known(self) -> Option<u64> {
        self.0
    }

    /// The count; none is zero.
    pub(in crate::formats) fn tokens(self) -> u64 {
        self.0.unwrap_or_default()
    }
}

impl<'a> FromJson<'a> for TokenCount {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        let mut raw = RawJson::default();
        raw.decode(reader)?;
        self.0 = parse(raw.get().trim_matches('"'));
        Ok(())
    }
}

/// Some upstreams send `3.0`. A part of a token counts as a whole one, and a number beyond all limits as the largest.
fn parse(digits: &str) -> Option<u64> {
    if let Ok(count) = digits.parse() {
        return Some(count);
    }
    // Rust also reads words, such as `inf`.
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit());
    let number: f64 = digits.parse().ok().filter(|_| is_number)?;
    Some(number.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::decode_json;

    #[test]
    fn every_form_of_a_count_is_decoded_and_an_invalid_one_is_none() {
        for (text, count) in [
            ("3", Some(3)),
            ("0", Some(0)),
            ("3.0", Some(3)),
            ("2.1", Some(3)),
            ("8e3", Some(8000)),
            ("1E-3", Some(1)),
            (r#""3""#, Some(3)),
            (r#""3.5""#, Some(4)),
            ("18446744073709551616", Some(u64::MAX)),
            ("1e30", Some(u64::MAX)),
            ("1e999", Some(u64::MAX)),
            ("null", None),
            ("-1", None),
            ("-1e9", None),
            ("-0.5", None),
            (r#""inf""#, None),
            (r#""NaN""#, None),
            (r#""""#, None),
            (r#""many""#, None),
            (r#"{"a":[1]}"#, None),
        ] {
            assert_eq!(decode_json(text), Ok(TokenCount(count)), "{text}");
        }
        assert!(decode_json::<TokenCount>("3,").is_err());
    }
}
