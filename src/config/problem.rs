//! A problem or a warning about the config and its position, shown as `FILE:LINE:COL: message`.

use std::fmt;

/// Line and column in characters, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

impl Position {
    pub const START: Position = Position { line: 1, column: 1 };

    /// The position behind the last character of a text.
    pub fn end_of(text: &str) -> Position {
        let last_line = text.rsplit('\n').next().unwrap_or_default();
        Position {
            line: text.matches('\n').count() as u64 + 1,
            column: last_line.chars().count() as u64 + 1,
        }
    }
}

/// A problem refuses the config; a warning is about settings that are valid but seldom intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Problem,
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    pub line: u64,
    pub column: u64,
    pub severity: Severity,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Problem {
            file,
            line,
            column,
            severity,
            message,
        } = self;
        let severity = match severity {
            Severity::Problem => "",
            Severity::Warning => "warning: ",
        };
        write!(formatter, "{file}:{line}:{column}: {severity}{message}")
    }
}

/// The problems found so far.
#[derive(Default)]
pub struct Problems(Vec<(Position, String)>);

impl Problems {
    pub fn add(&mut self, position: Position, message: impl Into<String>) {
        self.0.push((position, message.into()));
    }

    /// Adds a problem if there is one.
    pub fn add_some(&mut self, position: Position, message: Option<String>) {
        if let Some(message) = message {
            self.add(position, message);
        }
    }

    /// All of them, from the top of the file to its end.
    pub fn finish(mut self, file: &str, severity: Severity) -> Vec<Problem> {
        self.0.sort();
        self.0
            .into_iter()
            .map(|(position, message)| Problem {
                file: file.to_owned(),
                line: position.line,
                column: position.column,
                severity,
                message,
            })
            .collect()
    }
}
