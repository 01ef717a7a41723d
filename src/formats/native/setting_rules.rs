//! The part of the table that is about settings: how the reply is made, which calls and which
//! harm are allowed in it.

use super::field_names;
use super::rules::{ANYTHING, clash, field, shape};
use crate::json::{FieldConflict, ObjectRules, PresentFields, Rule};

pub(super) const MODES: &[&str] = &["AUTO", "ANY", "NONE", "VALIDATED"];
pub(super) const LEVELS: &[&str] = &["MINIMAL", "LOW", "MEDIUM", "HIGH"];
pub(super) const MODALITIES: &[&str] = &["TEXT", "IMAGE", "AUDIO"];
pub(super) const PLAIN: &str = "text/plain";
pub(super) const JSON: &str = "application/json";
pub(super) const ENUM: &str = "text/x.enum";
pub(super) const KINDS: &[&str] = &[PLAIN, JSON, ENUM];

const CATEGORIES: &[&str] = &[
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
    "HARM_CATEGORY_CIVIC_INTEGRITY",
    "HARM_CATEGORY_JAILBREAK",
    "HARM_CATEGORY_IMAGE_HARASSMENT",
    "HARM_CATEGORY_IMAGE_HATE",
    "HARM_CATEGORY_IMAGE_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_IMAGE_DANGEROUS_CONTENT",
];
const THRESHOLDS: &[&str] = &[
    "BLOCK_NONE",
    "BLOCK_ONLY_HIGH",
    "BLOCK_MEDIUM_AND_ABOVE",
    "BLOCK_LOW_AND_ABOVE",
    "OFF",
];
pub(super) const ASPECT_RATIOS: &[&str] = &[
    "1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9", "1:4", "4:1", "1:8",
    "8:1",
];
pub(super) const IMAGE_SIZES: &[&str] = &["1K", "2K", "4K"];
const RESOLUTIONS: &[&str] = &[
    "MEDIA_RESOLUTION_LOW",
    "MEDIA_RESOLUTION_MEDIUM",
    "MEDIA_RESOLUTION_HIGH",
];

const MOST_STOPS: usize = 5;
/// Something that cannot be asked for zero times.
const COUNT: Rule = Rule::Whole(1, i64::MAX);

pub(super) static GENERATION_CONFIG: ObjectRules = ObjectRules::new(
    &[
        field(&["temperature"], Rule::Number(0.0, 2.0)),
        field(field_names::MAX_OUTPUT_TOKENS, COUNT),
        field(field_names::TOP_P, Rule::Number(0.0, 1.0)),
        field(field_names::TOP_K, Rule::Whole(0, i64::MAX)),
        field(
            field_names::CANDIDATE_COUNT,
            Rule::Whole(1, u32::MAX as i64),
        ),
        field(
            field_names::STOP_SEQUENCES,
            Rule::Few(&Rule::Text, MOST_STOPS),
        ),
        field(&["seed"], Rule::Whole(i64::MIN, i64::MAX)),
        field(field_names::PRESENCE_PENALTY, Rule::Number(-2.0, 2.0)),
        field(field_names::FREQUENCY_PENALTY, Rule::Number(-2.0, 2.0)),
        field(field_names::RESPONSE_MIME_TYPE, Rule::Word(KINDS)),
        field(field_names::RESPONSE_SCHEMA, Rule::Object(&ANYTHING)),
        field(field_names::RESPONSE_JSON_SCHEMA, Rule::Object(&ANYTHING)),
        field(
            field_names::RESPONSE_MODALITIES,
            Rule::List(&Rule::Word(MODALITIES)),
        ),
        field(field_names::RESPONSE_LOGPROBS, Rule::Flag),
        field(&["logprobs"], Rule::Whole(0, 20)),
        field(field_names::THINKING_CONFIG, Rule::Object(&THINKING)),
        field(
            field_names::IMAGE_CONFIG,
            Rule::Noted(&Rule::Object(&IMAGE)),
        ),
        field(field_names::MEDIA_RESOLUTION, Rule::Word(RESOLUTIONS)),
    ],
    |seen| schemas(seen).or_else(|| logprobs(seen)),
);

fn logprobs(seen: &PresentFields) -> Option<FieldConflict> {
    let alone = seen.has("logprobs") && !seen.is_true("responseLogprobs");
    alone.then(|| clash("logprobs", "responseLogprobs to be true beside it"))?
}

fn schemas(seen: &PresentFields) -> Option<FieldConflict> {
    let schema = seen.has("responseSchema");
    let exact = seen.has("responseJsonSchema");
    match seen.word("responseMimeType").unwrap_or(PLAIN) {
        _ if schema && exact => clash("responseJsonSchema", "no responseSchema beside it"),
        PLAIN if schema => clash("responseSchema", "responseMimeType application/json"),
        PLAIN if exact => clash("responseJsonSchema", "responseMimeType application/json"),
        ENUM if !schema && !exact => {
            clash("responseSchema", "a schema with the words to choose from")
        }
        _ => None,
    }
}

static THINKING: ObjectRules = ObjectRules::new(
    &[
        field(field_names::INCLUDE_THOUGHTS, Rule::Flag),
        field(field_names::THINKING_BUDGET, Rule::Whole(-1, i64::MAX)),
        field(field_names::THINKING_LEVEL, Rule::Word(LEVELS)),
    ],
    |seen| {
        let both = seen.has("thinkingBudget") && seen.has("thinkingLevel");
        both.then(|| clash("thinkingLevel", "no thinkingBudget beside it"))?
    },
);

static IMAGE: ObjectRules = shape(&[
    field(field_names::ASPECT_RATIO, Rule::Word(ASPECT_RATIOS)),
    field(field_names::IMAGE_SIZE, Rule::Word(IMAGE_SIZES)),
]);

pub(super) static SAFETY_SETTING: ObjectRules = shape(&[
    field(&["category"], Rule::Word(CATEGORIES)),
    field(&["threshold"], Rule::Word(THRESHOLDS)),
]);

pub(super) static CONFIG_OF_TOOLS: ObjectRules = shape(&[
    field(field_names::FUNCTION_CALLING, Rule::Object(&CALLING)),
    field(field_names::RETRIEVAL_CONFIG, Rule::Object(&RETRIEVAL)),
]);

static CALLING: ObjectRules = shape(&[
    field(&["mode"], Rule::Word(MODES)),
    field(field_names::ALLOWED_NAMES, Rule::List(&Rule::Text)),
]);

static RETRIEVAL: ObjectRules = shape(&[field(field_names::LAT_LNG, Rule::Object(&PLACE))]);

static PLACE: ObjectRules = shape(&[
    field(&["latitude"], Rule::Number(-90.0, 90.0)),
    field(&["longitude"], Rule::Number(-180.0, 180.0)),
]);
