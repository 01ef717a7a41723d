//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use super::text_input::TEXT_INPUT;
use crate::formats::other_model::find_other_model;
use crate::json::KnownFields;

/// Beside the fields of text those of media, of tools and of what is left out of the conversation. With any
/// other field, an upstream may read or do what nobody has counted.
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
        "source",
        "data",
        "media_type",
        "url",
        "file_id",
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
    base: Some(&TEXT_INPUT),
};

/// Returns the path of the first field that the gateway does not know.
pub(super) fn unknown_field(body: &[u8]) -> Option<String> {
    KNOWN_INPUT.find_unknown(str::from_utf8(body).unwrap_or_default())
}

/// Returns the path of the first field that names another model.
pub(super) fn other_model(body: &[u8]) -> Option<String> {
    find_other_model(body, &KNOWN_INPUT, None, &[])
}
