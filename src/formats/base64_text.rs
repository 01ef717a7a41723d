//! Normalises base64 for upstreams: `aGk_` → `aGk/`, `aA` → `aA==`.

use std::borrow::Cow;

/// Converts base64 to the standard alphabet, padded, without white space. Text that is so already
/// is not copied.
pub(in crate::formats) fn to_standard(text: &str) -> Cow<'_, str> {
    // No early exit: this way the compiler checks many bytes at a time.
    let has_other = text
        .bytes()
        .fold(false, |found, byte| found | is_other(byte));
    let data = text.trim_end_matches('=');
    if !has_other && padded(data.len()) == text.len() {
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

/// Tells whether a text is base64 in any alphabet, with or without padding.
pub(in crate::formats) fn is_base64(text: &str) -> bool {
    // No early exit here either: one fast pass for what needs no cleaning.
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

fn is_other(byte: u8) -> bool {
    matches!(byte, b'-' | b'_' | b' ' | b'\t' | b'\r' | b'\n' | 0x0c)
}

/// Returns the length with padding; an impossible length is left for the upstream to refuse.
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
    fn every_variant_becomes_standard_base64() {
        for (text, clean) in [
            ("aGk_", "aGk/"),
            ("-_8=", "+/8="),
            ("-_8", "+/8="),
            ("aGkh\r\naGkh \t", "aGkhaGkh"),
            ("aA", "aA=="),
            ("aA====", "aA=="),
            ("aA= =", "aA=="),
            ("aGkha", "aGkha"),
        ] {
            assert_eq!(to_standard(text), clean, "{text:?}");
        }
    }

    #[test]
    fn other_text_is_not_base64() {
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
