//! The path of a JSON value in its document, for error messages.

use std::fmt;

use crate::model::{ApiError, truncated};

/// The path of a value, such as `messages[3].content`; it allocates only when it is printed, with long names cut.
#[derive(Debug, Clone, Copy)]
pub enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Key(Path::Root, key) => out.write_str(&truncated(key)),
            Path::Key(parent, key) => write!(out, "{parent}.{}", truncated(key)),
            Path::Index(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

impl Path<'_> {
    /// Tells whether the path is this one but for the numbers of items.
    pub(super) fn is_at(&self, path: &str) -> bool {
        let mut names = path.rsplit('.').filter(|name| !name.is_empty());
        let mut at = self;
        loop {
            match at {
                Path::Root => return names.next().is_none(),
                Path::Index(parent, _) => at = parent,
                Path::Key(parent, key) if names.next() == Some(key) => at = parent,
                Path::Key(..) => return false,
            }
        }
    }

    /// The error for a value of the wrong type at this path.
    #[cold]
    pub fn wrong(&self, expected: &str) -> ApiError {
        ApiError::invalid(format!("{self}: expected {expected}")).at(self.to_string())
    }

    /// The error for a text that is none of those expected.
    #[cold]
    pub fn wrong_text(&self, expected: &str, got: &str) -> ApiError {
        self.wrong(&format!("{expected}, got {:?}", truncated(got)))
    }
}
