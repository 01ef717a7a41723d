//! The tables for `tools` and `toolConfig`.

use super::shapes::{ANY_OBJECT, clash, object, optional, required};
use crate::formats::native::enum_values::FUNCTION_CALLING_MODES;
use crate::formats::native::field_names::{self, FieldNames};
use crate::json::{Field, ObjectRules, Rule};

/// Tools whose names hold the vendor's: an upstream may use another prefix.
const GOOGLE_SEARCH: Field = vendor_tool(field_names::GOOGLE_SEARCH);
const GOOGLE_SEARCH_RETRIEVAL: Field = vendor_tool(field_names::GOOGLE_SEARCH_RETRIEVAL);
const GOOGLE_MAPS: Field = vendor_tool(field_names::GOOGLE_MAPS);

static TOOL_OPTIONS: Rule = Rule::Object(&ANY_OBJECT);

const fn vendor_tool(names: FieldNames) -> Field {
    optional(names, Rule::Noted(&TOOL_OPTIONS))
}

pub(super) static VENDOR_TOOLS: ObjectRules =
    object(&[GOOGLE_SEARCH, GOOGLE_SEARCH_RETRIEVAL, GOOGLE_MAPS]);

pub(super) static TOOL: ObjectRules = object(&[
    GOOGLE_SEARCH,
    GOOGLE_SEARCH_RETRIEVAL,
    GOOGLE_MAPS,
    optional(
        field_names::FUNCTION_DECLARATIONS,
        Rule::List(&Rule::Object(&FUNCTION_DECLARATION)),
    ),
    optional(field_names::CODE_EXECUTION, Rule::Object(&ANY_OBJECT)),
]);

static FUNCTION_DECLARATION: ObjectRules = ObjectRules::new(
    &[
        required(
            &["name"],
            Rule::Form(
                is_function_name,
                "up to 128 letters, digits, underscores, dots, colons and dashes",
            ),
        ),
        optional(&["description"], Rule::Text),
        optional(&["parameters"], Rule::Object(&ANY_OBJECT)),
        optional(
            field_names::PARAMETERS_JSON_SCHEMA,
            Rule::Object(&ANY_OBJECT),
        ),
    ],
    |seen| {
        let both = seen.has("parameters") && seen.has("parametersJsonSchema");
        both.then(|| clash("parametersJsonSchema", "no parameters beside it"))?
    },
);

fn is_function_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(legal)
}

pub(super) static TOOL_CONFIG: ObjectRules = object(&[
    optional(
        field_names::FUNCTION_CALLING_CONFIG,
        Rule::Object(&FUNCTION_CALLING_CONFIG),
    ),
    optional(
        field_names::RETRIEVAL_CONFIG,
        Rule::Object(&RETRIEVAL_CONFIG),
    ),
]);

static FUNCTION_CALLING_CONFIG: ObjectRules = object(&[
    optional(&["mode"], Rule::Word(FUNCTION_CALLING_MODES)),
    optional(field_names::ALLOWED_FUNCTION_NAMES, Rule::List(&Rule::Text)),
]);

static RETRIEVAL_CONFIG: ObjectRules =
    object(&[optional(field_names::LAT_LNG, Rule::Object(&LAT_LNG))]);

static LAT_LNG: ObjectRules = object(&[
    optional(&["latitude"], Rule::Number(-90.0, 90.0)),
    optional(&["longitude"], Rule::Number(-180.0, 180.0)),
]);
