//! A mistake in the config and where it stands, shown as `FILE:LINE:COL: message`.

use std::fmt;

/// Line and column in characters, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: u64,
    pub column: u64,
}

impl Place {
    pub const START: Place = Place { line: 1, column: 1 };

    /// Right behind the last character of a text.
    pub fn end_of(text: &str) -> Place {
        let last_line = text.rsplit('\n').next().unwrap_or_default();
        Place {
            line: text.matches('\n').count() as u64 + 1,
            column: last_line.chars().count() as u64 + 1,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    pub line: u64,
    pub column: u64,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Problem {
            file,
            line,
            column,
            message,
        } = self;
        write!(formatter, "{file}:{line}:{column}: {message}")
    }
}

/// What has been found so far, in the order it was found.
#[derive(Default)]
pub struct Problems(Vec<(Place, String)>);

impl Problems {
    pub fn add(&mut self, place: Place, message: impl Into<String>) {
        self.0.push((place, message.into()));
    }

    /// All of them, from the top of the file to its end.
    pub fn finish(mut self, file: &str) -> Vec<Problem> {
        self.0.sort();
        self.0
            .into_iter()
            .map(|(place, message)| Problem {
                file: file.to_owned(),
                line: place.line,
                column: place.column,
                message,
            })
            .collect()
    }
}
