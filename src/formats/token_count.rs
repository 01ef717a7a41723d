//! Decodes the token counts that upstreams report.

use crate::json::{DecodeResult, FromJson, JsonReader, RawJson};

/// A count of tokens. A response is good even where its count is not: an invalid one counts as zero,
/// and is estimated later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::formats) struct TokenCount(pub u64);

impl<'a> FromJson<'a> for TokenCount {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        let mut raw = RawJson::default();
        raw.decode(reader)?;
        let digits = raw.get().trim_matches('"');
        // Some upstreams send `3.0`.
        let whole = digits.strip_suffix(".0").unwrap_or(digits);
        self.0 = whole.parse().unwrap_or(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::decode_json;

    #[test]
    fn every_form_of_a_count_is_decoded_and_an_invalid_one_is_zero() {
        for (text, count) in [
            ("3", 3),
            ("3.0", 3),
            (r#""3""#, 3),
            ("null", 0),
            ("-1", 0),
            ("1e9", 0),
            (r#""many""#, 0),
            (r#"{"a":[1]}"#, 0),
            ("18446744073709551616", 0),
        ] {
            assert_eq!(
                decode_json::<TokenCount>(text),
                Ok(TokenCount(count)),
                "{text}"
            );
        }
        assert!(decode_json::<TokenCount>("3,").is_err());
    }
}
