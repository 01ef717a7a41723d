//! Joins surrogate pairs that an upstream split between two events: JSON readers accept neither
//! half.

use std::borrow::Cow;

/// Buffers a high surrogate until the low one comes.
#[derive(Debug, Default)]
pub(super) struct SurrogatePairs {
    high: Option<String>,
}

/// The length of an escape like `\ud83d`.
const ESCAPE: usize = 6;
const REPLACEMENT: &str = "\\ufffd";

impl SurrogatePairs {
    /// Returns the payload without lone surrogates: a high one moves to the event of its low one.
    pub(super) fn join<'a>(&mut self, data: &'a str) -> Cow<'a, str> {
        let mut joined = String::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(found) = memchr::memchr(b'\\', &data.as_bytes()[at..]) {
            let here = at + found;
            let unit = unit_at(data, here);
            let is_pair =
                unit.is_some_and(is_high) && unit_at(data, here + ESCAPE).is_some_and(is_low);
            at = here
                + match unit {
                    Some(_) if is_pair => 2 * ESCAPE,
                    Some(_) => ESCAPE,
                    // Skips the backslash, and one that it escapes.
                    None => 1 + usize::from(data.as_bytes().get(here + 1) == Some(&b'\\')),
                };
            let Some(unit) = unit.filter(|unit| !is_pair && (is_high(*unit) || is_low(*unit)))
            else {
                continue;
            };
            joined.push_str(&data[copied..here]);
            copied = at;
            if is_high(unit) && data[at..].starts_with('"') {
                self.high = Some(data[here..at].to_owned());
            } else if let Some(first) = self
                .high
                .take_if(|_| is_low(unit) && data[..here].ends_with('"'))
            {
                joined.push_str(&first);
                joined.push_str(&data[here..at]);
            } else {
                joined.push_str(REPLACEMENT);
            }
        }
        if copied == 0 {
            return Cow::Borrowed(data);
        }
        joined.push_str(&data[copied..]);
        Cow::Owned(joined)
    }
}

fn unit_at(data: &str, at: usize) -> Option<u16> {
    let digits = data.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

fn is_high(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::SurrogatePairs;

    #[test]
    fn a_split_pair_is_joined_in_the_second_event() {
        let mut pairs = SurrogatePairs::default();
        assert_eq!(pairs.join(r#"{"a":"x\ud83d"}"#), r#"{"a":"x"}"#);
        assert_eq!(pairs.join(r#"{"b":1}"#), r#"{"b":1}"#);
        assert_eq!(pairs.join(r#"{"a":"\uDE00y"}"#), r#"{"a":"\ud83d\uDE00y"}"#);
    }

    #[test]
    fn a_lone_surrogate_is_replaced_and_the_rest_stays() {
        let mut pairs = SurrogatePairs::default();
        for whole in [
            r#""\ud83d\ude00\\ud83d\n\u00e9\\""#,
            "",
            "\\",
            r"\ud83",
            r"\é",
        ] {
            assert_eq!(pairs.join(whole), whole);
        }
        assert_eq!(pairs.join(r#""\ud83dx\ude00""#), r#""\ufffdx\ufffd""#);
    }
}
