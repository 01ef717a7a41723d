//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::Responses;
use super::image_generation::max_images_per_call;
use super::text_input::TEXT_INPUT;
use super::tool_rounds::{CONVERSATION, tool_rounds};
use crate::formats::dearer_setting::USUAL_VALUES;
use crate::formats::kept_ids::may_have_word;
use crate::formats::unknown_fields::UNKNOWN_FIELDS;
use crate::formats::{InputInspection, RequestFindings};
use crate::json::{
    FieldIndex, KnownFields, NO_FIELDS, PlacedFields, Present, RawJson, decode_json, from_json,
};

/// Where parts with media stand: in messages, and in the output of tools.
const PARTS: &[&str] = &["input.content", "input.output"];

/// The fields of such a part, which may have one of them.
const MEDIA: &[&str] = &[
    "input.content.image_url",
    "input.content.file_data",
    "input.content.file_url",
    "input.content.file_id",
    "input.output.image_url",
    "input.output.file_data",
    "input.output.file_url",
    "input.output.file_id",
];

/// Beside the fields of text those of media, of earlier responses and of settings. With any
/// other field, an upstream may read or do what nobody has counted. The same holds for media beside the places of `placed`: in
/// a part of another type, beside other media in one, or where the format has none. The other names hold at any depth.
const KNOWN_INPUT: KnownFields = KnownFields {
    top: &[
        "background",
        "client_metadata",
        "moderation",
        "prompt_cache_options",
        "prompt_cache_retention",
        "speed",
        "inference_geo",
    ],
    nested: &[
        "id",
        "detail",
        "refusal",
        "phase",
        "namespace",
        "tools",
        "input",
        "custom",
        "syntax",
        "definition",
        "context",
        "defer_loading",
    ],
    opaque: &[
        "client_metadata",
        "moderation",
        "prompt_cache_options",
        "prompt_cache_breakpoint",
        "annotations",
        "logprobs",
        "output_schema",
    ],
    searched: &["tool_choice"],
    types: &[
        "input_image",
        "input_file",
        "custom",
        "grammar",
        "custom_tool_call",
        "custom_tool_call_output",
        "refusal",
        "namespace",
    ],
    placed: &[
        PlacedFields {
            names: &["image_url", "file_data", "file_url", "file_id"],
            kind: Some("input_image"),
            at: PARTS,
        },
        PlacedFields {
            names: &["image_url", "file_data", "file_url", "file_id"],
            kind: Some("input_file"),
            at: PARTS,
        },
        PlacedFields {
            names: &["filename"],
            kind: Some("input_file"),
            at: PARTS,
        },
    ],
    wanted: &[
        &["service_tier"],
        &["speed"],
        &["inference_geo"],
        &["tools"],
        &["max_tool_calls"],
        &["context_management"],
    ],
    media: &[MEDIA],
    stored: Some(("reasoning", "encrypted_content")),
    referring: &[
        "previous_response_id",
        "conversation",
        "context_management",
        "prompt",
    ],
    prompting: &["tools", "text"],
    conversation: Some(&CONVERSATION),
    base: Some(&TEXT_INPUT),
    ..NO_FIELDS
};

static FIELDS: LazyLock<FieldIndex> =
    LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, UNKNOWN_FIELDS));

impl InputInspection for Responses {
    /// Returns what decides access and money. Reasoning that the upstream keeps counts as a field that is not known.
    fn findings(&self, body: &[u8]) -> RequestFindings {
        let findings = RequestFindings::of(body, &FIELDS, USUAL_VALUES);
        let may_keep_tools = findings.may_start_tools && is_kept(body);
        let mut findings = findings.with_tool_rounds(body, tool_rounds);
        findings.may_keep_tools = may_keep_tools;
        if findings.tool_rounds > 0 || findings.may_start_tools {
            findings.may_make_images =
                may_have_word(body, &["image_generation"]) || has_stored_prompt(body);
        }
        if findings.may_make_images {
            findings.images_per_call = max_images_per_call(body);
        }
        if !findings.has_only_text {
            findings.may_compact = may_compact(str::from_utf8(body).unwrap_or_default());
        }
        if findings.has_stored_item && findings.unknown_field.is_none() {
            let text = str::from_utf8(body).unwrap_or_default();
            findings.unknown_field = find_stored_reasoning(text);
        }
        findings
    }
}

from_json! {
    struct StoredPrompt {
        "prompt" => prompt: Option<Present>,
    }
}

/// Tells whether a request refers to a prompt of the upstream, whose tools are not known, or cannot be read.
fn has_stored_prompt(body: &[u8]) -> bool {
    let request = str::from_utf8(body).map(decode_json::<StoredPrompt>);
    !matches!(request, Ok(Ok(StoredPrompt { prompt: None })))
}

from_json! {
    struct KeptConversation<'a> {
        "store" => store: Option<RawJson<'a>>,
    }
}

/// Tells whether an upstream may keep the conversation, which it does unless it is told not to.
fn is_kept(body: &[u8]) -> bool {
    let request = str::from_utf8(body).map(decode_json::<KeptConversation<'_>>);
    let Ok(Ok(request)) = request else {
        return true;
    };
    request.store.is_none_or(|store| store.get() != "false")
}

from_json! {
    struct ManagedContext<'a> {
        "context_management" => context_management: Option<RawJson<'a>>,
    }
}

/// Tells whether a request asks to compact the conversation, or cannot be read.
fn may_compact(text: &str) -> bool {
    let Ok(request) = decode_json::<ManagedContext<'_>>(text) else {
        return true;
    };
    let list = |managed: RawJson<'_>| decode_json::<Vec<Present>>(managed.get());
    let managed = request.context_management.map(list);
    managed.is_some_and(|managed| !managed.is_ok_and(|list| list.is_empty()))
}

