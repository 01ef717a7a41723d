//! The condition under which an upstream of a model serves a request: a header whose value matches a glob.

use globset::{Glob, GlobMatcher};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::HeaderCondition;

/// A condition that is ready to be tried.
pub struct Condition {
    pub name: HeaderName,
    value: GlobMatcher,
}

impl Condition {
    /// `None`: the config was not checked.
    pub(super) fn new(settings: &HeaderCondition) -> Option<Condition> {
        Some(Condition {
            name: settings.name.parse().ok()?,
            value: Glob::new(&settings.value).ok()?.compile_matcher(),
        })
    }

    /// Tells whether one of the values of the header matches.
    pub(super) fn matches(&self, headers: &HeaderMap) -> bool {
        let matches = |value: &HeaderValue| {
            let text = value.to_str();
            text.is_ok_and(|text| self.value.is_match(text))
        };
        headers.get_all(&self.name).iter().any(matches)
    }
}
