//! Names with one `*`, which stands for any text, and an index that finds the pattern of a name.

use std::collections::HashMap;

use ahash::RandomState;

/// A longer name is matched by no pattern.
const MAX_NAME_LENGTH: usize = 256;

/// A name with one `*`, such as `gpt-*`. The `*` stands for one or more characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    prefix: String,
    suffix: String,
}

impl NamePattern {
    /// `None`: the text has no `*`, or more than one.
    pub fn parse(text: &str) -> Option<NamePattern> {
        let (prefix, suffix) = text.split_once('*')?;
        (!suffix.contains('*')).then(|| NamePattern {
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
        })
    }

    /// The text that the pattern begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Puts a text in the place of the `*`.
    pub fn fill(&self, matched: &str) -> String {
        [&self.prefix, matched, &self.suffix].concat()
    }
}

/// Finds the pattern with the longest literal text that matches a name. One lookup is made for every pair of lengths
/// that the literal texts have, not one for every pattern.
#[derive(Debug, Clone, Default)]
pub struct PatternIndex {
    /// The numbers of the patterns by prefix, then by suffix.
    places: HashMap<Vec<u8>, HashMap<Vec<u8>, usize, RandomState>, RandomState>,
    /// The longest first.
    lengths: Vec<LiteralLengths>,
}

/// The lengths of the literal texts of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LiteralLengths {
    prefix: usize,
    suffix: usize,
}

impl LiteralLengths {
    const fn sum(self) -> usize {
        self.prefix + self.suffix
    }
}

impl PatternIndex {
    /// Adds a pattern under a number, unless the same pattern is there already.
    pub fn insert(&mut self, pattern: &NamePattern, number: usize) {
        let (prefix, suffix) = (pattern.prefix.as_bytes(), pattern.suffix.as_bytes());
        let suffixes = self.places.entry(prefix.to_vec()).or_default();
        suffixes.entry(suffix.to_vec()).or_insert(number);
        let lengths = LiteralLengths {
            prefix: prefix.len(),
            suffix: suffix.len(),
        };
        let longer = |known: &LiteralLengths| known.sum() >= lengths.sum();
        if !self.lengths.contains(&lengths) {
            let at = self.lengths.partition_point(longer);
            self.lengths.insert(at, lengths);
        }
    }

    /// The number of the pattern of a name, and the text that its `*` stands for. Of patterns whose literal texts have
    /// the same length the one with the lowest number is taken.
    pub fn find<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        if self.lengths.is_empty() || !is_plain_name(name) {
            return None;
        }
        let mut found: Option<(usize, LiteralLengths)> = None;
        for lengths in &self.lengths {
            if found.is_some_and(|(_, longer)| longer.sum() > lengths.sum()) {
                break;
            }
            if let Some(number) = self.number(name.as_bytes(), *lengths)
                && found.is_none_or(|(first, _)| number < first)
            {
                found = Some((number, *lengths));
            }
        }
        let (number, lengths) = found?;
        let matched = name.get(lengths.prefix..name.len() - lengths.suffix)?;
        Some((number, matched))
    }

    fn number(&self, name: &[u8], lengths: LiteralLengths) -> Option<usize> {
        if name.len() <= lengths.sum() {
            return None;
        }
        let suffixes = self.places.get(&name[..lengths.prefix])?;
        suffixes.get(&name[name.len() - lengths.suffix..]).copied()
    }
}

/// Tells whether a name that no config lists may be sent to an upstream. It may stand in a path there, which it must not
/// lead out of, be it decoded twice, and in the log. Some routers take a name with a comma or the like for several models.
pub fn is_plain_name(name: &str) -> bool {
    name.len() <= MAX_NAME_LENGTH
        && name.bytes().all(|byte| byte.is_ascii_graphic())
        && !name.contains([',', ';', '|', '%', '\\'])
        && !name.split('/').any(|part| matches!(part, "." | ".."))
}

#[cfg(test)]
mod tests;
