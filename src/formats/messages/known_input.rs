//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use std::sync::LazyLock;

use super::Messages;
use super::text_input::TEXT_INPUT;
use super::tool_references::repeated_tool_bytes;
use super::tool_rounds::{CONVERSATION, tool_rounds};
use crate::formats::extra_thinking::ThinkingSwitch;
use crate::formats::unknown_fields::UNKNOWN_FIELDS;
use crate::formats::{InputInspection, RequestFindings};
use crate::json::{
    FieldIndex, KnownFields, NO_FIELDS, PlacedFields, RawJson, decode_json, from_json,
};
use crate::model::Text;

/// Where blocks with media stand, those of tool results too, and the sources of these.
const BLOCKS: &[&str] = &["messages.content", "messages.content.content"];
const SOURCES: &[&str] = &["messages.content.source", "messages.content.content.source"];

/// The values of `speed`, `inference_geo` and `service_tier` that do not change the price of a request.
const USUAL: [&[&str]; 3] = [
    &["standard"],
    &["global"],
    &["standard_only", "auto", "standard"],
];

/// Beside the fields of text those of media, of tools and of what is left out of the conversation. With any
/// other field, an upstream may read or do what nobody has counted. The same holds for media beside the places of `placed`: in
/// a block of another type, beside other media in one, or where the format has none. The other names hold at any depth.
const KNOWN_INPUT: KnownFields = KnownFields {
    top: &[
        "context_management",
        "speed",
        "inference_geo",
        "user_profile_id",
        "diagnostics",
        "container",
        "mcp_servers",
        "anthropic_version",
        "anthropic_beta",
    ],
    nested: &[
        "title",
        "context",
        "display",
        "strict",
        "defer_loading",
        "eager_input_streaming",
        "allowed_callers",
        "tool_name",
        "toolset_name",
        "caller",
        "tool",
        "edits",
        "keep",
        "trigger",
        "value",
        "clear_at_least",
        "clear_tool_inputs",
        "exclude_tools",
        "previous_message_id",
    ],
    opaque: &["citations", "input_examples", "transformations"],
    types: &[
        "image",
        "document",
        "base64",
        "url",
        "content",
        "file",
        "redacted_thinking",
        "tool_reference",
        "tool_addition",
        "tool_removal",
        "between_tools",
        "clear_thinking_20251015",
        "clear_tool_uses_20250919",
        "input_tokens",
        "tool_uses",
        "thinking_turns",
        "all",
        "direct",
    ],
    placed: &[
        PlacedFields {
            names: &["source"],
            kind: Some("image"),
            at: BLOCKS,
        },
        PlacedFields {
            names: &["source"],
            kind: Some("document"),
            at: BLOCKS,
        },
        PlacedFields {
            names: &["data", "url", "file_id"],
            kind: Some("base64"),
            at: SOURCES,
        },
        PlacedFields {
            names: &["data", "url", "file_id"],
            kind: Some("text"),
            at: SOURCES,
        },
        PlacedFields {
            names: &["data", "url", "file_id"],
            kind: Some("url"),
            at: SOURCES,
        },
        PlacedFields {
            names: &["data", "url", "file_id"],
            kind: Some("file"),
            at: SOURCES,
        },
        PlacedFields {
            names: &["data"],
            kind: Some("redacted_thinking"),
            at: BLOCKS,
        },
        PlacedFields {
            names: &["media_type"],
            kind: Some("base64"),
            at: SOURCES,
        },
        PlacedFields {
            names: &["media_type"],
            kind: Some("text"),
            at: SOURCES,
        },
    ],
    wanted: &[
        &["speed"],
        &["inference_geo"],
        &["service_tier"],
        &["thinking"],
        &["max_tokens"],
        &["tools"],
        &["mcp_servers"],
        &["context_management"],
    ],
    media: &[SOURCES],
    prompting: &["tools", "output_config"],
    conversation: Some(&CONVERSATION),
    base: Some(&TEXT_INPUT),
    ..NO_FIELDS
};

/// What the wanted fields behind those of the service ask for. With tools, thinking may go on between the calls, beyond the limit
/// of the output.
const THINKING: [ThinkingSwitch; 2] = [
    ThinkingSwitch::Within {
        budget: "budget_tokens",
    },
    ThinkingSwitch::OutputLimit,
];

static FIELDS: LazyLock<FieldIndex> =
    LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, UNKNOWN_FIELDS));

impl InputInspection for Messages {
    fn findings(&self, body: &[u8]) -> RequestFindings {
        let findings = RequestFindings::with_thinking(body, &FIELDS, &USUAL, &THINKING);
        let repeated_bytes = match findings.has_only_text {
            true => 0,
            false => repeated_tool_bytes(body),
        };
        RequestFindings {
            may_compact: may_compact(str::from_utf8(body).unwrap_or_default()),
            repeated_bytes,
            ..findings.with_tool_rounds(body, tool_rounds)
        }
    }
}

from_json! {
    struct ManagedRequest<'a> {
        "context_management" => context_management: Option<RawJson<'a>>,
    }
}

from_json! {
    struct ContextManagement<'a> {
        "edits" => edits: Option<Vec<ContextEdit<'a>>>,
    }
}

from_json! {
    struct ContextEdit<'a> {
        "type" => kind: Text<'a>,
    }
}

/// Tells whether a request asks for more than to leave parts of the conversation out, or cannot be read.
fn may_compact(text: &str) -> bool {
    let Ok(request) = decode_json::<ManagedRequest<'_>>(text) else {
        return true;
    };
    let Some(managed) = request.context_management else {
        return false;
    };
    let managed: Result<ContextManagement<'_>, _> = decode_json(managed.get());
    let leaves_out = |edit: &ContextEdit<'_>| edit.kind.starts_with("clear_");
    !managed.is_ok_and(|managed| managed.edits.iter().flatten().all(leaves_out))
}

#[cfg(test)]
mod tests {
    use crate::model::Format;

    #[test]
    fn a_request_that_may_be_compacted_is_found() {
        for (management, may_compact) in [
            ("null", false),
            ("{}", false),
            (r#"{"edits":null}"#, false),
            (r#"{"edits":[{"type":"clear_tool_uses_20250919"}]}"#, false),
            (
                r#"{"edits":[{"type":"clear_thinking_20251015"},{"type":"\u0063ompact_20260112"}]}"#,
                true,
            ),
            (r#"{"edits":[{}]}"#, true),
            (r#"{"edits":{"type":"compact_20260112"}}"#, true),
            (r#"{"edits":[],"edits":[]}"#, true),
        ] {
            let body = format!(r#"{{"context_management":{management},"model":"m"}}"#);
            let findings = Format::Messages.codec().findings(body.as_bytes());
            assert_eq!(findings.may_compact, may_compact, "{management}");
        }
    }
}
