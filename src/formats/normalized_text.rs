//! How much longer text may become in tokenizers that normalize it first, as those of some open models do.

use memchr::memmem;

/// The first and the last of characters that NFC or NFKC writes with more bytes, and the most of these. In between stand some
/// that become no longer.
const GROWING: [(u32, u32, u8); 40] = [
    (0xA8, 0xBE, 3),
    (0x13F, 0x149, 1),
    (0x1C4, 0x1C6, 1),
    (0x2D8, 0x2DD, 1),
    (0x344, 0x344, 2),
    (0x37A, 0x385, 3),
    (0x587, 0x587, 2),
    (0x675, 0x678, 2),
    (0x958, 0x95F, 3),
    (0x9DC, 0x9DF, 3),
    (0xA33, 0xA5E, 3),
    (0xB5C, 0xB5D, 3),
    (0xE33, 0xE33, 3),
    (0xEB3, 0xEB3, 3),
    (0xEDC, 0xEDD, 3),
    (0xF43, 0xFB9, 6),
    (0x1FC1, 0x1FEE, 2),
    (0x2033, 0x2057, 9),
    (0x2150, 0x2189, 3),
    (0x222C, 0x2230, 6),
    (0x247D, 0x2487, 1),
    (0x2A0C, 0x2A0C, 9),
    (0x2ADC, 0x2ADC, 2),
    (0x309B, 0x309F, 3),
    (0x30FF, 0x30FF, 3),
    (0x3200, 0x3243, 5),
    (0x327C, 0x327D, 3),
    (0x32C0, 0x32CB, 2),
    (0x32FF, 0x33FE, 15),
    (0xFA6C, 0xFA6C, 1),
    (0xFACF, 0xFAD7, 1),
    (0xFB13, 0xFB4F, 3),
    (0xFBDD, 0xFDC7, 3),
    (0xFDF0, 0xFDFC, 30),
    (0xFE71, 0xFEFC, 1),
    (0x1B123, 0x1B126, 2),
    (0x1D15E, 0x1D164, 8),
    (0x1D1BB, 0x1D1C0, 8),
    (0x1F12A, 0x1F12A, 3),
    (0x1F200, 0x1F248, 5),
];

/// Returns the most bytes by which the text of a body becomes longer. It may be written with escapes.
pub fn max_growth(body: &[u8]) -> u64 {
    let written: u64 = match body.is_ascii() {
        true => 0,
        false => {
            let valid = body.utf8_chunks().flat_map(|chunk| chunk.valid().chars());
            valid.map(|letter| growth(u32::from(letter))).sum()
        }
    };
    let escapes = memmem::find_iter(body, br"\u").filter_map(|at| {
        let digits = str::from_utf8(body.get(at + 2..at + 6)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    });
    written + escapes.map(growth).sum::<u64>()
}

/// Returns the most bytes that a text has after that.
pub(super) fn longest(text: &str) -> u64 {
    (text.len() as u64).saturating_add(max_growth(text.as_bytes()))
}

/// Returns by how many bytes a character may become longer. As a pair of escapes it is longer already.
fn growth(letter: u32) -> u64 {
    if letter < GROWING[0].0 {
        return 0;
    }
    let at = GROWING.partition_point(|(_, last, _)| *last < letter);
    let found = GROWING.get(at).filter(|(first, _, _)| *first <= letter);
    found.map_or(0, |(_, _, bytes)| u64::from(*bytes))
}

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization as _;

    use super::{growth, max_growth};

    #[test]
    fn no_character_grows_more() {
        let mut more = Vec::new();
        for letter in '\0'..=char::MAX {
            let one = letter.to_string();
            let longest = one.nfc().collect::<String>().len();
            let longest = longest.max(one.nfkc().collect::<String>().len());
            let grown = longest.saturating_sub(one.len()) as u64;
            if grown > growth(u32::from(letter)) {
                more.push((letter, grown));
            }
        }
        assert_eq!(more, [], "these grow more");
    }

    #[test]
    fn most_text_does_not_grow() {
        for (text, bytes) in [
            ("plain, with ünïcode, 今日は世界 и кириллица 한국어 😀", 0),
            ("\u{fdfa}", 30),
            (r"\ufdfa\uFDFA", 60),
            ("\u{1d160}\u{1d160}", 16),
            (r"\ud834\udd60", 0),
            (r"\u12", 0),
        ] {
            assert_eq!(max_growth(text.as_bytes()), bytes, "{text}");
        }
        assert_eq!(max_growth(b"\xff\xef\xb7\xba\xff"), 30);
    }
}
