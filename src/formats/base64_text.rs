//! Base64 as every upstream takes it, whatever a client wrote: `aGk_` → `aGk/`, `aA` → `aA==`.

use std::borrow::Cow;

/// Standard alphabet, padded, without white space. What is so already is not copied.
pub(in crate::formats) fn to_standard(text: &str) -> Cow<'_, str> {
    // No early exit: this way the compiler checks many bytes at a time.
    let odd = text.bytes().fold(false, |odd, byte| odd | is_odd(byte));
    let data = text.trim_end_matches('=');
    if !odd && padded(data.len()) == text.len() {
        return Cow::Borrowed(text);
    }
    let letters = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let letters = letters.map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    });
    let bytes: Vec<u8> = letters.collect();
    // Only whole ASCII characters were removed or replaced.
    let mut clean = String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned());
    clean.truncate(clean.trim_end_matches('=').len());
    let missing = padded(clean.len()) - clean.len();
    clean.extend(std::iter::repeat_n('=', missing));
    Cow::Owned(clean)
}

/// Whether it is base64 in any spelling.
pub(in crate::formats) fn is_base64(text: &str) -> bool {
    // No early exit here either: what is so already is told in one fast pass.
    let letters = text.trim_end_matches('=').as_bytes();
    let plain = letters
        .iter()
        .fold(true, |all, byte| all & is_letter(*byte));
    if plain {
        return letters.len() % 4 != 1;
    }
    let text: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let letters = &text[..text.len() - padding];
    letters.len() % 4 != 1 && letters.iter().all(|byte| is_letter(*byte))
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | matches!(byte, b'+' | b'/' | b'-' | b'_')
}

fn is_odd(byte: u8) -> bool {
    matches!(byte, b'-' | b'_' | b' ' | b'\t' | b'\r' | b'\n' | 0x0c)
}

/// The length with padding; one letter too many is beyond repair and left to whoever reads it.
fn padded(letters: usize) -> usize {
    match letters % 4 {
        1 => letters,
        _ => letters.next_multiple_of(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_spelling_becomes_the_standard_one() {
        for (given, clean) in [
            ("aGk_", "aGk/"),
            ("-_8=", "+/8="),
            ("-_8", "+/8="),
            ("aGkh\r\naGkh \t", "aGkhaGkh"),
            ("aA", "aA=="),
            ("aA====", "aA=="),
            ("aA= =", "aA=="),
            ("aGkha", "aGkha"),
        ] {
            assert_eq!(to_standard(given), clean, "{given:?}");
        }
    }

    #[test]
    fn what_is_no_base64_is_told() {
        for good in [
            "",
            "aGkh",
            "aGk_",
            "-_8",
            "aA====",
            "aGkh\r\naGk= \n",
            "aA= =",
        ] {
            assert!(is_base64(good), "{good:?}");
        }
        for bad in [
            "data:image/png;base64,aGkh",
            "aGk*",
            "aGkha",
            "aG=kh",
            "a",
            "aGk\u{e9}",
        ] {
            assert!(!is_base64(bad), "{bad:?}");
        }
    }

    #[test]
    fn clean_base64_is_borrowed() {
        for clean in ["", "aGkh", "aGk=", "aA==", "+/8="] {
            assert!(matches!(to_standard(clean), Cow::Borrowed(same) if same == clean));
        }
    }
}
