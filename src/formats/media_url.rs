//! Media by their address: a URL, or the data themselves.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

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
    /// Written piece by piece: the data may be many megabytes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
