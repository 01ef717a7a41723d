//! JSON Schema: the rules that this format has for strict schemas.

use crate::formats::closed_object::is_closed_object;
use crate::model::Json;

/// Keywords that a strict schema must not use.
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
    "unevaluatedProperties",
    "propertyNames",
];

/// Says whether a schema can be strict: it is an object, and every object in it is closed and requires all of its
/// properties.
pub(super) fn is_strict(schema: &Json<'_>) -> bool {
    matches!(field(schema, "type"), Some(Json::Str(kind)) if kind == "object")
        && follows_rules(schema)
}

fn follows_rules(schema: &Json<'_>) -> bool {
    let Json::Object(keywords) = schema else {
        return false;
    };
    keywords.iter().all(|(keyword, value)| match keyword {
        "properties" | "$defs" | "definitions" => all_values(value, follows_rules),
        "items" => follows_rules(value),
        "anyOf" => matches!(value, Json::Array(options) if options.iter().all(follows_rules)),
        _ => !FORBIDDEN_KEYWORDS.contains(&keyword),
    }) && (!is_object(schema) || is_closed_object(schema))
}

/// Says whether a schema describes objects.
fn is_object(schema: &Json<'_>) -> bool {
    let has_type = match field(schema, "type") {
        Some(Json::Str(kind)) => kind == "object",
        Some(Json::Array(kinds)) => kinds.iter().any(|kind| kind.as_str() == Some("object")),
        _ => false,
    };
    has_type || field(schema, "properties").is_some()
}

fn field<'s, 'a>(schema: &'s Json<'a>, key: &str) -> Option<&'s Json<'a>> {
    match schema {
        Json::Object(keywords) => keywords.get(key),
        _ => None,
    }
}

fn all_values(value: &Json<'_>, rule: fn(&Json<'_>) -> bool) -> bool {
    match value {
        Json::Object(schemas) => schemas.values().all(rule),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_closed_objects_with_nothing_optional_are_strict() {
        let check = |text: &str| is_strict(&serde_json::from_str(text).expect("a schema"));
        assert!(check(
            r##"{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},
                "type":{"type":"array","items":{"$ref":"#/$defs/b"}}},"required":["type","a"],
                "additionalProperties":false,
                "$defs":{"b":{"type":"object","properties":{},"additionalProperties":false}}}"##
        ));
        for loose in [
            r#"{"type":"string"}"#,
            r#"{"type":"object","properties":{}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],
                "additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"oneOf":[{"type":"string"}]}},"required":["a"],
                "additionalProperties":false}"#,
        ] {
            assert!(!check(loose), "{loose}");
        }
    }
}
