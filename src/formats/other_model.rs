//! Tells whether a field of a request names a model beside the one that the request is for.

use super::multipart::MultipartField;
use crate::json::{DecodeResult, JsonReader};
use crate::model::truncated;

/// Fields of a body that stand for a model: those of routers, of clouds, and of servers with adapters. Some clients send fields of the
/// body inside of the last one, and some servers take them out.
const ROUTED: [&str; 8] = [
    "route",
    "router",
    "preset",
    "engine",
    "engineid",
    "agent",
    "agentid",
    "extrabody",
];

/// Words in the names of such fields: `deployment_id`, `lora_request`, `image_loras`.
const ROUTING_WORDS: [&str; 3] = ["deployment", "adapter", "lora"];

/// Tells whether a field that is not known may name a model: vendors have `models`, `model_name`, `context_window_fallbacks`
/// and more. `is_top`: it is one of the body itself.
pub(super) fn names_model(key: &str, is_top: bool) -> bool {
    // Some parsers take these for a `k` and an `s`.
    let key = key.replace('\u{212a}', "k").replace('\u{17f}', "s");
    let key = key.to_ascii_lowercase();
    let is_switch = key == "allow_fallbacks" || key == "disable_fallbacks";
    key.contains("model")
        || (key.contains("fallback") && !is_switch)
        || (is_top && ROUTED.contains(&key.replace(['_', '-'], "").as_str()))
        || (is_top && ROUTING_WORDS.iter().any(|word| key.contains(word)))
}

/// Finds the first field of a form that names such a model, or has an object with one. `is_known`: fields whose values are
/// text, whatever they look like.
pub(super) fn model_in_form(
    fields: &[MultipartField<'_>],
    is_known: impl Fn(&str) -> bool,
) -> Option<String> {
    let names_other = |field: &&MultipartField<'_>| {
        let mut names = field.names().enumerate();
        let is_other = field.name != "model" && names.any(|(at, name)| names_model(name, at == 0));
        is_other || (!is_known(field.name) && has_model(field.value))
    };
    let found = fields.iter().find(names_other);
    found.map(|field| truncated(field.name).into_owned())
}

/// Tells whether a value is an object or a list with a field that names a model, or may be one for parsers which take more than
/// JSON: `NaN`, numbers such as `01`, other encodings.
fn has_model(value: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(value) else {
        return true;
    };
    if text.contains('\0') {
        return true;
    }
    let text =
        text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
    if !text.starts_with(['{', '[']) {
        return false;
    }
    let (mut reader, mut found) = (JsonReader::new(text), false);
    let read = search_models(&mut reader, &mut found);
    found || read.and_then(|()| reader.end()).is_err()
}

fn search_models(reader: &mut JsonReader<'_>, found: &mut bool) -> DecodeResult {
    match reader.peek() {
        Some(b'{') => reader.object(|reader, key| {
            *found |= names_model(key, false) && reader.peek() != Some(b'n');
            search_models(reader, found)
        }),
        Some(b'[') => reader.array(|reader| search_models(reader, found)),
        _ => reader.skip(),
    }
}

#[cfg(test)]
mod tests {
    use super::{has_model, names_model};

    #[test]
    fn an_object_in_a_form_may_name_a_model() {
        for value in [
            r#"{"model":"a"}"#,
            r#" [{"x":[{"Models":["a"]}]}]"#,
            r#"{"model":"a""#,
            r#"{"a":NaN,"model":"gpt-x"}"#,
            r#"[{"a":01,"model":"gpt-x"}]"#,
            "{model: a}",
            "\u{feff}{'model': 'a'}",
            r#"{"a":1} {"model":"b"}"#,
            "\0{\0}",
            &"[".repeat(1000),
        ] {
            assert!(has_model(value.as_bytes()), "{value}");
        }
        assert!(has_model(b"\xff\xfe{\0}\0"));
        for value in [
            r#"{"model":null}"#,
            "model",
            "",
            r#"["model"]"#,
            "a {model}",
        ] {
            assert!(!has_model(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn names_are_folded_as_lenient_parsers_do() {
        for name in [
            "fallbac\u{212a}s",
            "Models",
            "base_MODEL",
            "pre\u{17f}et",
            "image_loras",
            "lora_request",
            "loraAdapter",
            "adapters",
            "deployment-name",
        ] {
            assert!(names_model(name, true), "{name}");
        }
        for name in ["allow_fallbac\u{212a}s", "moda\u{17f}"] {
            assert!(!names_model(name, true), "{name}");
        }
    }
}
