//! The `annotations` of a message: citations of web pages.

use serde::Serialize;

use super::text::non_empty;
use crate::json::from_json;
use crate::model::{Citation, Text};

from_json! {
    /// One entry of `annotations` in a response or a chunk.
    pub(super) struct CompletionAnnotation<'a> {
        "url_citation" => pub(super) url_citation: Option<CompletionUrlCitation<'a>>,
    }
}

from_json! {
    pub(super) struct CompletionUrlCitation<'a> {
        "url" => pub(super) url: Option<Text<'a>>,
        "title" => pub(super) title: Option<Text<'a>>,
        "start_index" => pub(super) start_index: Option<u64>,
        "end_index" => pub(super) end_index: Option<u64>,
    }
}

/// Decodes a citation; `None` for annotations of another type.
pub(super) fn decode_annotation(annotation: CompletionAnnotation<'_>) -> Option<Citation<'_>> {
    let cited = annotation.url_citation?;
    Some(Citation {
        url: cited.url?,
        title: non_empty(cited.title),
        start: cited.start_index.unwrap_or(0),
        end: cited.end_index.unwrap_or(0),
    })
}

/// One encoded entry of `annotations`.
#[derive(Serialize)]
pub(super) struct ChatAnnotation<'a> {
    r#type: &'static str,
    url_citation: ChatUrlCitation<'a>,
}

#[derive(Serialize)]
struct ChatUrlCitation<'a> {
    end_index: u64,
    start_index: u64,
    title: &'a str,
    url: &'a str,
}

impl<'a> ChatAnnotation<'a> {
    /// Encodes a citation.
    pub(super) fn new(citation: &'a Citation<'_>) -> ChatAnnotation<'a> {
        ChatAnnotation {
            r#type: "url_citation",
            url_citation: ChatUrlCitation {
                end_index: citation.end,
                start_index: citation.start,
                title: citation.title.as_deref().unwrap_or_default(),
                url: &citation.url,
            },
        }
    }
}
