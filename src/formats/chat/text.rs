//! Optional text fields of messages: empty ones, and ones that are joined.

use crate::model::{Text, append};

/// Takes a text that is present and not empty.
pub(super) fn non_empty(text: Option<Text<'_>>) -> Option<Text<'_>> {
    text.filter(|text| !text.is_empty())
}

/// Appends to a text field without a separator, as clients join the deltas of a stream.
pub(super) fn append_text<'a>(whole: &mut Option<Text<'a>>, more: Option<Text<'a>>) {
    if let Some(more) = more {
        append(whole.get_or_insert_default(), more);
    }
}
