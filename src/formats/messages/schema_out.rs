//! Schemas as the format takes them: closed objects and a small set of keywords.

use serde::Serialize;
use serde_json_borrow::ObjectAsVec;

use crate::model::{FieldLocation, Json, Losses, OutputFormat, Setting};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Format<'a> {
    JsonSchema { schema: Json<'a> },
}

/// What had to be done to a schema.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Changes {
    /// Objects that said nothing about other properties now forbid them.
    pub(super) closed: bool,
    /// Something is said in other words, or only in prose.
    pub(super) bent: bool,
}

pub(super) fn write<'a>(shape: &'a OutputFormat<'_>, losses: &mut Losses) -> Option<Format<'a>> {
    let place = || FieldLocation::Setting(Setting::OutputFormat);
    let schema = match shape {
        OutputFormat::Text => return None,
        // Without a schema there is nothing to hold the model to.
        OutputFormat::Json => {
            losses.dropped(place());
            return None;
        }
        OutputFormat::Schema {
            name,
            description,
            schema,
            ..
        } => {
            if name.is_some() {
                losses.dropped(FieldLocation::Setting(Setting::OutputName));
            }
            if description.is_some() {
                losses.dropped(FieldLocation::Setting(Setting::OutputDescription));
            }
            schema
        }
        OutputFormat::Enum(schema) => {
            losses.approximated(place());
            schema
        }
    };
    let mut changes = Changes::default();
    let schema = fitted(schema, &mut changes);
    if changes.closed {
        losses.added(place());
    }
    if changes.bent {
        losses.approximated(place());
    }
    Some(Format::JsonSchema { schema })
}

/// Whether the format takes the schema as it is.
pub(super) fn fits(schema: &Json<'_>) -> bool {
    let mut changes = Changes::default();
    fitted(schema, &mut changes);
    changes == Changes::default()
}

/// Keywords whose value stays as it is.
const PLAIN: [&str; 7] = [
    "type",
    "required",
    "enum",
    "const",
    "title",
    "$ref",
    "description",
];
/// Keywords that name the dialect or the schema itself.
const LABELS: [&str; 4] = ["$schema", "$id", "$anchor", "$comment"];
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

/// By keyword, not by name: a property may be called `type`.
fn fitted<'s>(schema: &'s Json<'_>, changes: &mut Changes) -> Json<'s> {
    let Json::Object(keywords) = schema else {
        return schema.clone();
    };
    let mut kept: Vec<(&'s str, Json<'s>)> = Vec::new();
    let mut prose: Vec<(&'s str, &'s Json<'s>)> = Vec::new();
    for (key, value) in keywords.iter() {
        match key {
            _ if PLAIN.contains(&key) => kept.push((key, value.clone())),
            _ if LABELS.contains(&key) => {}
            "properties" | "$defs" | "definitions" => kept.push((key, each_value(value, changes))),
            "items" if value.is_object() => kept.push((key, fitted(value, changes))),
            "anyOf" | "allOf" => kept.push((key, each_item(value, changes))),
            "oneOf" if keywords.get("anyOf").is_none() => {
                changes.bent = true;
                kept.push(("anyOf", each_item(value, changes)));
            }
            "format" if value.as_str().is_some_and(|word| FORMATS.contains(&word)) => {
                kept.push((key, value.clone()));
            }
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => kept.push((key, value.clone())),
            // Said again below, the only way it may be said.
            "additionalProperties" => changes.bent |= *value != Json::Bool(false),
            _ => prose.push((key, value)),
        }
    }
    if is_object(keywords) {
        changes.closed |= keywords.get("additionalProperties").is_none();
        kept.push(("additionalProperties", Json::Bool(false)));
    }
    if !prose.is_empty() {
        changes.bent = true;
        describe(&mut kept, &prose);
    }
    Json::Object(ObjectAsVec::from_iter(kept))
}

fn is_object(keywords: &ObjectAsVec<'_>) -> bool {
    match keywords.get("type") {
        Some(Json::Str(word)) => word == "object",
        Some(Json::Array(words)) => words.iter().any(|word| word.as_str() == Some("object")),
        _ => keywords.get("properties").is_some(),
    }
}

fn each_value<'s>(value: &'s Json<'_>, changes: &mut Changes) -> Json<'s> {
    match value {
        Json::Object(schemas) => Json::Object(ObjectAsVec::from_iter(
            schemas
                .iter()
                .map(|(name, schema)| (name, fitted(schema, changes))),
        )),
        other => other.clone(),
    }
}

fn each_item<'s>(value: &'s Json<'_>, changes: &mut Changes) -> Json<'s> {
    match value {
        Json::Array(schemas) => Json::Array(
            schemas
                .iter()
                .map(|schema| fitted(schema, changes))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// What cannot be enforced is at least told to the model.
fn describe<'s>(kept: &mut Vec<(&'s str, Json<'s>)>, prose: &[(&'s str, &'s Json<'s>)]) {
    let told: Vec<String> = prose
        .iter()
        .map(|(key, value)| {
            // Not `to_string`: that would sort the keys.
            let value = serde_json::to_string(value).expect("a JSON value always serialises");
            format!("{key}: {value}")
        })
        .collect();
    let told = format!("{{{}}}", told.join(", "));
    match kept.iter_mut().find(|(key, _)| *key == "description") {
        Some((_, Json::Str(text))) => {
            let text = text.to_mut();
            text.push_str("\n\n");
            text.push_str(&told);
        }
        _ => kept.push(("description", Json::Str(told.into()))),
    }
}
