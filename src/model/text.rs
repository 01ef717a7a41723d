//! Text and media, borrowed from the body they arrived in wherever JSON allows it.

use std::borrow::Cow;

use super::{FieldLocation, PartField};

/// Borrowed unless the wire form held escapes.
pub type Text<'a> = Cow<'a, str>;

/// A JSON value carried as it is: a schema, a call's arguments.
pub type Json<'a> = serde_json_borrow::Value<'a>;

#[derive(Debug, Clone, PartialEq)]
pub struct Media<'a> {
    /// As `image/png`; empty when the wire did not say.
    pub mime: Text<'a>,
    pub source: Source<'a>,
    pub name: Option<Text<'a>>,
    pub detail: Option<Detail>,
}

impl Media<'_> {
    /// Where its name stands, if it has one.
    pub fn name_location(&self, place: &FieldLocation) -> Option<FieldLocation> {
        self.name.as_ref()?;
        Some(place.field(match self.source {
            Source::Url(_) => PartField::UrlName,
            _ => PartField::FileName,
        }))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Source<'a> {
    /// Moved as text, never decoded.
    Base64(Text<'a>),
    Url(Text<'a>),
    /// An id in some vendor's file store.
    File(Text<'a>),
    /// A document that is plain text on the wire.
    Plain(Text<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Auto,
    Low,
    High,
    Original,
}

/// `data:image/png;base64,AAAA` → (`image/png`, `AAAA`).
pub fn split_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let head = head.strip_suffix(";base64")?;
    let mime = head.split(';').next().unwrap_or(head);
    Some((mime, data))
}

const LONGEST_REPEATED: usize = 200;

/// Words that a client sent, as a message to it may repeat them.
pub fn truncated(words: &str) -> Text<'_> {
    match words.char_indices().nth(LONGEST_REPEATED) {
        None => Cow::Borrowed(words),
        Some((end, _)) => Cow::Owned(format!("{}…", &words[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::{split_data_url, truncated};

    #[test]
    fn only_long_words_are_shortened() {
        let long = "ä".repeat(200);
        assert_eq!(truncated(&long), long);
        assert_eq!(truncated(&format!("{long}bc")), format!("{long}…"));
    }

    #[test]
    fn data_urls_split_into_type_and_base64() {
        assert_eq!(
            split_data_url("data:image/png;base64,AAAA"),
            Some(("image/png", "AAAA"))
        );
        assert_eq!(
            split_data_url("data:text/plain;charset=utf-8;base64,eA=="),
            Some(("text/plain", "eA=="))
        );
        assert_eq!(split_data_url("data:text/plain,hello"), None);
        assert_eq!(split_data_url("https://example.com/a,b"), None);
    }
}
