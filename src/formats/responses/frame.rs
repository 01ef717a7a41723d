//! One event of an upstream's stream.

use crate::json::{Present, Raw, readable};
use crate::model::{Json, Text};

readable! {
    /// Most of it stays as it is until an event needs it.
    pub(super) struct Frame<'a> {
        "type" => pub kind: Text<'a>,
        "output_index" => pub output_index: u32,
        "content_index" => pub content_index: u32,
        "summary_index" => pub summary_index: u32,
        "delta" => pub delta: Option<Raw<'a>>,
        "logprobs" => pub logprobs: Option<Raw<'a>>,
        "annotation" => pub annotation: Option<Raw<'a>>,
        "item" => pub item: Option<Raw<'a>>,
        "response" => pub response: Option<Raw<'a>>,
        "error" => pub error: Option<Present>,
    }
}

/// A string, or nothing.
pub(super) fn words(raw: Option<Raw<'_>>) -> Text<'_> {
    raw.and_then(Raw::text).unwrap_or_default()
}

pub(super) fn tree(raw: Option<Raw<'_>>) -> Json<'_> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}
