//! Citations in an upstream's text blocks. Only those of web pages have a URL, which other formats need.

use crate::formats::decode_event_data;
use crate::json::{Node, RawJson, from_json};
use crate::model::{ApiError, Citation, FieldLocation, Losses, Text};

/// The type of a citation that has a URL.
const WEB_PAGE: &str = "web_search_result_location";

/// Decodes a citation, which covers its whole text block from `start` to `end`. `None`: it has no URL.
pub(super) fn decode_citation<'a>(
    node: Node<'a, '_>,
    start: u64,
    end: u64,
    losses: &mut Losses,
) -> Result<Option<Citation<'a>>, ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        if kind.as_deref() != Some(WEB_PAGE) {
            losses.dropped(FieldLocation::Path("citations".into()));
            return Ok(None);
        }
        for key in ["cited_text", "encrypted_index"] {
            if fields.take(key).is_some() {
                losses.dropped(FieldLocation::Path(key.into()));
            }
        }
        let url = fields.text("url")?;
        Ok(Some(Citation {
            url: fields.need("url", url)?,
            title: fields.text("title")?,
            start,
            end,
        }))
    })
}

from_json! {
    struct RawCitation<'a> {
        "type" required => kind: Text<'a>,
        "url" => url: Option<Text<'a>>,
        "title" => title: Option<Text<'a>>,
    }
}

/// Decodes the URL and the title of a citation in a stream. `None`: it has no URL.
pub(super) fn decode_streamed_citation(raw: RawJson<'_>) -> Option<(String, Option<String>)> {
    let citation: RawCitation<'_> = decode_event_data(raw.get()).ok()?;
    let url = citation.url.filter(|_| citation.kind == WEB_PAGE)?;
    Some((url.into_owned(), citation.title.map(Text::into_owned)))
}
