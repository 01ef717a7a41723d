//! The ids in a request by which an upstream puts in what it keeps: to the upstream all keys are one.

use memchr::{memchr, memchr_iter, memmem};

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
    /// A conversation, under the id of its last response.
    Thread,
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
            KeptKind::Thread => (
                "thread",
                "a response",
                "send the whole conversation as `messages`",
            ),
        };
        let id = truncated(&self.id);
        let message =
            format!("{field}: this key was not given {what} `{id}`, or too long ago: {instead}");
        ApiError::invalid(message).at(field)
    }
}

/// Tells whether a string that ends in one of these words of small letters may stand in a body, in any case and with any
/// escapes.
pub(super) fn may_have_word(body: &[u8], words: &[&str]) -> bool {
    let ends_in = |word: &str, quote: usize| {
        let start = quote.checked_sub(word.len());
        start.is_some_and(|start| body[start..quote].eq_ignore_ascii_case(word.as_bytes()))
    };
    let has_word = |word: &&str| {
        looks_like_having(body, word) && memchr_iter(b'"', body).any(|quote| ends_in(word, quote))
    };
    words.iter().any(has_word) || (memchr(b'\\', body).is_some() && has_escaped_letter(body))
}

/// Tells whether the outer letters of a word, in any case, and a quote behind it stand somewhere in their places.
fn looks_like_having(body: &[u8], word: &str) -> bool {
    /// What a small letter has and its capital lacks.
    const SMALL: u8 = b'a' ^ b'A';
    let [first, .., last] = word.as_bytes() else {
        return true;
    };
    let lasts = body.get(word.len() - 1..).unwrap_or_default();
    let quotes = body.get(word.len()..).unwrap_or_default();
    // No early exit: only so the compiler vectorizes the loop.
    let places = body.iter().zip(lasts).zip(quotes);
    let found = places.fold(0, |found, ((one, other), quote)| {
        let is_there = (one | SMALL == *first) & (other | SMALL == *last) & (*quote == b'"');
        found | u8::from(is_there)
    });
    found != 0
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

    #[test]
    fn any_of_several_words_is_found_at_any_place() {
        let words = ["id", "container"];
        for length in [0, 1, 15, 16, 17, 63, 64, 65, 500] {
            let before = " ".repeat(length);
            for end in ["", r#":"x"}"#] {
                for word in ["id", "ID", "container", "conTAINer", "x_container"] {
                    let body = format!(r#"{{{before}"{word}"{end}"#);
                    assert!(may_have_word(body.as_bytes(), &words), "{body}");
                }
                for word in ["user", "contains", "cAr", "di", "con tainer", "container "] {
                    let body = format!(r#"{{{before}"{word}"{end}"#);
                    assert!(!may_have_word(body.as_bytes(), &words), "{body}");
                }
            }
        }
    }
}
