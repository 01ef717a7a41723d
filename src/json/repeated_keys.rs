//! Finds keys that stand in one object twice: which of them counts, each parser decides for itself.

use std::borrow::Cow;

use super::reader::{DecodeResult, JsonReader};

/// Tells whether any object of a text has a key twice, be it in another case. A text that is not JSON has none.
pub fn has_repeated_keys(text: &str) -> bool {
    let mut found = false;
    let read = read_value(&mut JsonReader::new(text), &mut found);
    read.is_ok() && found
}

fn read_value(reader: &mut JsonReader<'_>, found: &mut bool) -> DecodeResult {
    match reader.peek() {
        Some(b'{') => {
            let mut keys = Vec::new();
            reader.entries(|reader, key| {
                keys.push(folded(key));
                read_value(reader, found)
            })?;
            keys.sort_unstable();
            *found |= keys.windows(2).any(|pair| pair[0] == pair[1]);
            Ok(())
        }
        Some(b'[') => reader.array(|reader| read_value(reader, found)),
        _ => reader.skip(),
    }
}

/// A key without its case, as the most lenient parsers read it: `ſ` is an `s` to them.
fn folded(key: Cow<'_, str>) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if key.bytes().all(is_plain) {
        return key;
    }
    let upper = key.chars().flat_map(char::to_uppercase);
    Cow::Owned(upper.flat_map(char::to_lowercase).collect())
}

#[cfg(test)]
mod tests {
    use super::has_repeated_keys;

    #[test]
    fn keys_are_compared_within_one_object_and_without_their_case() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"b":[0,{"content":"x","c":{},"Content":[]}]}"#,
            r#"{"tools":1,"tool\u017f":2}"#,
            r#"{"a":1,"\u0061":2}"#,
        ] {
            assert!(has_repeated_keys(text), "{text}");
        }
        for text in [
            "",
            "{",
            "3",
            r#"{"a":{"a":[{"a":"a"},{"a":1}]},"b":"\"a\":1"}"#,
        ] {
            assert!(!has_repeated_keys(text), "{text}");
        }
    }
}
