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
    FieldIndex, JsonReader, KnownFields, NO_FIELDS, PlacedFields, RawJson, decode_json, from_json,
};
use crate::model::truncated;

/// Where the parts of a message stand.
const PARTS: &[&str] = &["messages.content"];

/// Such parts, and what assistants have made.
const MEDIA: &[&str] = &[
    "messages.content.image_url",
    "messages.content.input_audio",
    "messages.content.file",
    "messages.images",
];

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
    media: &[MEDIA],
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
        if findings.has_only_text {
            return findings;
        }
        let text = str::from_utf8(body).unwrap_or_default();
        RequestFindings {
            predicted_bytes: predicted_bytes(text),
            unknown_field: findings.unknown_field.or_else(|| template_setting(text)),
            ..findings
        }
    }
}

from_json! {
    struct TemplatedRequest<'a> {
        "chat_template_kwargs" => settings: Option<RawJson<'a>>,
    }
}

/// Settings of templates that add no more to a prompt than some words. Templates have others that are switches too.
const TEMPLATE_SETTINGS: [&str; 3] = ["thinking_budget", "reasoning_effort", "date_string"];

/// Finds a setting of the template of an upstream that may add more to the prompt than the body has, such as a whole template.
fn template_setting(text: &str) -> Option<String> {
    let request = decode_json::<TemplatedRequest<'_>>(text).ok()?;
    let settings = request.settings?;
    let mut found = None;
    let read = JsonReader::new(settings.get()).object(|reader, key| {
        let is_switch = matches!(reader.peek(), Some(b't' | b'f' | b'n'));
        let is_setting =
            TEMPLATE_SETTINGS.contains(&key) && !matches!(reader.peek(), Some(b'{' | b'['));
        if !is_switch && !is_setting {
            found = Some(format!("chat_template_kwargs.{}", truncated(key)));
        }
        reader.skip()
    });
    match read {
        Ok(()) => found,
        Err(_) => Some("chat_template_kwargs".to_owned()),
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
    fn a_template_of_the_client_is_not_known() {
        for (settings, unknown) in [
            (
                r#"{"enable_thinking":false,"thinking":true,"any_switch":null}"#,
                None,
            ),
            (r#"{"thinking_budget":9,"reasoning_effort":"low"}"#, None),
            (
                r#"{"thinking":true,"chat_template":"{{a}}"}"#,
                Some("chat_template_kwargs.chat_template"),
            ),
            (
                r#"{"\u0063hat_template":"{{a}}"}"#,
                Some("chat_template_kwargs.chat_template"),
            ),
            (
                r#"{"documents":[]}"#,
                Some("chat_template_kwargs.documents"),
            ),
            (r#"{"repeat":9999}"#, Some("chat_template_kwargs.repeat")),
            (
                r#"{"date_string":["a"]}"#,
                Some("chat_template_kwargs.date_string"),
            ),
            ("[1]", Some("chat_template_kwargs")),
            ("null", None),
        ] {
            let body = format!(r#"{{"model":"m","chat_template_kwargs":{settings}}}"#);
            let findings = Format::Chat.codec().findings(body.as_bytes());
            assert_eq!(findings.unknown_field.as_deref(), unknown, "{settings}");
        }
    }

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
