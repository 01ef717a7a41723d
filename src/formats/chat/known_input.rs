//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use std::sync::LazyLock;

use super::Chat;
use super::text_input::TEXT_INPUT;
use super::tool_rounds::{CONVERSATION, tool_rounds};
use crate::formats::dearer_setting::USUAL_VALUES;
use crate::formats::extra_thinking::ThinkingSwitch;
use crate::formats::unknown_fields::UNKNOWN_FIELDS;
use crate::formats::{InputInspection, RequestFindings};
use crate::json::{
    FieldIndex, KnownFields, NO_FIELDS, PlacedFields, RawJson, decode_json, from_json,
};

/// Where the parts of a message stand.
const PARTS: &[&str] = &["messages.content"];

/// Beside the fields of text those of media, of earlier responses and of settings. With any
/// other field, an upstream may read or do what nobody has counted. The same holds for media beside the places of `placed`: in
/// a part of another type, beside other media in one, or where the format has none. The other names hold at any depth.
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
        "speed",
        "inference_geo",
    ],
    nested: &[
        "detail",
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
    searched: &["tool_choice"],
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
    placed: &[
        PlacedFields {
            names: &["image_url", "input_audio", "file"],
            kind: Some("image_url"),
            at: &["messages.content", "messages.images"],
        },
        PlacedFields {
            names: &["image_url", "input_audio", "file"],
            kind: Some("input_audio"),
            at: PARTS,
        },
        PlacedFields {
            names: &["image_url", "input_audio", "file"],
            kind: Some("file"),
            at: PARTS,
        },
        PlacedFields {
            names: &["url"],
            kind: None,
            at: &["messages.content.image_url", "messages.images.image_url"],
        },
        PlacedFields {
            names: &["data"],
            kind: None,
            at: &["messages.content.input_audio"],
        },
        PlacedFields {
            names: &["file_data", "file_id"],
            kind: None,
            at: &["messages.content.file"],
        },
        PlacedFields {
            names: &["format"],
            kind: None,
            at: &["messages.content.input_audio", "audio", "tools.custom"],
        },
        PlacedFields {
            names: &["filename"],
            kind: None,
            at: &["messages.content.file"],
        },
    ],
    wanted: &[
        &["service_tier"],
        &["speed"],
        &["inference_geo"],
        &["enable_thinking"],
        &["thinking_budget"],
        &["chat_template_kwargs"],
        &["reasoning"],
        &["thinking"],
        &["prediction"],
    ],
    turns: Some("messages"),
    prompting: &["tools", "functions", "response_format"],
    referring: &["prediction"],
    conversation: Some(&CONVERSATION),
    base: Some(&TEXT_INPUT),
    ..NO_FIELDS
};

/// What the wanted fields behind those of the service switch on.
const THINKING: [ThinkingSwitch; 5] = [
    ThinkingSwitch::Flag,
    ThinkingSwitch::Budget,
    ThinkingSwitch::Settings {
        budget: "thinking_budget",
    },
    ThinkingSwitch::Limit {
        budget: "max_tokens",
    },
    ThinkingSwitch::Typed {
        budget: "budget_tokens",
    },
];

static FIELDS: LazyLock<FieldIndex> =
    LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, UNKNOWN_FIELDS));

impl InputInspection for Chat {
    fn findings(&self, body: &[u8]) -> RequestFindings {
        let findings = RequestFindings::with_thinking(body, &FIELDS, USUAL_VALUES, &THINKING)
            .with_tool_rounds(body, tool_rounds)
            .with_modalities(body);
        let predicted_bytes = match findings.has_only_text {
            true => 0,
            false => predicted_bytes(str::from_utf8(body).unwrap_or_default()),
        };
        RequestFindings {
            predicted_bytes,
            ..findings
        }
    }
}

from_json! {
    struct PredictedRequest<'a> {
        "prediction" => prediction: Option<RawJson<'a>>,
    }
}

/// The length of the predicted output. One that stands there twice may be any part of the body.
fn predicted_bytes(text: &str) -> u64 {
    let length = match decode_json::<PredictedRequest<'_>>(text) {
        Ok(request) => request
            .prediction
            .map_or(0, |predicted| predicted.get().len()),
        Err(_) => text.len(),
    };
    length as u64
}

#[cfg(test)]
mod tests {
    use crate::model::Format;

    #[test]
    fn the_length_of_a_predicted_output_is_known() {
        for (fields, length) in [
            (r#""stop":"a""#, 0),
            (r#""unknown":1"#, 0),
            (r#""prediction":null"#, 0),
            (r#""prediction":{"type":"content","content":"abc"}"#, 34),
            (r#""prediction":"abc""#, 5),
            (r#""predi\u0063tion":"abc""#, 5),
            (r#""prediction":1,"prediction":2"#, 43),
        ] {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            let findings = Format::Chat.codec().findings(body.as_bytes());
            assert_eq!(findings.predicted_bytes, length, "{fields}");
        }
    }
}
