//! The content blocks that are encoded, in requests, responses and streams.

use serde::Serialize;

use super::calls::ToolInput;
use crate::model::Text;

/// One content block; in a stream also the `content_block` that a block starts with.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentBlock<'a> {
    Text {
        text: Text<'a>,
    },
    Image {
        source: BlockSource<'a>,
    },
    Document {
        source: BlockSource<'a>,
        title: Option<&'a str>,
    },
    Thinking {
        thinking: Text<'a>,
        signature: Text<'a>,
    },
    RedactedThinking {
        data: Text<'a>,
    },
    ToolUse {
        id: Text<'a>,
        name: Text<'a>,
        input: ToolInput<'a>,
    },
    ToolResult {
        tool_use_id: Text<'a>,
        content: Option<MessagesContent<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The `delta` of a `content_block_delta`.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum ContentDelta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: Text<'a> },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: Text<'a> },
    #[serde(rename = "signature_delta")]
    Signature { signature: Text<'a> },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: Text<'a> },
}

/// The `source` of an image or a document.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BlockSource<'a> {
    Base64 {
        media_type: &'a str,
        data: Text<'a>,
    },
    Text {
        media_type: &'static str,
        data: Text<'a>,
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
    Text(Text<'a>),
    Blocks(Vec<ContentBlock<'a>>),
}

impl<'a> MessagesContent<'a> {
    /// Wraps blocks; `None` if there are none.
    pub(super) fn of(mut blocks: Vec<ContentBlock<'a>>) -> Option<MessagesContent<'a>> {
        match blocks.as_mut_slice() {
            [] => None,
            [ContentBlock::Text { text }] => Some(MessagesContent::Text(std::mem::take(text))),
            _ => Some(MessagesContent::Blocks(blocks)),
        }
    }
}