from_json! {
    struct StoredInput<'a> {
        "input" => input: Option<RawJson<'a>>,
    }
}

from_json! {
    struct StoredItem<'a> {
        "type" => kind: Option<Cow<'a, str>>,
        "id" => id: Option<Present>,
        "content" => content: Option<Vec<StoredContent<'a>>>,
        "encrypted_content" => encrypted_content: Option<Cow<'a, str>>,
    }
}

from_json! {
    struct StoredContent<'a> {
        "text" => text: Option<Cow<'a, str>>,
    }
}

/// Finds an item of reasoning that is there by its id alone: the upstream puts in what it has stored.
fn find_stored_reasoning(text: &str) -> Option<String> {
    let body: StoredInput<'_> = decode_json(text).ok()?;
    let input = body.input.filter(|input| input.get().starts_with('['))?;
    let items: Vec<StoredItem<'_>> = decode_json(input.get()).ok()?;
    let is_stored = |item: &StoredItem<'_>| {
        let is_reasoning = item.kind.as_deref() == Some("reasoning");
        let is_written =
            |text: &Option<Cow<'_, str>>| text.as_ref().is_some_and(|text| !text.is_empty());
        let mut content = item.content.iter().flatten();
        let is_here =
            is_written(&item.encrypted_content) || content.any(|part| is_written(&part.text));
        is_reasoning && item.id.is_some() && !is_here
    };
    let at = items.iter().position(is_stored)?;
    Some(format!("input[{at}].id"))
}

#[cfg(test)]
mod tests {
    use crate::model::Format;

    #[test]
    fn a_hosted_tool_in_the_conversation_may_name_a_model() {
        let hosted = r#"{"type":"x:image","parameters":{"model":"other"}}"#;
        let own = r#"{"type":"function","name":"f","parameters":{"properties":{"model":{}}}}"#;
        for (item, model) in [
            (
                format!(r#"{{"type":"additional_tools","tools":[{own},{hosted}]}}"#),
                Some("input[0].tools[1].parameters.model"),
            ),
            (
                format!(r#"{{"tools":{hosted},"type":"additional_tools"}}"#),
                Some("input[0].tools.parameters.model"),
            ),
            (
                format!(r#"{{"type":"additional_tools","tools":[{own}]}}"#),
                None,
            ),
            (
                format!(r#"{{"type":"mcp_list_tools","tools":[{hosted}]}}"#),
                None,
            ),
        ] {
            let body = format!(r#"{{"model":"m","input":[{item}]}}"#);
            let findings = Format::Responses.codec().findings(body.as_bytes());
            assert_eq!(findings.other_model.as_deref(), model, "{item}");
        }
    }

    #[test]
    fn tools_of_the_conversation_are_kept_with_it() {
        let hosted = r#"{"type":"additional_tools","tools":[{"type":"web_search"}]}"#;
        let own = r#"{"type":"additional_tools","tools":[{"type":"function","name":"f"}]}"#;
        for (item, fields, may_keep_tools) in [
            (hosted, "", true),
            (hosted, r#","store":true"#, true),
            (hosted, r#","store":null"#, true),
            (hosted, r#","store":false"#, false),
            (hosted, r#","store":false,"store":true"#, true),
            (hosted, r#","Store":false"#, true),
            (own, "", false),
            (r#""Hi.""#, r#","tools":[{"type":"web_search"}]"#, false),
        ] {
            let body = format!(r#"{{"model":"m","input":[{item}]{fields}}}"#);
            let findings = Format::Responses.codec().findings(body.as_bytes());
            assert_eq!(findings.may_keep_tools, may_keep_tools, "{body}");
        }
    }

    #[test]
    fn the_upstreams_own_tool_may_make_images() {
        for (fields, may_make_images) in [
            (r#""tools":[{"type":"image_generation"}]"#, true),
            (r#""tools":[{"type":"image\u005fgeneration"}]"#, true),
            (r#""prompt":{"id":"pmpt_1"}"#, true),
            (
                r#""input":[{"type":"additional_tools","tools":[{"type":"image_generation"}]}]"#,
                true,
            ),
            (
                r#""input":[{"role":"user","content":"a","tools":[{"type":"image_generation"}]}]"#,
                true,
            ),
            (r#""tools":[{"type":"web_search"}]"#, false),
            (r#""tools":[{"type":"function","name":"prompt"}]"#, false),
            (r#""tools":[{"type":"web_search"}],"prompt":null"#, false),
            (
                r#""tools":[{"type":"web_search"}],"pr\u006fmpt":{"id":"pmpt_1"}"#,
                true,
            ),
            (
                r#""tools":[{"type":"web_search","description":"a prompt"}]"#,
                false,
            ),
        ] {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            let findings = Format::Responses.codec().findings(body.as_bytes());
            assert_eq!(findings.may_make_images, may_make_images, "{fields}");
        }
    }

    #[test]
    fn a_request_that_may_be_compacted_is_found() {
        for (management, may_compact) in [
            ("null", false),
            ("[]", false),
            (r#"[{"type":"compaction","compact_threshold":900}]"#, true),
            (r#"{"type":"compaction"}"#, true),
            (r#"[],"context_management":[]"#, true),
        ] {
            let body = format!(r#"{{"context_management":{management},"model":"m"}}"#);
            let findings = Format::Responses.codec().findings(body.as_bytes());
            assert_eq!(findings.may_compact, may_compact, "{management}");
        }
    }
}
