//! Finds the entry of `models` that serves a name: by its id, by an alias, or by the `*` in its id.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, Hasher as _};

use ahash::RandomState;

use super::settings::{ModelConfig, ModelOrigin};
use crate::model::{NamePattern, PatternIndex};

/// The names of the models, with the number of the entry of each.
#[derive(Debug, Clone, Default)]
pub struct ModelNames {
    exact: HashMap<String, usize, RandomState>,
    /// The hashes of the same names, whose other spellings some upstreams do not tell apart.
    spellings: HashSet<u64, RandomState>,
    patterns: PatternIndex,
    /// The same in one spelling.
    folded_patterns: PatternIndex,
}

/// The entry that serves a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelMatch<'n> {
    /// The number of the entry, from 0.
    pub number: usize,
    /// The text that the `*` of its id stands for.
    pub matched: Option<&'n str>,
}

impl ModelNames {
    /// Builds the index of the models, in their order.
    pub fn new<'m>(models: impl Iterator<Item = &'m ModelConfig>) -> ModelNames {
        let mut names = ModelNames::default();
        for (number, model) in models.enumerate() {
            if model.origin == ModelOrigin::Discovered {
                // Its names are in the list of its upstream.
                continue;
            }
            for name in model.names() {
                names.insert(name, number);
            }
        }
        names
    }

    /// Adds a name of an entry, unless another has it already.
    pub fn insert(&mut self, name: &str, number: usize) {
        match NamePattern::parse(name) {
            Some(pattern) => {
                self.patterns.insert(&pattern, number);
                if let Some(folded) = NamePattern::parse(&fold(name)) {
                    self.folded_patterns.insert(&folded, number);
                }
            }
            None => {
                self.exact.entry(name.to_owned()).or_insert(number);
                let spelling = spelling_hash(self.spellings.hasher(), name);
                self.spellings.insert(spelling);
            }
        }
    }

    /// Finds the entry with this id or alias, or else the one whose id matches it with the longest literal text.
    pub fn find<'n>(&self, name: &'n str) -> Option<ModelMatch<'n>> {
        self.find_exact(name).or_else(|| self.find_pattern(name))
    }

    /// Finds the entry with this id or alias.
    pub fn find_exact<'n>(&self, name: &'n str) -> Option<ModelMatch<'n>> {
        let number = self.exact.get(name)?;
        Some(ModelMatch {
            number: *number,
            matched: None,
        })
    }

    /// Finds the entry whose id matches a name with the longest literal text. Another spelling of an id matches none, nor does one
    /// of a name that an id with more literal text would match: it would be the same model at other prices.
    pub fn find_pattern<'n>(&self, name: &'n str) -> Option<ModelMatch<'n>> {
        let (number, matched) = self.patterns.find(name)?;
        let spelling = spelling_hash(self.spellings.hasher(), name);
        if self.spellings.contains(&spelling) {
            return None;
        }
        let literal = name.len() - matched.len();
        let folded = fold(name);
        let closer = self.folded_patterns.find(&folded);
        if closer.is_some_and(|(_, matched)| folded.len() - matched.len() > literal) {
            return None;
        }
        Some(ModelMatch {
            number,
            matched: Some(matched),
        })
    }
}

/// A name in the spelling that stands for all others.
fn fold(name: &str) -> Cow<'_, str> {
    let has_other_case = name.bytes().any(|byte| byte.is_ascii_uppercase());
    if !has_other_case && name.split('/').eq(telling_parts(name)) {
        return name.into();
    }
    let parts: Vec<String> = telling_parts(name).map(str::to_ascii_lowercase).collect();
    parts.join("/").into()
}

/// The hash of a name without what some upstreams do not tell apart: case, and parts that tell nothing.
fn spelling_hash(state: &RandomState, name: &str) -> u64 {
    let mut hasher = state.build_hasher();
    for part in telling_parts(name) {
        hasher.write_u8(b'/');
        for byte in part.bytes() {
            hasher.write_u8(byte.to_ascii_lowercase());
        }
    }
    hasher.finish()
}

/// The parts of a name between its slashes, without empty ones and without a `models` before the others: to Google's models `models/x`
/// is `x`.
fn telling_parts(name: &str) -> impl Iterator<Item = &str> {
    let mut parts = name.split('/').filter(|part| !part.is_empty()).peekable();
    std::iter::from_fn(move || {
        loop {
            let part = parts.next()?;
            if !part.eq_ignore_ascii_case("models") || parts.peek().is_none() {
                return Some(part);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::ModelNames;

    #[test]
    fn another_spelling_of_a_name_is_served_by_no_star() {
        let mut names = ModelNames::default();
        for (number, name) in ["acme/big-4", "acme/*", "acme/large-*", "*", "models"]
            .into_iter()
            .enumerate()
        {
            names.insert(name, number);
        }
        for (name, number) in [
            ("acme/big-4", Some(0)),
            ("acme/small", Some(1)),
            ("acme/large-1", Some(2)),
            ("other", Some(3)),
            ("models", Some(4)),
            ("acme/models", Some(1)),
            ("models/other", Some(3)),
            ("Acme/BIG-4", None),
            ("acme//big-4", None),
            ("acme/models/big-4", None),
            ("Models/acme/big-4", None),
            ("models/acme/small", None),
            ("acme/models/large-1", None),
        ] {
            let found = names.find(name).map(|found| found.number);
            assert_eq!(found, number, "{name}");
        }
    }
}
