//! The JSON Schema of an answer or a tool, in the formats whose vendor enforces it strictly where it keeps to the rules.

use std::collections::HashSet;

use serde::Serialize;

use crate::model::{FieldLocation, Json, Losses, OutputFormat, Setting};

/// The schema of an answer, with the name that the formats require.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct OutputSchema<'a> {
    name: &'a str,
    description: Option<&'a str>,
    schema: &'a Json<'a>,
    strict: Option<bool>,
}

/// Encodes the schema of an answer; `None`: it has none.
pub(super) fn encode_output_schema<'a>(
    format: &'a OutputFormat<'a>,
    losses: &mut Losses,
) -> Option<OutputSchema<'a>> {
    let location = || FieldLocation::Setting(Setting::OutputFormat);
    let (name, description, schema, strict) = match format {
        OutputFormat::Text | OutputFormat::Json => return None,
        OutputFormat::Schema {
            name,
            description,
            schema,
            strict,
        } => (name.as_deref(), description.as_deref(), schema, *strict),
        // The formats have no bare values: the model returns a JSON string, quotes included.
        OutputFormat::Enum(schema) => {
            losses.approximated(location());
            (None, None, schema, Some(false))
        }
    };
    if name.is_none() {
        losses.added(location());
    }
    Some(OutputSchema {
        name: name.unwrap_or("response"),
        description,
        schema,
        strict: match strict {
            Some(strict) => Some(encode_strict(strict, schema, location(), losses)),
            // Formats without schema names have no `strict` either: it is strict wherever it can be.
            None => name.is_none().then(|| is_strict(schema)),
        },
    })
}

/// Turns `strict` off for a schema that breaks the rules: upstreams answer such a request with an error.
pub(super) fn encode_strict(
    strict: bool,
    schema: &Json<'_>,
    at: FieldLocation,
    losses: &mut Losses,
) -> bool {
    let fits = strict && is_strict(schema);
    if strict && !fits {
        losses.approximated(at);
    }
    fits
}

/// Keywords that no strict schema may hold.
const FORBIDDEN_KEYWORDS: [&str; 11] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
];

/// Tells whether a schema can be strict: it is an object, and every object in it is closed.
pub(super) fn is_strict(schema: &Json<'_>) -> bool {
    schema.get("type").as_str() == Some("object") && follows_rules(schema)
}

fn follows_rules(schema: &Json<'_>) -> bool {
    let Json::Object(keywords) = schema else {
        return false;
    };
    keywords
        .iter()
        .all(|(keyword, value)| match (keyword, value) {
            ("properties" | "$defs" | "definitions", Json::Object(schemas)) => {
                schemas.values().all(follows_rules)
            }
            ("anyOf" | "prefixItems", Json::Array(schemas)) => schemas.iter().all(follows_rules),
            ("properties" | "$defs" | "definitions" | "anyOf", _) => false,
            ("items", schema) => follows_rules(schema),
            _ => !FORBIDDEN_KEYWORDS.contains(&keyword),
        })
        && (!describes_objects(schema) || is_closed(schema))
}

fn describes_objects(schema: &Json<'_>) -> bool {
    let has_type = match schema.get("type") {
        Json::Str(kind) => kind == "object",
        Json::Array(kinds) => kinds.iter().any(|kind| kind.as_str() == Some("object")),
        _ => false,
    };
    has_type || schema.get("properties").is_object()
}

/// Up to so many comparisons are faster than a set of names.
const COMPARISONS: usize = 1024;

/// Tells whether an object schema allows no further properties and requires all that it names.
fn is_closed(schema: &Json<'_>) -> bool {
    let required = schema.get("required").as_array().unwrap_or_default();
    let properties = schema.get("properties").as_object();
    schema.get("additionalProperties").as_bool() == Some(false)
        && properties.is_none_or(|properties| {
            if properties.len() * required.len() <= COMPARISONS {
                let is_required = |name| required.iter().any(|known| known.as_str() == Some(name));
                return properties.keys().all(is_required);
            }
            let required: HashSet<&str> = required.iter().filter_map(Json::as_str).collect();
            properties.keys().all(|name| required.contains(name))
        })
}

#[cfg(test)]
mod tests {
    use super::is_strict;

    #[test]
    fn only_closed_objects_with_nothing_optional_are_strict() {
        let check = |text: &str| is_strict(&serde_json::from_str(text).expect(text));
        for strict in [
            r##"{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},
                "type":{"type":"array","items":{"$ref":"#/$defs/b"}}},"required":["type","a"],
                "additionalProperties":false,
                "$defs":{"b":{"type":"object","properties":{},"additionalProperties":false}}}"##,
            // Names of properties are no keywords.
            r#"{"type":"object","properties":{"not":{"type":"string"}},"required":["not"],"additionalProperties":false}"#,
            r#"{"type":"object","additionalProperties":false,"$defs":{"a":{"type":["string","null"]}}}"#,
        ] {
            assert!(check(strict), "{strict}");
        }
        for loose in [
            r#"{"type":"string"}"#,
            r#"{"type":"object","properties":{}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],
                "additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"oneOf":[{"type":"string"}]}},"required":["a"],
                "additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],
                "additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"oneOf":[]}]}},"required":["a"],
                "additionalProperties":false}"#,
        ] {
            assert!(!check(loose), "{loose}");
        }
    }
}
