//! Text and media, borrowed from the body they arrived in wherever JSON allows it.

use std::borrow::Cow;

use super::{FieldLocation, PartField};

/// Text that is borrowed from the body unless the JSON string has escapes.
pub type Text<'a> = Cow<'a, str>;

/// The text as its own copy, where it is borrowed.
pub fn own<'b>(text: Text<'_>) -> Text<'b> {
    Text::Owned(text.into_owned())
}

/// The same text, without a copy.
pub fn borrowed<'b>(text: &'b Text<'_>) -> Text<'b> {
    Text::Borrowed(text)
}

/// Appends to a text; the first piece is not copied.
pub fn append<'a>(whole: &mut Text<'a>, more: Text<'a>) {
    if whole.is_empty() {
        *whole = more;
    } else {
        whole.to_mut().push_str(&more);
    }
}

/// A JSON value passed on unchanged: a schema, the arguments of a call.
pub type Json<'a> = serde_json_borrow::Value<'a>;

#[derive(Debug, Clone, PartialEq)]
pub struct Media<'a> {
    /// A MIME type such as `image/png`; empty where the wire has none.
    pub mime: Text<'a>,
    pub source: Source<'a>,
    pub name: Option<Text<'a>>,
    pub detail: Option<Detail>,
}

impl Media<'_> {
    /// The same media, without a copy of their data.
    pub fn borrowed(&self) -> Media<'_> {
        Media {
            mime: borrowed(&self.mime),
            source: match &self.source {
                Source::Base64(text) => Source::Base64(borrowed(text)),
                Source::Url(text) => Source::Url(borrowed(text)),
                Source::File(text) => Source::File(borrowed(text)),
                Source::Plain(text) => Source::Plain(borrowed(text)),
            },
            name: self.name.as_ref().map(borrowed),
            detail: self.detail,
        }
    }

    /// The location of the file name, if the media has one.
    pub fn name_location(&self, location: &FieldLocation) -> Option<FieldLocation> {
        self.name.as_ref()?;
        Some(location.field(match self.source {
            Source::Url(_) => PartField::UrlName,
            _ => PartField::FileName,
        }))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Source<'a> {
    /// Base64 text that is passed on without decoding.
    Base64(Text<'a>),
    Url(Text<'a>),
    /// A file id of the vendor's Files API.
    File(Text<'a>),
    /// A plain-text document.
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

const MAX_QUOTED_CHARS: usize = 200;

/// Cuts a client's text for use in an error message.
pub fn truncated(text: &str) -> Text<'_> {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::{split_data_url, truncated};

    #[test]
    fn only_long_texts_are_truncated() {
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
