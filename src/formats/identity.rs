//! Names for calls that arrived without one: the same reply always gives the same names.

use sha2::{Digest as _, Sha256};

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Fits every format's limit on call ids.
const LENGTH: usize = 24;
/// Keeps `1, 12` and `11, 2` apart.
const SEPARATOR: char = '\u{1f}';

/// `ordinal` counts the calls of one choice from 0.
pub(in crate::formats) fn call_id(response_id: &str, choice: u32, ordinal: u32) -> String {
    let text = format!("{response_id}{SEPARATOR}{choice}{SEPARATOR}{ordinal}");
    format!("call_{}", base32(&Sha256::digest(text.as_bytes())))
}

fn base32(bytes: &[u8]) -> String {
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    let letter = |group: usize| {
        let value = (group * 5..group * 5 + 5).fold(0, |value, at| value << 1 | bit(at));
        char::from(ALPHABET[usize::from(value)])
    };
    (0..LENGTH).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_common_alphabet() {
        assert_eq!(base32(b"foobarfoobarfoobar"), "mzxw6ytbojtg633cmfzgm33p");
    }

    #[test]
    fn names_depend_on_all_three_and_on_nothing_else() {
        let name = call_id("resp-1", 0, 0);
        assert_eq!(name, call_id("resp-1", 0, 0));
        assert_eq!(name.len(), "call_".len() + LENGTH);
        for other in [
            call_id("resp-2", 0, 0),
            call_id("resp-1", 1, 0),
            call_id("resp-1", 0, 1),
        ] {
            assert_ne!(name, other);
        }
    }
}
