//! The config that is in force.

use serde::Serialize;

use crate::config::Problem;
use crate::runtime::Snapshot;

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct LoadedConfigView {
    /// Its settings line by line, without comments, and with `[redacted]` in the place of secrets.
    pub lines: Vec<ConfigLineView>,
    /// Why the file was refused when it was read last; empty: it was not.
    pub problems: Vec<ConfigNoteView>,
    /// How many warnings the lines have.
    pub warnings: usize,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ConfigLineView {
    /// Where the file has it.
    pub line: u64,
    pub text: String,
    /// What is valid in this line but seldom intended.
    pub warnings: Vec<ConfigNoteView>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ConfigNoteView {
    pub line: u64,
    pub column: u64,
    pub message: String,
}

impl From<&Problem> for ConfigNoteView {
    fn from(problem: &Problem) -> ConfigNoteView {
        ConfigNoteView {
            line: problem.line,
            column: problem.column,
            message: problem.message.clone(),
        }
    }
}

impl LoadedConfigView {
    pub fn new(snapshot: &Snapshot, refused: &[Problem]) -> LoadedConfigView {
        let shown = snapshot.shown.iter();
        let mut lines: Vec<ConfigLineView> = shown
            .map(|shown| ConfigLineView {
                line: shown.line,
                text: shown.text.clone(),
                warnings: Vec::new(),
            })
            .collect();
        for warning in &snapshot.warnings {
            // At its own line, else at the last one before it.
            let at = lines.iter().rposition(|line| line.line <= warning.line);
            if let Some(line) = lines.get_mut(at.unwrap_or_default()) {
                line.warnings.push(warning.into());
            }
        }
        LoadedConfigView {
            lines,
            problems: refused.iter().map(ConfigNoteView::from).collect(),
            warnings: snapshot.warnings.len(),
        }
    }
}
