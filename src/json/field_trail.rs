//! The path of the place where a reader has stopped, put together while the calls return.

use super::reader::DecodeResult;
use crate::model::truncated;

/// The steps to the place, the last one first. Nothing is kept until the reader stops.
#[derive(Default)]
pub(super) struct FieldTrail {
    steps: Vec<String>,
}

impl FieldTrail {
    /// Passes on how the value of a field was read.
    #[inline]
    pub(super) fn in_field(&mut self, key: &str, read: DecodeResult) -> DecodeResult {
        if read.is_err() {
            self.steps.push(format!(".{}", truncated(key)));
        }
        read
    }

    /// Passes on how an item of a list was read.
    #[inline]
    pub(super) fn in_item(&mut self, index: usize, read: DecodeResult) -> DecodeResult {
        if read.is_err() {
            self.steps.push(format!("[{index}]"));
        }
        read
    }

    pub(super) fn into_path(self) -> String {
        let path: String = self.steps.into_iter().rev().collect();
        path.strip_prefix('.').unwrap_or(&path).to_owned()
    }
}
