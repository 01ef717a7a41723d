//! Names for calls that came without one: the same call always gets the same name.

use sha2::{Digest as _, Sha256};

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const LENGTH: usize = 24;

/// Made of what the call belongs to, the choice or turn it stands in, and its number there.
pub(in crate::formats) fn call_id(response_id: &str, choice: u32, ordinal: u32) -> String {
    let digest = Sha256::digest(format!("{response_id}\u{1f}{choice}\u{1f}{ordinal}"));
    let mut name = String::from("call_");
    for bit in (0..LENGTH).map(|letter| letter * 5) {
        let pair = u16::from_be_bytes([digest[bit / 8], digest[bit / 8 + 1]]);
        let letter = (pair >> (11 - bit % 8)) & 0x1f;
        name.push(char::from(ALPHABET[usize::from(letter)]));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::call_id;

    #[test]
    fn a_name_is_the_first_letters_of_the_digest_in_base32() {
        // base32(sha256("r1" 0x1f "0" 0x1f "0")), reckoned with another program.
        assert_eq!(call_id("r1", 0, 0), "call_goxwprz7phwxu5l26bajjtt4");
        assert_ne!(call_id("r1", 0, 0), call_id("r1", 0, 1));
        assert_ne!(call_id("r1", 1, 0), call_id("r1", 0, 1));
    }
}
