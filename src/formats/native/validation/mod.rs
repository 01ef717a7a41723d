//! Validation of requests: values out of range, media that nobody can fetch, and fields that
//! exclude each other are refused by one table, whether a request passes through or is translated.

mod contents;
mod settings;
mod shapes;
mod tools;

use std::ops::Range;

use self::contents::{CONTENT, SYSTEM_CONTENT};
use self::settings::{GENERATION_CONFIG, SAFETY_SETTING};
use self::shapes::{object, optional};
use self::tools::{TOOL, TOOL_CONFIG, VENDOR_TOOLS};
use super::field_names;
use crate::json::{self, Fields, NotedField, ObjectRules, Rule};
use crate::model::ApiError;

/// The prefixes that clients use for the vendor in the names of its hosted tools.
const VENDOR_PREFIXES: [&str; 2] = ["vendor", "google"];

/// Validates a request and returns the ranges of the vendor prefixes in its tool names.
pub(super) fn validate(body: &[u8], text_only: bool) -> Result<Vec<Range<usize>>, ApiError> {
    let noted = json::validate(body, &REQUEST)?;
    refuse_image_config(&noted, text_only)?;
    Ok(vendor_prefixes(body, noted))
}

/// Parses and validates a request that is to be translated.
pub(super) fn parse(body: &[u8], text_only: bool) -> Result<Fields<'_, 'static>, ApiError> {
    // A body that breaks a rule before it breaks JSON gets the error of the rule.
    let fields = Fields::of_body(body)
        .map_err(|api_error| validate(body, text_only).err().unwrap_or(api_error))?;
    refuse_image_config(&fields.validate(&REQUEST)?, text_only)?;
    Ok(fields)
}

/// Finds the vendor prefixes in a request that may be any JSON object.
pub(super) fn find_vendor_prefixes(body: &[u8]) -> Result<Vec<Range<usize>>, ApiError> {
    json::validate(body, &ANY_REQUEST).map(|noted| vendor_prefixes(body, noted))
}

/// Refuses `imageConfig` for a model without image output.
fn refuse_image_config(noted: &[NotedField], text_only: bool) -> Result<(), ApiError> {
    let is_image_config = |noted: &&NotedField| noted.field == field_names::IMAGE_CONFIG[0];
    match noted.iter().find(is_image_config) {
        Some(NotedField { path, .. }) if text_only => {
            let message = format!("{path}: the model has no image output");
            Err(ApiError::invalid(message).at(path.clone()))
        }
        _ => Ok(()),
    }
}

fn vendor_prefixes(body: &[u8], noted: Vec<NotedField>) -> Vec<Range<usize>> {
    let prefix = |name: Range<usize>| {
        let text = &body[name.clone()];
        let prefix = VENDOR_PREFIXES
            .iter()
            .find(|prefix| text.starts_with(prefix.as_bytes()))?;
        Some(name.start..name.start + prefix.len())
    };
    let names = noted.into_iter().filter_map(|noted| noted.name);
    names.filter_map(prefix).collect()
}

/// A request that is not validated: only the names of its hosted tools are looked for.
static ANY_REQUEST: ObjectRules = object(&[
    optional(
        field_names::GENERATE_CONTENT_REQUEST,
        Rule::Object(&ANY_REQUEST),
    ),
    optional(&["tools"], Rule::List(&Rule::Object(&VENDOR_TOOLS))),
]);

/// A request. The most frequent fields stand first, because fields are looked up in this order.
static REQUEST: ObjectRules = object(&[
    optional(&["contents"], Rule::List(&Rule::Object(&CONTENT))),
    optional(
        field_names::GENERATION_CONFIG,
        Rule::Object(&GENERATION_CONFIG),
    ),
    optional(
        field_names::SYSTEM_INSTRUCTION,
        Rule::Object(&SYSTEM_CONTENT),
    ),
    optional(&["tools"], Rule::List(&Rule::Object(&TOOL))),
    optional(field_names::TOOL_CONFIG, Rule::Object(&TOOL_CONFIG)),
    optional(
        field_names::SAFETY_SETTINGS,
        Rule::List(&Rule::Object(&SAFETY_SETTING)),
    ),
    optional(
        field_names::GENERATE_CONTENT_REQUEST,
        Rule::Object(&REQUEST),
    ),
    optional(
        field_names::CACHED_CONTENT,
        Rule::Form(is_cached_content, "a name like cachedContents/{id}"),
    ),
]);

/// Whether a name is that of cached content, and not the path of another resource.
fn is_cached_content(name: &str) -> bool {
    let id = name.strip_prefix("cachedContents/").unwrap_or_default();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !id.is_empty() && id.bytes().all(legal)
}
