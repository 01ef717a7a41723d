//! The ids in a request by which an upstream puts in what it keeps: to the upstream all keys are one.

use memchr::{memchr_iter, memmem};

use super::ItemReference;
use crate::model::{ApiError, truncated};

/// Such ids, in the order in which they stand in the body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptIds {
    /// References among the items that the request adds, each of which an item can replace.
    pub references: Vec<ItemReference>,
    /// All others.
    pub mentions: Vec<KeptMention>,
}

/// An id of something that an upstream keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMention {
    pub id: String,
    pub kind: KeptKind,
}

/// What an id is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptKind {
    /// An item that stands in the request by its id alone.
    Item,
    /// The container of a tool, with the files in it.
    ToolContainer,
    /// The container of a whole request.
    Container,
    /// A request to approve a call.
    ApprovalRequest,
    /// The audio of an earlier response.
    Audio,
}

impl KeptIds {
    pub(super) fn mention(&mut self, id: String, kind: KeptKind) {
        self.mentions.push(KeptMention { id, kind });
    }
}

impl KeptMention {
    /// Returns the error for what the key was not given.
    pub fn missing(&self) -> ApiError {
        let (field, what, instead) = match self.kind {
            KeptKind::Item => (
                "input",
                "an item",
                "send all of the item with its output, or leave its `id` out",
            ),
            KeptKind::ToolContainer => (
                "tools",
                "a container",
                r#"send {"type": "auto"} for a new one"#,
            ),
            KeptKind::Container => ("container", "a container", "leave it out for a new one"),
            KeptKind::ApprovalRequest => (
                "input",
                "an approval request",
                "send the request to the model again",
            ),
            KeptKind::Audio => ("messages", "audio", "send its transcript as `content`"),
        };
        let id = truncated(&self.id);
        let message =
            format!("{field}: this key was not given {what} `{id}`, or too long ago: {instead}");
        ApiError::invalid(message).at(field)
    }
}

/// Tells whether a string that ends in one of these words may stand in a body, in any case and with any escapes.
pub(super) fn may_have_word(body: &[u8], words: &[&str]) -> bool {
    let is_end = |quote: usize| {
        words.iter().any(|word| {
            let start = quote.checked_sub(word.len());
            start.is_some_and(|start| body[start..quote].eq_ignore_ascii_case(word.as_bytes()))
        })
    };
    memchr_iter(b'"', body).any(is_end) || has_escaped_letter(body)
}

/// Tells whether an ASCII letter, a digit or a sign between them is written with an escape.
fn has_escaped_letter(body: &[u8]) -> bool {
    let mut escapes = memmem::find_iter(body, br"\u00");
    escapes.any(|at| matches!(body.get(at + 4), Some(b'3'..=b'7')))
}

#[cfg(test)]
mod tests {
    use super::may_have_word;

    #[test]
    fn a_word_is_found_in_any_case_and_with_escapes() {
        for (body, has_word) in [
            (r#"{"id":"x"}"#, true),
            (r#"{"call_ID":"x"}"#, true),
            (r#"{"\u0069d":"x"}"#, true),
            (r#"{"i\u0064":"x"}"#, true),
            (r#"{"ids":"caf\u00e9 id"}"#, true),
            (r#"{"ids":"caf\u00e9 \u4eca"}"#, false),
            (r#"{"a":"id "}"#, false),
            ("\"", false),
            ("d\"", false),
        ] {
            assert_eq!(may_have_word(body.as_bytes(), &["id"]), has_word, "{body}");
        }
    }
}
