//! The rules of JSON Schemas that an upstream enforces strictly.

use crate::formats::closed_object::is_closed_object;
use crate::model::{FieldLocation, Json, Losses};

/// Turns `strict` off for a schema that breaks the rules: upstreams answer such a request with an error.
pub(super) fn encode_strict(
    strict: bool,
    schema: &Json<'_>,
    at: FieldLocation,
    losses: &mut Losses,
) -> bool {
    let allowed = !strict || may_be_strict(schema);
    if !allowed {
        losses.approximated(at);
    }
    strict && allowed
}

/// Keywords that no strict schema may hold.
const UNSUPPORTED_KEYWORDS: [&str; 11] = [
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

/// Whether a schema is an object at its root and keeps to the rules everywhere.
pub(super) fn may_be_strict(schema: &Json<'_>) -> bool {
    schema.get("type").as_str() == Some("object") && is_strict(schema)
}

/// Whether every object is closed and requires all of its properties, at every depth.
fn is_strict(schema: &Json<'_>) -> bool {
    let Some(keywords) = schema.as_object() else {
        return true;
    };
    if keywords
        .keys()
        .any(|keyword| UNSUPPORTED_KEYWORDS.contains(&keyword))
    {
        return false;
    }
    is_closed(schema)
        && keywords
            .iter()
            .all(|(keyword, value)| match (keyword, value) {
                ("properties" | "$defs" | "definitions", Json::Object(schemas)) => {
                    schemas.iter().all(|(_, schema)| is_strict(schema))
                }
                ("anyOf" | "prefixItems", Json::Array(schemas)) => schemas.iter().all(is_strict),
                ("items", schema) => is_strict(schema),
                _ => true,
            })
}

/// Whether an object schema allows no further properties and requires all that it names.
fn is_closed(schema: &Json<'_>) -> bool {
    let names_object = match schema.get("type") {
        Json::Str(kind) => kind == "object",
        Json::Array(kinds) => kinds.iter().any(|kind| kind.as_str() == Some("object")),
        _ => false,
    };
    let properties = schema.get("properties").as_object();
    if !names_object && properties.is_none() {
        return true;
    }
    is_closed_object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictness_depends_on_keywords_not_on_property_names() {
        for (schema, strict) in [
            (
                r#"{"type":"object","properties":{},"additionalProperties":false}"#,
                true,
            ),
            (r#"{"type":"object","properties":{}}"#, false),
            (
                r#"{"type":"object","properties":{"not":{"type":"string"}},"required":["not"],"additionalProperties":false}"#,
                true,
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}"#,
                false,
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}"#,
                false,
            ),
            (r#"{"anyOf":[{"type":"string"},{"oneOf":[]}]}"#, false),
            (
                r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":["string","null"]}}}"##,
                true,
            ),
        ] {
            let tree: Json<'_> = serde_json::from_str(schema).expect(schema);
            assert_eq!(is_strict(&tree), strict, "{schema}");
        }
    }
}
