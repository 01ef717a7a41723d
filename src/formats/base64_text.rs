//! Base64 as every upstream takes it: standard alphabet, padded, without whitespace.

use std::borrow::Cow;

/// The same bytes in the standard spelling; clean text, the usual case, is only looked at.
pub(in crate::formats) fn standard(text: &str) -> Cow<'_, str> {
    let is_clean = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if text.len().is_multiple_of(4) && text.bytes().all(is_clean) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 3);
    clean.extend(text.chars().filter_map(|letter| match letter {
        '-' => Some('+'),
        '_' => Some('/'),
        '=' => None,
        letter if letter.is_ascii_whitespace() => None,
        letter => Some(letter),
    }));
    while !clean.len().is_multiple_of(4) {
        clean.push('=');
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_becomes_the_standard_one() {
        for spelled in ["+/8=", "-_8=", "-_8", "+/\n8=", " -_8\r\n"] {
            assert_eq!(standard(spelled), "+/8=", "{spelled:?}");
        }
        assert!(matches!(standard("AAAA"), Cow::Borrowed("AAAA")));
        assert_eq!(standard(""), "");
    }
}
