//! Citations in an upstream's text blocks. Only those of web pages have a URL, which other formats need.

use crate::json::{Present, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Losses, Text};

from_json! {
    struct RawCitation<'a> {
        "type" required => kind: Text<'a>,
        "url" => url: Option<Text<'a>>,
        "title" => title: Option<Text<'a>>,
        "cited_text" => cited_text: Option<Present>,
        "encrypted_index" => encrypted_index: Option<Present>,
    }
}

/// Decodes the URL and the title of a citation, which covers its whole text block. `None`: it has no URL.
pub(super) fn decode_citation<'a>(
    raw: RawJson<'a>,
    losses: &mut Losses,
) -> Option<(Text<'a>, Option<Text<'a>>)> {
    let mut dropped = |field: &'static str| losses.dropped(FieldLocation::Path(field.into()));
    let citation: RawCitation<'_> = decode_json(raw.get()).unwrap_or_default();
    let Some(url) = citation
        .url
        .filter(|_| citation.kind == "web_search_result_location")
    else {
        dropped("citations");
        return None;
    };
    if citation.cited_text.is_some() {
        dropped("cited_text");
    }
    if citation.encrypted_index.is_some() {
        dropped("encrypted_index");
    }
    Some((url, citation.title))
}
