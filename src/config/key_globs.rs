//! The globs of a key, and which entries of `models` they may open.

use globset::{Glob, GlobMatcher};

use super::model_names::ModelNames;
use super::settings::{ModelConfig, ModelOrigin};
use crate::model::NamePattern;

/// The characters that mean something else than themselves in a glob.
const SPECIAL: [char; 5] = ['*', '?', '[', '{', '\\'];

/// A glob of a key.
pub enum KeyGlob {
    /// It has no special characters, and so it is one name.
    Name(String),
    Glob {
        matcher: GlobMatcher,
        /// The text that it begins with.
        literal: String,
    },
}

impl KeyGlob {
    /// `None`: the text is no glob.
    pub fn parse(text: &str) -> Option<KeyGlob> {
        let matcher = Glob::new(text).ok()?.compile_matcher();
        Some(match text.split_once(SPECIAL) {
            None => KeyGlob::Name(text.to_owned()),
            Some((literal, _)) => KeyGlob::Glob {
                matcher,
                literal: literal.to_owned(),
            },
        })
    }

    /// Tells whether a key with this glob can use a model of this name. For a name with a `*` this is a guess that errs
    /// towards yes: both match some name if the beginning of one begins the other.
    pub fn may_match(&self, name: &str) -> bool {
        match (self, NamePattern::parse(name)) {
            (KeyGlob::Name(own), None) => own == name,
            (KeyGlob::Name(own), Some(pattern)) => own.starts_with(pattern.prefix()),
            (KeyGlob::Glob { matcher, .. }, None) => matcher.is_match(name),
            (KeyGlob::Glob { literal, .. }, Some(pattern)) => {
                let prefix = pattern.prefix();
                prefix.starts_with(literal.as_str()) || literal.starts_with(prefix)
            }
        }
    }

    /// The numbers of the models that a key with this glob can use, guessed in the same way.
    pub fn opened(&self, models: &[ModelConfig], names: &ModelNames) -> Vec<usize> {
        match self {
            KeyGlob::Name(name) => match names.find(name) {
                Some(found) => vec![found.number],
                // What upstreams list is not known yet.
                None => {
                    let may_list = |model: &ModelConfig| {
                        let prefix = model.id.trim_end_matches('*');
                        model.origin == ModelOrigin::Discovered && name.starts_with(prefix)
                    };
                    let models = models.iter().enumerate();
                    let opened = models.filter(|(_, model)| may_list(model));
                    opened.map(|(number, _)| number).collect()
                }
            },
            KeyGlob::Glob { .. } => {
                let may_match = |model: &ModelConfig| match NamePattern::parse(&model.id) {
                    None => model.names().any(|name| self.may_match(name)),
                    Some(_) => self.may_match(&model.id),
                };
                let models = models.iter().enumerate();
                let opened = models.filter(|(_, model)| may_match(model));
                opened.map(|(number, _)| number).collect()
            }
        }
    }
}
