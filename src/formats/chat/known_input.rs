//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use super::text_input::TEXT_INPUT;
use crate::formats::other_model::find_other_model;
use crate::json::KnownFields;

/// Beside the fields of text those of media, of earlier responses and of settings. With any
/// other field, an upstream may read or do what nobody has counted.
const KNOWN_INPUT: KnownFields = KnownFields {
    top: &[
        "modalities",
        "audio",
        "functions",
        "function_call",
        "web_search_options",
        "moderation",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "include_reasoning",
        "thinking",
        "enable_thinking",
        "thinking_budget",
        "chat_template_kwargs",
        "top_k",
        "min_p",
        "repetition_penalty",
        "random_seed",
        "safe_prompt",
        "transforms",
        "usage",
    ],
    nested: &[
        "image_url",
        "url",
        "detail",
        "input_audio",
        "data",
        "format",
        "file",
        "file_data",
        "filename",
        "file_id",
        "voice",
        "custom",
        "input",
        "grammar",
        "syntax",
        "definition",
        "function_call",
        "images",
        "index",
        "reasoning",
        "prefix",
        "signature",
        "effort",
        "enabled",
        "budget_tokens",
        "exclude",
        "summary",
        "max_tokens",
        "clear_thinking",
        "include",
        "include_obfuscation",
        "search_context_size",
        "user_location",
    ],
    opaque: &[
        "functions",
        "moderation",
        "prompt_cache_options",
        "prompt_cache_breakpoint",
        "chat_template_kwargs",
        "cache_control",
        "annotations",
        "reasoning_details",
        "extra_content",
        "approximate",
    ],
    types: &[
        "image_url",
        "input_audio",
        "file",
        "custom",
        "grammar",
        "enabled",
        "disabled",
        "approximate",
    ],
    base: Some(&TEXT_INPUT),
};

/// Returns the path of the first field that the gateway does not know.
pub(super) fn unknown_field(body: &[u8]) -> Option<String> {
    KNOWN_INPUT.find_unknown(str::from_utf8(body).unwrap_or_default())
}

/// Returns the path of the first field that names another model; a router takes `route` and `preset` for one.
pub(super) fn other_model(body: &[u8]) -> Option<String> {
    find_other_model(body, &KNOWN_INPUT, Some("messages"), &["route", "preset"])
}
