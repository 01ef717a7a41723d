//! The content blocks that are encoded, in requests, responses and streams.

use std::borrow::Cow;

use serde::Serialize;

use super::calls::ToolInput;

/// One content block; in a stream also the `content_block` that a block starts with.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentBlock<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: BlockSource<'a>,
    },
    Document {
        source: BlockSource<'a>,
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        signature: Cow<'a, str>,
    },
    RedactedThinking {
        data: Cow<'a, str>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: ToolInput<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Option<MessagesContent<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The `source` of an image or a document.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BlockSource<'a> {
    Base64 {
        media_type: &'a str,
        data: Cow<'a, str>,
    },
    Text {
        media_type: &'static str,
        data: Cow<'a, str>,
    },
    Url {
        url: &'a str,
    },
}

/// The `content` of a turn or a tool result: a single text as a string, anything else as a list of
/// blocks.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MessagesContent<'a> {
    Text(&'a str),
    Blocks(Vec<ContentBlock<'a>>),
}

impl<'a> MessagesContent<'a> {
    /// Wraps blocks; `None` if there are none.
    pub(super) fn of(blocks: Vec<ContentBlock<'a>>) -> Option<MessagesContent<'a>> {
        match blocks.as_slice() {
            [] => None,
            [ContentBlock::Text { text }] => Some(MessagesContent::Text(text)),
            _ => Some(MessagesContent::Blocks(blocks)),
        }
    }
}
