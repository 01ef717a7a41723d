//! The tables for `generationConfig` and `safetySettings`.

use super::shapes::{ANY_OBJECT, clash, object, optional};
use crate::formats::native::enum_values::{
    ASPECT_RATIOS, HARM_CATEGORIES, HARM_THRESHOLDS, IMAGE_SIZES, MAX_STOP_SEQUENCES,
    MEDIA_RESOLUTIONS, MODALITIES, RESPONSE_MIME_TYPES, TEXT_ENUM, TEXT_PLAIN, THINKING_LEVELS,
};
use crate::formats::native::field_names;
use crate::json::{FieldConflict, ObjectRules, PresentFields, Rule};

const POSITIVE: Rule = Rule::Whole(1, i64::MAX);

pub(super) static GENERATION_CONFIG: ObjectRules = ObjectRules::new(
    &[
        optional(&["temperature"], Rule::Number(0.0, 2.0)),
        optional(field_names::MAX_OUTPUT_TOKENS, POSITIVE),
        optional(field_names::TOP_P, Rule::Number(0.0, 1.0)),
        optional(field_names::TOP_K, Rule::Whole(0, i64::MAX)),
        optional(
            field_names::CANDIDATE_COUNT,
            Rule::Whole(1, u32::MAX as i64),
        ),
        optional(
            field_names::STOP_SEQUENCES,
            Rule::Few(&Rule::Text, MAX_STOP_SEQUENCES),
        ),
        optional(&["seed"], Rule::Whole(i64::MIN, i64::MAX)),
        optional(field_names::PRESENCE_PENALTY, Rule::Number(-2.0, 2.0)),
        optional(field_names::FREQUENCY_PENALTY, Rule::Number(-2.0, 2.0)),
        optional(
            field_names::RESPONSE_MIME_TYPE,
            Rule::Word(RESPONSE_MIME_TYPES),
        ),
        optional(field_names::RESPONSE_SCHEMA, Rule::Object(&ANY_OBJECT)),
        optional(field_names::RESPONSE_JSON_SCHEMA, Rule::Object(&ANY_OBJECT)),
        optional(
            field_names::RESPONSE_MODALITIES,
            Rule::List(&Rule::Word(MODALITIES)),
        ),
        optional(field_names::RESPONSE_LOGPROBS, Rule::Flag),
        optional(&["logprobs"], Rule::Whole(0, 20)),
        optional(field_names::THINKING_CONFIG, Rule::Object(&THINKING_CONFIG)),
        optional(
            field_names::IMAGE_CONFIG,
            Rule::Noted(&Rule::Object(&IMAGE_CONFIG)),
        ),
        optional(field_names::MEDIA_RESOLUTION, Rule::Word(MEDIA_RESOLUTIONS)),
    ],
    |seen| check_schemas(seen).or_else(|| check_logprobs(seen)),
);

fn check_logprobs(seen: &PresentFields) -> Option<FieldConflict> {
    let alone = seen.has("logprobs") && !seen.is_true("responseLogprobs");
    alone.then(|| clash("logprobs", "responseLogprobs to be true beside it"))?
}

fn check_schemas(seen: &PresentFields) -> Option<FieldConflict> {
    let schema = seen.has("responseSchema");
    let json_schema = seen.has("responseJsonSchema");
    match seen.word("responseMimeType").unwrap_or(TEXT_PLAIN) {
        _ if schema && json_schema => clash("responseJsonSchema", "no responseSchema beside it"),
        TEXT_PLAIN if schema => clash("responseSchema", "responseMimeType application/json"),
        TEXT_PLAIN if json_schema => {
            clash("responseJsonSchema", "responseMimeType application/json")
        }
        TEXT_ENUM if !schema && !json_schema => {
            clash("responseSchema", "a schema with the words to choose from")
        }
        _ => None,
    }
}

static THINKING_CONFIG: ObjectRules = ObjectRules::new(
    &[
        optional(field_names::INCLUDE_THOUGHTS, Rule::Flag),
        optional(field_names::THINKING_BUDGET, Rule::Whole(-1, i64::MAX)),
        optional(field_names::THINKING_LEVEL, Rule::Word(THINKING_LEVELS)),
    ],
    |seen| {
        let both = seen.has("thinkingBudget") && seen.has("thinkingLevel");
        both.then(|| clash("thinkingLevel", "no thinkingBudget beside it"))?
    },
);

static IMAGE_CONFIG: ObjectRules = object(&[
    optional(field_names::ASPECT_RATIO, Rule::Word(ASPECT_RATIOS)),
    optional(field_names::IMAGE_SIZE, Rule::Word(IMAGE_SIZES)),
]);

pub(super) static SAFETY_SETTING: ObjectRules = object(&[
    optional(&["category"], Rule::Word(HARM_CATEGORIES)),
    optional(&["threshold"], Rule::Word(HARM_THRESHOLDS)),
]);
