//! Whether a schema meets the rules that this format has for strict ones.

use crate::model::Json;

/// Words that strict schemas must not use.
const FORBIDDEN: [&str; 11] = [
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

/// Every object is closed and requires all that it has; the whole is an object.
pub(super) fn fits(schema: &Json<'_>) -> bool {
    matches!(field(schema, "type"), Some(Json::Str(kind)) if kind == "object") && obeys(schema)
}

fn obeys(schema: &Json<'_>) -> bool {
    let Json::Object(keywords) = schema else {
        return false;
    };
    keywords.iter().all(|(keyword, value)| match keyword {
        "properties" | "$defs" | "definitions" => each(value, obeys),
        "items" => obeys(value),
        "anyOf" => matches!(value, Json::Array(options) if options.iter().all(obeys)),
        _ => !FORBIDDEN.contains(&keyword),
    }) && (!is_object(schema) || is_closed(schema))
}

fn is_object(schema: &Json<'_>) -> bool {
    let named = match field(schema, "type") {
        Some(Json::Str(kind)) => kind == "object",
        Some(Json::Array(kinds)) => kinds.iter().any(|kind| kind.as_str() == Some("object")),
        _ => false,
    };
    named || field(schema, "properties").is_some()
}

fn is_closed(schema: &Json<'_>) -> bool {
    let closed = matches!(
        field(schema, "additionalProperties"),
        Some(Json::Bool(false))
    );
    let required = match field(schema, "required") {
        Some(Json::Array(names)) => names.as_slice(),
        _ => &[],
    };
    let is_required = |name: &str| required.iter().any(|known| known.as_str() == Some(name));
    let complete = match field(schema, "properties") {
        Some(Json::Object(properties)) => properties.keys().all(is_required),
        _ => true,
    };
    closed && complete
}

fn field<'s, 'a>(schema: &'s Json<'a>, key: &str) -> Option<&'s Json<'a>> {
    match schema {
        Json::Object(keywords) => keywords.get(key),
        _ => None,
    }
}

fn each(value: &Json<'_>, rule: fn(&Json<'_>) -> bool) -> bool {
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
        let check = |text: &str| fits(&serde_json::from_str(text).expect("a schema"));
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
