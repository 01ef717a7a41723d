//! The names under `capabilities` of a model, what each may be set to and what it says.

use super::table::{ConfigField, ConfigReader, ConfigTable};
use super::values::{self, either};
use crate::model::ImageSize;

enum Takes {
    Switch,
    OneOf(&'static [&'static str]),
    SomeOf(&'static [&'static str]),
    /// Widths and heights in pixels, like `1024x1536`.
    Sizes,
    /// Two whole numbers, like `128-32768`.
    Range,
    /// Names of fields.
    Names,
}

struct Capability {
    name: &'static str,
    takes: Takes,
    meaning: &'static str,
}

const fn capability(name: &'static str, takes: Takes, meaning: &'static str) -> Capability {
    Capability {
        name,
        takes,
        meaning,
    }
}

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const CAPABILITIES: [Capability; 24] = [
    capability(
        "messages_version",
        Takes::OneOf(&["2026-10-21", "2023-06-01"]),
        "which version of the messages format the model speaks",
    ),
    capability(
        "messages_mid_system",
        Takes::Switch,
        "whether system turns may stand between the others",
    ),
    capability(
        "messages_thinking",
        Takes::OneOf(&["adaptive", "budget"]),
        "how reasoning is requested",
    ),
    capability(
        "messages_sampling",
        Takes::Switch,
        "whether temperature, top_p and top_k are taken",
    ),
    capability(
        "messages_prefill",
        Takes::Switch,
        "whether the last turn may be the model's own",
    ),
    capability(
        "messages_web_search",
        Takes::OneOf(&["20250305", "20260209", "20260318", "none"]),
        "which version of the web search tool the model has",
    ),
    capability(
        "native_requires_signature",
        Takes::Switch,
        "whether calls sent back need their signature",
    ),
    capability(
        "native_thinking",
        Takes::OneOf(&["level", "budget"]),
        "how reasoning is requested",
    ),
    capability(
        "native_thinking_range",
        Takes::Range,
        "the fewest and the most tokens of a thinking budget",
    ),
    capability(
        "native_function_response_parts",
        Takes::Switch,
        "whether tool results may hold media",
    ),
    capability(
        "native_image_output",
        Takes::Switch,
        "whether the model answers with images",
    ),
    capability(
        "image_sizes",
        Takes::Sizes,
        "the sizes that its images may have",
    ),
    capability(
        "chat_max_field",
        Takes::OneOf(&["max_completion_tokens", "max_tokens"]),
        "the field that limits the output",
    ),
    capability(
        "chat_system_role",
        Takes::OneOf(&["system", "developer"]),
        "the role that instructions have",
    ),
    capability(
        "chat_returns_reasoning",
        Takes::Switch,
        "whether earlier reasoning must be sent back",
    ),
    capability(
        "chat_think_tags",
        Takes::Switch,
        "whether reasoning comes in the text, between <think> and </think>",
    ),
    capability(
        "chat_unsupported",
        Takes::Names,
        "the fields of a request that the upstream refuses",
    ),
    capability(
        "responses_encrypted_reasoning",
        Takes::Switch,
        "whether reasoning comes with its ciphertext",
    ),
    capability(
        "responses_keeps_state",
        Takes::Switch,
        "whether the upstream itself stores responses for previous_response_id",
    ),
    capability(
        "sampling",
        Takes::Switch,
        "whether temperature, top_p, stop and penalties are taken",
    ),
    capability(
        "search",
        Takes::OneOf(&["always", "alone", "never"]),
        "whether the upstream's search can be used, and beside other tools",
    ),
    capability(
        "parallel_switch",
        Takes::Switch,
        "whether parallel calls can be turned off",
    ),
    capability(
        "efforts",
        Takes::SomeOf(EFFORTS),
        "the efforts the model knows",
    ),
    capability(
        "embedding_input_type",
        Takes::OneOf(&[
            "search_document",
            "search_query",
            "classification",
            "clustering",
        ]),
        "what its vectors are for",
    ),
];

