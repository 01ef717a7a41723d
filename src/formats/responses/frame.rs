//! One event of an upstream's stream.

use crate::json::{Present, RawJson, from_json};
use crate::model::{Json, Text};

from_json! {
    /// Most of it stays as it is until an event needs it.
    pub(super) struct Frame<'a> {
        "type" => pub kind: Text<'a>,
        "output_index" => pub output_index: u32,
        "content_index" => pub content_index: u32,
        "summary_index" => pub summary_index: u32,
        "delta" => pub delta: Option<RawJson<'a>>,
        "logprobs" => pub logprobs: Option<RawJson<'a>>,
        "annotation" => pub annotation: Option<RawJson<'a>>,
        "item" => pub item: Option<RawJson<'a>>,
        "response" => pub response: Option<RawJson<'a>>,
        "error" => pub error: Option<Present>,
    }
}

/// A string, or nothing.
pub(super) fn words(raw: Option<RawJson<'_>>) -> Text<'_> {
    raw.and_then(RawJson::text).unwrap_or_default()
}

pub(super) fn tree(raw: Option<RawJson<'_>>) -> Json<'_> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}
