//! The rule for tool names of a format, and replacements for names that break it.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

/// How many bytes the name of a tool has at most, and that of a namespace: a long one gets a short name upstream, and each
/// call of a response gets the long one back.
pub const MAX_TOOL_NAME: usize = 256;

/// The characters that a tool's name may have, besides letters, digits, underscores and dashes, and
/// its length.
#[derive(Debug, Clone, Copy)]
pub struct ToolNameRule {
    pub max_length: usize,
    pub extra_characters: &'static [char],
    /// The first character must be a letter or an underscore.
    pub starts_with_letter: bool,
}

impl ToolNameRule {
    pub(in crate::formats) const fn with_max_length(max_length: usize) -> ToolNameRule {
        ToolNameRule {
            max_length,
            extra_characters: &[],
            starts_with_letter: false,
        }
    }

    /// Returns the names of a request that must change, and what they change to. No two tools get
    /// the same name.
    pub fn replacements<'n>(
        &self,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> BTreeMap<&'n str, String> {
        let mut renamed = BTreeMap::new();
        let mut illegal = names.clone().filter(|name| !self.allows(name)).peekable();
        if illegal.peek().is_none() {
            return renamed;
        }
        let mut taken: BTreeSet<String> = names.map(str::to_owned).collect();
        for name in illegal {
            if renamed.contains_key(name) {
                continue;
            }
            let plain = self.legal_name(name, usize::MAX);
            let upstream = if taken.contains(&plain) || plain.len() > self.max_length {
                let digest = Sha256::digest(name);
                let suffix = format!("_{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
                self.legal_name(name, self.max_length - suffix.len()) + &suffix
            } else {
                plain
            };
            taken.insert(upstream.clone());
            renamed.insert(name, upstream);
        }
        renamed
    }

    fn allows(&self, name: &str) -> bool {
        !name.is_empty()
            && name.len() <= self.max_length
            && name.chars().all(|letter| self.allows_letter(letter))
            && !self.lacks_first_letter(name)
    }

    fn allows_letter(&self, letter: char) -> bool {
        letter.is_ascii_alphanumeric()
            || matches!(letter, '_' | '-')
            || self.extra_characters.contains(&letter)
    }

    fn lacks_first_letter(&self, name: &str) -> bool {
        let begins = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        name.is_empty() || self.starts_with_letter && name.starts_with(|letter| !begins(letter))
    }

    fn legal_name(&self, name: &str, max_length: usize) -> String {
        let legal = |letter| {
            if self.allows_letter(letter) {
                letter
            } else {
                '_'
            }
        };
        let rewritten = name.chars().map(legal);
        let beginning = self.lacks_first_letter(name).then_some('_');
        beginning
            .into_iter()
            .chain(rewritten)
            .take(max_length)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(renamed: &BTreeMap<&str, String>, name: &str) -> String {
        renamed.get(name).map_or(name, |known| known).to_owned()
    }

    #[test]
    fn legal_names_stay_and_replacements_are_unique() {
        let long = "x".repeat(65);
        let names = ["ok-1", "a.b", "a:b", "c.d", "c_d", &long, "a.b"];
        let renamed = ToolNameRule::with_max_length(64).replacements(names.into_iter());
        assert_eq!(renamed.len(), 4);
        assert_eq!(of(&renamed, "ok-1"), "ok-1");
        assert_eq!(of(&renamed, "a.b"), "a_b");
        assert_eq!(of(&renamed, "c_d"), "c_d");
        assert_eq!(
            of(
                &ToolNameRule::with_max_length(64).replacements([""].into_iter()),
                ""
            ),
            "_"
        );
        for (name, start, length) in [("a:b", "a_b_", 10), ("c.d", "c_d_", 10), (&long, "xxx", 64)]
        {
            let legal = of(&renamed, name);
            assert!(legal.starts_with(start) && legal.len() == length, "{legal}");
        }
    }

    #[test]
    fn extra_characters_may_not_come_first() {
        let rule = ToolNameRule {
            max_length: 128,
            extra_characters: &['.', ':'],
            starts_with_letter: true,
        };
        let names = ["a.b:c-1", "_a", "1a", "-a", ".a", "a b", "ä"];
        let renamed = rule.replacements(names.into_iter());
        let sent = names.map(|name| of(&renamed, name));
        let starts = ["a.b:c-1", "_a", "_1a", "_-a", "_.a", "a_b", "__"];
        assert_eq!(sent, starts);
    }
}
