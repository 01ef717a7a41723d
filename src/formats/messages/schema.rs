//! The JSON Schema dialect of the format: closed objects and a small set of keywords.

use serde_json_borrow::ObjectAsVec;

use crate::model::Json;

/// The changes that [`conform`] made to a schema.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct MessagesSchemaChanges {
    /// Objects without `additionalProperties` got `additionalProperties: false`.
    pub(super) closed: bool,
    /// A keyword was replaced by another, or moved into a description.
    pub(super) rewritten: bool,
}

/// Whether the format accepts the schema unchanged.
pub(super) fn conforms(schema: &Json<'_>) -> bool {
    let mut changes = MessagesSchemaChanges::default();
    conform(schema, &mut changes);
    changes == MessagesSchemaChanges::default()
}

/// Keywords whose value is copied unchanged.
const COPIED: [&str; 7] = [
    "type",
    "required",
    "enum",
    "const",
    "title",
    "$ref",
    "description",
];
/// Keywords that identify the dialect or the schema; they are left out.
const IDENTIFIERS: [&str; 4] = ["$schema", "$id", "$anchor", "$comment"];
/// The values of `format` that the format accepts.
const FORMATS: [&str; 10] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Rewrites a schema into the dialect. Only keywords are looked at, since a property may be called `type`.
pub(super) fn conform<'s>(schema: &'s Json<'_>, changes: &mut MessagesSchemaChanges) -> Json<'s> {
    let Json::Object(keywords) = schema else {
        return schema.clone();
    };
    let mut kept: Vec<(&'s str, Json<'s>)> = Vec::new();
    let mut unsupported: Vec<(&'s str, &'s Json<'s>)> = Vec::new();
    let has_any_of = keywords.get("anyOf").is_some();
    for (key, value) in keywords.iter() {
        match key {
            _ if COPIED.contains(&key) => kept.push((key, value.clone())),
            _ if IDENTIFIERS.contains(&key) => {}
            "properties" | "$defs" | "definitions" => {
                kept.push((key, conform_values(value, changes)))
            }
            "items" if value.is_object() => kept.push((key, conform(value, changes))),
            "anyOf" | "allOf" => kept.push((key, conform_items(value, changes))),
            "oneOf" if !has_any_of => {
                changes.rewritten = true;
                kept.push(("anyOf", conform_items(value, changes)));
            }
            "format" if value.as_str().is_some_and(|word| FORMATS.contains(&word)) => {
                kept.push((key, value.clone()));
            }
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => kept.push((key, value.clone())),
            // Written below for every object, always as `false`.
            "additionalProperties" => changes.rewritten |= *value != Json::Bool(false),
            _ => unsupported.push((key, value)),
        }
    }
    if describes_object(keywords) {
        changes.closed |= keywords.get("additionalProperties").is_none();
        kept.push(("additionalProperties", Json::Bool(false)));
    }
    if !unsupported.is_empty() {
        changes.rewritten = true;
        describe(&mut kept, &unsupported);
    }
    Json::Object(ObjectAsVec::from_iter(kept))
}

fn describes_object(keywords: &ObjectAsVec<'_>) -> bool {
    match keywords.get("type") {
        Some(Json::Str(word)) => word == "object",
        Some(Json::Array(words)) => words.iter().any(|word| word.as_str() == Some("object")),
        _ => keywords.get("properties").is_some(),
    }
}

fn conform_values<'s>(value: &'s Json<'_>, changes: &mut MessagesSchemaChanges) -> Json<'s> {
    match value {
        Json::Object(schemas) => Json::Object(ObjectAsVec::from_iter(
            schemas
                .iter()
                .map(|(name, schema)| (name, conform(schema, changes))),
        )),
        other => other.clone(),
    }
}

fn conform_items<'s>(value: &'s Json<'_>, changes: &mut MessagesSchemaChanges) -> Json<'s> {
    match value {
        Json::Array(schemas) => Json::Array(
            schemas
                .iter()
                .map(|schema| conform(schema, changes))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Appends the keywords that cannot be enforced to the description, where the model reads them.
fn describe<'s>(kept: &mut Vec<(&'s str, Json<'s>)>, unsupported: &[(&'s str, &'s Json<'s>)]) {
    let keywords: Vec<String> = unsupported
        .iter()
        .map(|(key, value)| {
            // `Json::to_string` would sort the keys.
            let value = serde_json::to_string(value).expect("a JSON value always serialises");
            format!("{key}: {value}")
        })
        .collect();
    let appended = format!("{{{}}}", keywords.join(", "));
    match kept.iter_mut().find(|(key, _)| *key == "description") {
        Some((_, Json::Str(text))) => {
            let text = text.to_mut();
            text.push_str("\n\n");
            text.push_str(&appended);
        }
        _ => kept.push(("description", Json::Str(appended.into()))),
    }
}
