//! What the surface promises to refuse: words and numbers out of range, media that nobody can
//! fetch, fields that cannot stand together. One table for every request, wherever it goes.

use std::ops::Range;

use super::field_names::{self, Spellings};
use super::setting_rules::{CONFIG_OF_TOOLS, GENERATION_CONFIG, SAFETY_SETTING};
use crate::formats::base64_text;
use crate::formats::public_address::is_public_https;
use crate::json::{
    Field, FieldConflict, Fields, NotedField, ObjectRules, PresentFields, Rule, validate,
};
use crate::model::ApiError;

pub(super) const ROLES: &[&str] = &["user", "model"];

/// What stands for the vendor in the names of its tools, in a client's words.
const VENDORS: [&str; 2] = ["vendor", "google"];

/// Holds a request against the table. Tells where the names of the vendor's own tools hold a word
/// that stands for the vendor.
pub(super) fn hold(body: &[u8], text_only: bool) -> Result<Vec<Range<usize>>, ApiError> {
    let noted = validate(body, &REQUEST)?;
    refuse_pictures(&noted, text_only)?;
    Ok(vendors(body, noted))
}

/// The same of a request that is read for another format.
pub(super) fn read(body: &[u8], text_only: bool) -> Result<Fields<'_, 'static>, ApiError> {
    // What breaks a rule before it stops to be JSON is told of the rule.
    let fields = Fields::of_body(body)
        .map_err(|api_error| hold(body, text_only).err().unwrap_or(api_error))?;
    refuse_pictures(&fields.hold(&REQUEST)?, text_only)?;
    Ok(fields)
}

fn refuse_pictures(noted: &[NotedField], text_only: bool) -> Result<(), ApiError> {
    let is_picture = |noted: &&NotedField| noted.field == field_names::IMAGE_CONFIG[0];
    match noted.iter().find(is_picture) {
        Some(NotedField { path, .. }) if text_only => {
            let message = format!("{path}: the model has no image output");
            Err(ApiError::invalid(message).at(path.clone()))
        }
        _ => Ok(()),
    }
}

/// The same of a request that is held against nothing: any JSON object will do.
pub(super) fn skim(body: &[u8]) -> Result<Vec<Range<usize>>, ApiError> {
    validate(body, &ANY_REQUEST).map(|noted| vendors(body, noted))
}

fn vendors(body: &[u8], noted: Vec<NotedField>) -> Vec<Range<usize>> {
    let vendor = |name: Range<usize>| {
        let text = &body[name.clone()];
        let word = VENDORS
            .iter()
            .find(|word| text.starts_with(word.as_bytes()))?;
        Some(name.start..name.start + word.len())
    };
    let names = noted.into_iter().filter_map(|noted| noted.name);
    names.filter_map(vendor).collect()
}

pub(super) const fn field(spellings: Spellings, rule: Rule) -> Field {
    Field {
        spellings,
        rule,
        required: false,
    }
}

const fn required(spellings: Spellings, rule: Rule) -> Field {
    Field {
        spellings,
        rule,
        required: true,
    }
}

pub(super) const fn shape(fields: &'static [Field]) -> ObjectRules {
    ObjectRules::new(fields, |_| None)
}

pub(super) fn clash(field: &'static str, expected: &'static str) -> Option<FieldConflict> {
    Some(FieldConflict {
        field: Some(field),
        expected,
    })
}

pub(super) static ANYTHING: ObjectRules = shape(&[]);

static ANY_REQUEST: ObjectRules = shape(&[
    field(field_names::WRAPPED, Rule::Object(&ANY_REQUEST)),
    field(&["tools"], Rule::List(&Rule::Object(&ANY_TOOL))),
]);

/// What most requests hold stands first: it is looked for in this order.
static REQUEST: ObjectRules = shape(&[
    field(&["contents"], Rule::List(&Rule::Object(&CONTENT))),
    field(field_names::GENERATION, Rule::Object(&GENERATION_CONFIG)),
    field(field_names::SYSTEM, Rule::Object(&SYSTEM_CONTENT)),
    field(&["tools"], Rule::List(&Rule::Object(&TOOL))),
    field(field_names::TOOL_CONFIG, Rule::Object(&CONFIG_OF_TOOLS)),
    field(
        field_names::SAFETY,
        Rule::List(&Rule::Object(&SAFETY_SETTING)),
    ),
    field(field_names::WRAPPED, Rule::Object(&REQUEST)),
    field(
        field_names::CACHED,
        Rule::Form(is_cached_content, "a name like cachedContents/{id}"),
    ),
]);

/// A name of something that was cached, and no path of anything else.
fn is_cached_content(name: &str) -> bool {
    let id = name.strip_prefix("cachedContents/").unwrap_or_default();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !id.is_empty() && id.bytes().all(legal)
}

