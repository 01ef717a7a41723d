//! One event of an upstream's stream.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::model::{Json, Text};

/// Most of it stays as it is until an event needs it. Strings are spelled as `Cow`: under
/// another name for it they would not be borrowed.
#[derive(Deserialize)]
pub(super) struct Frame<'a> {
    #[serde(borrow, default)]
    pub r#type: Cow<'a, str>,
    #[serde(default)]
    pub output_index: u32,
    #[serde(default)]
    pub content_index: u32,
    #[serde(default)]
    pub summary_index: u32,
    #[serde(borrow)]
    pub delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    pub annotation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub response: Option<&'a RawValue>,
    pub error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Words<'a>(#[serde(borrow)] Cow<'a, str>);

/// A string, or nothing.
pub(super) fn words(raw: Option<&RawValue>) -> Text<'_> {
    let words = raw.and_then(|raw| serde_json::from_str::<Words<'_>>(raw.get()).ok());
    words.map(|words| words.0).unwrap_or_default()
}

pub(super) fn tree(raw: Option<&RawValue>) -> Json<'_> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}
