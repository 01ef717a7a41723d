//! Characters that an upstream cut in two: their escapes are a surrogate pair, half in one event
//! and half in the next, and neither is a string that JSON readers take.

use std::borrow::Cow;

/// Holds the first half until the second comes.
#[derive(Debug, Default)]
pub(super) struct Halves {
    held: Option<String>,
}

/// The length of an escape like `\ud83d`.
const ESCAPE: usize = 6;
const REPLACEMENT: &str = "\\ufffd";

impl Halves {
    /// The payload without half characters: a first half is moved before its second half.
    pub(super) fn join<'a>(&mut self, data: &'a str) -> Cow<'a, str> {
        let mut joined = String::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(found) = memchr::memchr(b'\\', &data.as_bytes()[at..]) {
            let here = at + found;
            let unit = unit_at(data, here);
            let is_pair =
                unit.is_some_and(is_first) && unit_at(data, here + ESCAPE).is_some_and(is_second);
            at = here
                + match unit {
                    Some(_) if is_pair => 2 * ESCAPE,
                    Some(_) => ESCAPE,
                    // The escaped character may be of any length; a backslash is none of it.
                    None => 1 + usize::from(data.as_bytes().get(here + 1) == Some(&b'\\')),
                };
            let Some(unit) = unit.filter(|unit| !is_pair && (is_first(*unit) || is_second(*unit)))
            else {
                continue;
            };
            joined.push_str(&data[copied..here]);
            copied = at;
            if is_first(unit) && data[at..].starts_with('"') {
                self.held = Some(data[here..at].to_owned());
            } else if let Some(first) = self
                .held
                .take_if(|_| is_second(unit) && data[..here].ends_with('"'))
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

fn is_first(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_second(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::Halves;

    #[test]
    fn a_character_cut_in_two_comes_whole_with_its_second_half() {
        let mut halves = Halves::default();
        assert_eq!(halves.join(r#"{"a":"x\ud83d"}"#), r#"{"a":"x"}"#);
        assert_eq!(halves.join(r#"{"b":1}"#), r#"{"b":1}"#);
        assert_eq!(
            halves.join(r#"{"a":"\uDE00y"}"#),
            r#"{"a":"\ud83d\uDE00y"}"#
        );
    }

    #[test]
    fn a_half_without_the_other_is_replaced_and_all_else_stays() {
        let mut halves = Halves::default();
        for whole in [
            r#""\ud83d\ude00\\ud83d\n\u00e9\\""#,
            "",
            "\\",
            r"\ud83",
            r"\é",
        ] {
            assert_eq!(halves.join(whole), whole);
        }
        assert_eq!(halves.join(r#""\ud83dx\ude00""#), r#""\ufffdx\ufffd""#);
    }
}