static CONTENT: ObjectRules = shape(&[
    field(&["role"], Rule::Word(ROLES)),
    field(&["parts"], Rule::List(&Rule::Object(&PART))),
]);

static PART: ObjectRules = ObjectRules::new(
    &[
        field(&["text"], Rule::Text),
        field(field_names::INLINE, Rule::Object(&INLINE_DATA)),
        field(field_names::FILE, Rule::Object(&FILE_DATA)),
        field(field_names::CALL, Rule::Object(&FUNCTION_CALL)),
        field(field_names::RESPONSE, Rule::Object(&FUNCTION_RESPONSE)),
        field(field_names::CODE, Rule::Object(&ANYTHING)),
        field(field_names::CODE_RESULT, Rule::Object(&ANYTHING)),
    ],
    one_payload,
);

fn one_payload(seen: &PresentFields) -> Option<FieldConflict> {
    let second = seen.all().nth(1)?;
    clash(second, "one kind of payload in a part")
}

static SYSTEM_CONTENT: ObjectRules =
    shape(&[field(&["parts"], Rule::List(&Rule::Object(&SYSTEM_PART)))]);

static SYSTEM_PART: ObjectRules = ObjectRules::new(
    &[
        field(&["text"], Rule::Text),
        field(field_names::INLINE, Rule::Object(&ANYTHING)),
        field(field_names::FILE, Rule::Object(&ANYTHING)),
        field(field_names::CALL, Rule::Object(&ANYTHING)),
        field(field_names::RESPONSE, Rule::Object(&ANYTHING)),
        field(field_names::CODE, Rule::Object(&ANYTHING)),
        field(field_names::CODE_RESULT, Rule::Object(&ANYTHING)),
    ],
    |seen| {
        (!seen.all().eq(["text"])).then_some(FieldConflict {
            field: None,
            expected: "text, as system instructions hold nothing else",
        })
    },
);

static INLINE_DATA: ObjectRules = shape(&[
    required(field_names::MIME_TYPE, Rule::Text),
    required(
        &["data"],
        Rule::Form(base64_text::is_base64, "base64 without a data: prefix"),
    ),
    field(field_names::DISPLAY_NAME, Rule::Text),
]);

static FILE_DATA: ObjectRules = shape(&[
    field(field_names::MIME_TYPE, Rule::Text),
    required(
        field_names::FILE_URI,
        Rule::Form(is_public_https, "a public https URL"),
    ),
    field(field_names::DISPLAY_NAME, Rule::Text),
]);

static FUNCTION_CALL: ObjectRules = shape(&[
    required(&["name"], Rule::Text),
    field(&["args"], Rule::Object(&ANYTHING)),
    field(&["id"], Rule::Text),
]);

static FUNCTION_RESPONSE: ObjectRules = shape(&[
    required(&["name"], Rule::Text),
    field(&["response"], Rule::Object(&ANYTHING)),
    field(&["parts"], Rule::List(&Rule::Object(&RESULT_PART))),
    field(&["id"], Rule::Text),
]);

static RESULT_PART: ObjectRules = ObjectRules::new(
    &[
        field(field_names::INLINE, Rule::Object(&INLINE_DATA)),
        field(field_names::FILE, Rule::Object(&FILE_DATA)),
    ],
    one_payload,
);

/// Named after the vendor: their names are those of the upstream in the end.
const SEARCH: Field = own_tool(field_names::SEARCH);
const SEARCH_RETRIEVAL: Field = own_tool(field_names::SEARCH_RETRIEVAL);
const MAPS: Field = own_tool(field_names::MAPS);

static OPTIONS: Rule = Rule::Object(&ANYTHING);

const fn own_tool(spellings: Spellings) -> Field {
    field(spellings, Rule::Noted(&OPTIONS))
}

static ANY_TOOL: ObjectRules = shape(&[SEARCH, SEARCH_RETRIEVAL, MAPS]);

static TOOL: ObjectRules = shape(&[
    SEARCH,
    SEARCH_RETRIEVAL,
    MAPS,
    field(
        field_names::DECLARATIONS,
        Rule::List(&Rule::Object(&DECLARATION)),
    ),
    field(field_names::CODE_EXECUTION, Rule::Object(&ANYTHING)),
]);

static DECLARATION: ObjectRules = ObjectRules::new(
    &[
        required(
            &["name"],
            Rule::Form(
                is_tool_name,
                "up to 128 letters, digits, underscores, dots, colons and dashes",
            ),
        ),
        field(&["description"], Rule::Text),
        field(&["parameters"], Rule::Object(&ANYTHING)),
        field(field_names::JSON_PARAMETERS, Rule::Object(&ANYTHING)),
    ],
    |seen| {
        let both = seen.has("parameters") && seen.has("parametersJsonSchema");
        both.then(|| clash("parametersJsonSchema", "no parameters beside it"))?
    },
);

fn is_tool_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(legal)
}
