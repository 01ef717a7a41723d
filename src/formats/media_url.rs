//! The URL of media: a link, or a `data:` URL with the content.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// A URL of media, encoded without a copy of the content.
#[derive(Debug)]
pub(super) enum MediaUrl<'a> {
    Url(&'a str),
    Data { mime: &'a str, data: Cow<'a, str> },
}

impl fmt::Display for MediaUrl<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MediaUrl::Url(url) => out.write_str(url),
            MediaUrl::Data { mime, data } => write!(out, "data:{mime};base64,{data}"),
        }
    }
}

impl Serialize for MediaUrl<'_> {
    /// Serialises without joining the parts: the data may be many megabytes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
