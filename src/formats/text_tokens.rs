//! About how many tokens a text has that no upstream has counted, by the kinds of its characters.
//!
//! Every tokenizer splits text in its own way. What is estimated here is billed, so the estimate is that of a tokenizer
//! which needs many tokens: some take every digit for one, and few have words of most scripts.

/// The weights here are in fractions of a token, this many to a whole one.
pub(super) const FRACTIONS_PER_TOKEN: u64 = 12;

/// The weight of a byte of English text, of which four are a token: that of anything which is measured in such bytes.
pub(super) const FRACTIONS_PER_BYTE: u64 = FRACTIONS_PER_TOKEN / 4;

/// The weights of characters by their first bytes.
const WEIGHTS: [u8; 256] = {
    let mut weights = [0; 256];
    let mut byte = 0;
    while byte < weights.len() {
        weights[byte] = weight(byte as u8);
        byte += 1;
    }
    weights
};

/// A character whose weight is not looked at any closer: one of the scripts that have a token for each.
const ONE_TOKEN: u8 = 12;

const fn weight(first: u8) -> u8 {
    match first {
        // Most words are one or two tokens, together with the space before them.
        b'a'..=b'z' | b' ' => 3,
        b'0'..=b'9' => ONE_TOKEN,
        // Capitals, punctuation and line ends.
        0x00..=0x7f => 6,
        // The rest of a character.
        0x80..=0xbf => 0,
        // Latin letters with accents, and Cyrillic ones.
        0xc0..=0xc5 | 0xd0..=0xd3 => 6,
        // Greek, Hebrew, Arabic; Chinese, Japanese, Korean, the scripts of India.
        0xc6..=0xef => ONE_TOKEN,
        // Pictograms and rare scripts.
        0xf0..=0xff => 2 * ONE_TOKEN,
    }
}

/// Weighs a text, in fractions of a token.
pub(super) fn weigh_text(text: &[u8]) -> u64 {
    text.iter()
        .map(|byte| u64::from(WEIGHTS[*byte as usize]))
        .sum()
}

/// Weighs what stands between the quotes of a JSON string, which may have escapes.
pub(super) fn weigh_json_text(inner: &[u8]) -> u64 {
    let (mut weight, mut rest) = (0, inner);
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        weight += weigh_text(plain);
        let (escaped, length) = match escape.get(1) {
            // The halves of a pictogram are two escapes.
            Some(b'u') => (ONE_TOKEN, 6),
            _ => (WEIGHTS[b'\n' as usize], 2),
        };
        weight += u64::from(escaped);
        rest = &escape[length.min(escape.len())..];
    }
    weight + weigh_text(rest)
}

/// Estimates the tokens of a whole JSON text, its structure included.
pub fn estimate_json_tokens(text: &[u8]) -> u64 {
    weigh_json_text(text).div_ceil(FRACTIONS_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_weighs_less_than_a_token_for_four_bytes() {
        for (text, fractions) in [
            ("", 0),
            ("four", 12),
            ("the quick brown fox", 57),
            ("Hi!", 15),
            ("2026", 48),
            ("Съешь ещё", 51),
            ("שלום", 48),
            ("今日は", 36),
            ("🦀", 24),
        ] {
            assert_eq!(weigh_text(text.as_bytes()), fractions, "{text}");
            assert!(
                fractions >= text.len() as u64 * FRACTIONS_PER_BYTE,
                "{text}"
            );
            assert_eq!(weigh_json_text(text.as_bytes()), fractions, "{text}");
        }
    }

    #[test]
    fn an_escape_weighs_as_much_as_the_character() {
        for (escaped, text) in [
            (r"\u4eca\u65e5", "今日"),
            (r"\ud83e\udd80", "🦀"),
            (r"a\nb\\c\", "a\nb\\c\\"),
            (r#"\"four\""#, "\"four\""),
        ] {
            let weight = weigh_text(text.as_bytes());
            assert_eq!(weigh_json_text(escaped.as_bytes()), weight, "{escaped}");
        }
        assert_eq!(weigh_json_text(br"\u12"), u64::from(ONE_TOKEN));
    }
}