/// Every capability that is set, in the order of the table above; lists joined by commas.
pub fn parse(reader: &mut ConfigReader, mut table: ConfigTable) -> Vec<(String, String)> {
    let mut set = Vec::new();
    for capability in &CAPABILITIES {
        let Some(field) = table.take(capability.name) else {
            continue;
        };
        if let Some(value) = setting(reader, capability, field) {
            set.push((capability.name.to_owned(), value));
        }
    }
    reader.finish(table);
    set
}

fn setting(
    reader: &mut ConfigReader,
    capability: &Capability,
    field: ConfigField,
) -> Option<String> {
    match capability.takes {
        Takes::Switch => {
            let parse = |text: &str| {
                let expected = |expected| format!("{expected} ({})", capability.meaning);
                values::switch(text).map_err(expected)
            };
            reader
                .value(field, parse)
                .map(|is_on| is_on.value.to_string())
        }
        Takes::OneOf(words) => word(reader, capability, words, field),
        Takes::Range => range(reader, capability, field),
        Takes::Sizes => {
            let items = reader.filled_list(field).into_iter();
            let sizes = items.filter_map(|item| size(reader, capability, item));
            Some(sizes.collect::<Vec<_>>().join(","))
        }
        Takes::Names => {
            let mut names = Vec::new();
            for item in reader.filled_list(field) {
                let name = reader.value(item, |text| field_name(text, &names));
                names.extend(name.map(|name| name.value));
            }
            Some(names.join(","))
        }
        Takes::SomeOf(words) => {
            let items = reader.filled_list(field).into_iter();
            let chosen = items.filter_map(|item| word(reader, capability, words, item));
            Some(chosen.collect::<Vec<_>>().join(","))
        }
    }
}

/// The fields that limit the output, without which an upstream generates more than was asked for.
const LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// The name of a field, or of one in every message, behind other names.
fn field_name(text: &str, earlier: &[String]) -> values::Parsed<String> {
    let is_limit = |name: &str| LIMITS.contains(&name);
    if is_limit(text) && earlier.iter().any(|name| is_limit(name) && name != text) {
        return Err("one of max_completion_tokens and max_tokens at most: the output is limited by the other".to_owned());
    }
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !name.is_empty() && name.bytes().all(is_plain)
    };
    is_name(text.strip_prefix("messages.").unwrap_or(text))
        .then(|| text.to_owned())
        .ok_or_else(|| "the name of a field such as logit_bias or messages.name".to_owned())
}

fn word(
    reader: &mut ConfigReader,
    capability: &Capability,
    words: &[&str],
    field: ConfigField,
) -> Option<String> {
    let parse = |text: &str| {
        let expected = || format!("{} ({})", either(words), capability.meaning);
        let known = words.contains(&text);
        known.then(|| text.to_owned()).ok_or_else(expected)
    };
    reader.value(field, parse).map(|located| located.value)
}

fn range(reader: &mut ConfigReader, capability: &Capability, field: ConfigField) -> Option<String> {
    let parse = |text: &str| {
        let numbers = text.split_once('-').and_then(|(fewest, most)| {
            Some((fewest.parse::<u64>().ok()?, most.parse::<u64>().ok()?))
        });
        let is_range = numbers.is_some_and(|(fewest, most)| fewest <= most);
        let expected = || format!("two numbers like 128-32768 ({})", capability.meaning);
        is_range.then(|| text.to_owned()).ok_or_else(expected)
    };
    reader.value(field, parse).map(|located| located.value)
}

fn size(reader: &mut ConfigReader, capability: &Capability, field: ConfigField) -> Option<String> {
    let parse = |text: &str| {
        let known = ImageSize::of_pixels(text).is_some();
        let expected = || format!("pixels like 1024x1536 ({})", capability.meaning);
        known.then(|| text.to_owned()).ok_or_else(expected)
    };
    reader.value(field, parse).map(|located| located.value)
}
