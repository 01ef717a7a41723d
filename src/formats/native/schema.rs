//! The format's dialect of schemas, read as plain JSON Schema.
//!
//! `{"type":"STRING","nullable":true}` → `{"type":["string","null"]}`. Only keywords are touched:
//! a property may well be called `type`.

use std::borrow::Cow;

use crate::json::Path;
use crate::model::{FieldLocation, Json, Losses};

/// Spellings that JSON Schema does not know, and its own.
const RENAMED: [(&str, &str); 11] = [
    ("any_of", "anyOf"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("min_properties", "minProperties"),
    ("max_properties", "maxProperties"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("additional_properties", "additionalProperties"),
    ("property_ordering", "propertyOrdering"),
    ("ref", "$ref"),
    ("defs", "$defs"),
];

pub(super) fn to_json_schema<'a>(
    schema: Json<'a>,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Json<'a> {
    let Json::Object(object) = schema else {
        return schema;
    };
    let mut nullable = false;
    let mut keywords: Vec<(&'a str, Json<'a>)> = Vec::new();
    for (key, value) in object.into_vec() {
        let path = Path::Key(path, &key);
        let keyword = match (renamed(&key), &key) {
            (Some(keyword), _) => keyword,
            (None, Cow::Borrowed(key)) => *key,
            // No keyword needs escapes.
            (None, Cow::Owned(_)) => "",
        };
        match keyword {
            "nullable" => nullable = value == Json::Bool(true),
            "propertyOrdering" | "example" | "" => {
                losses.dropped(FieldLocation::Path(path.to_string().into()));
            }
            "type" => keywords.extend(lower_case(value).map(|value| (keyword, value))),
            _ => keywords.push((keyword, read_keyword(keyword, value, &path, losses))),
        }
    }
    if nullable {
        allow_null(&mut keywords);
    }
    Json::Object(keywords.into())
}

fn renamed(key: &str) -> Option<&'static str> {
    let found = RENAMED.iter().find(|(theirs, _)| *theirs == key)?;
    Some(found.1)
}

fn read_keyword<'a>(
    keyword: &str,
    value: Json<'a>,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Json<'a> {
    match (keyword, value) {
        ("properties" | "patternProperties" | "$defs" | "definitions", Json::Object(mut named)) => {
            let names: Vec<String> = named.keys().map(str::to_owned).collect();
            for name in names {
                if let Some(schema) = named.get_mut(&name) {
                    let path = Path::Key(path, &name);
                    *schema = to_json_schema(std::mem::take(schema), &path, losses);
                }
            }
            Json::Object(named)
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Json::Array(schemas)) => {
            let read = |(at, schema)| to_json_schema(schema, &Path::Index(path, at), losses);
            Json::Array(schemas.into_iter().enumerate().map(read).collect())
        }
        ("items" | "additionalProperties" | "not", schema) => to_json_schema(schema, path, losses),
        // Whole numbers of 64 bits travel as strings in this format.
        (
            "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minLength" | "maxLength",
            Json::Str(digits),
        ) => match digits.parse::<u64>() {
            Ok(number) => number.into(),
            Err(_) => Json::Str(digits),
        },
        (_, value) => value,
    }
}

fn lower_case(value: Json<'_>) -> Option<Json<'_>> {
    match value {
        Json::Str(name) if name == "TYPE_UNSPECIFIED" => None,
        Json::Str(name) if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Some(name.to_ascii_lowercase().into())
        }
        Json::Array(names) => {
            let names = names.into_iter().filter_map(lower_case);
            Some(Json::Array(names.collect()))
        }
        other => Some(other),
    }
}

fn allow_null(keywords: &mut [(&str, Json<'_>)]) {
    let find = |wanted: &str| keywords.iter().position(|(keyword, _)| *keyword == wanted);
    let Some(at) = find("type").or_else(|| find("anyOf")) else {
        return;
    };
    match &mut keywords[at] {
        (_, kind @ Json::Str(_)) => {
            let name = std::mem::take(kind);
            *kind = Json::Array(vec![name, "null".into()]);
        }
        ("anyOf", Json::Array(schemas)) => {
            schemas.push(Json::Object(vec![("type", "null".into())].into()));
        }
        (_, Json::Array(names)) if !names.contains(&"null".into()) => names.push("null".into()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schema: &str) -> (String, Vec<FieldLocation>) {
        let mut losses = Losses::default();
        let tree = serde_json::from_str(schema).unwrap();
        let read = to_json_schema(tree, &Path::Key(&Path::Root, "schema"), &mut losses);
        let places = losses.0.into_iter().map(|lost| lost.location).collect();
        (serde_json::to_string(&read).unwrap(), places)
    }

    #[test]
    fn keywords_are_read_and_names_are_left_alone() {
        let (schema, lost) = read(
            r#"{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true,"enum":["STRING"]},
            "any_of":{"type":"ARRAY","min_items":"2","items":{"any_of":[{"type":"INTEGER"}],"nullable":true}},
            "caf\u00e9":{"type":"NUMBER"}},"required":["type"],"property_ordering":["type"]}"#,
        );
        assert_eq!(
            schema,
            r#"{"type":"object","properties":{"type":{"type":["string","null"],"enum":["STRING"]},"any_of":{"type":"array","minItems":2,"items":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"café":{"type":"number"}},"required":["type"]}"#
        );
        assert_eq!(
            lost,
            [FieldLocation::Path("schema.property_ordering".into())]
        );
    }

    #[test]
    fn values_are_never_rewritten() {
        let same = r#"{"default":{"type":"STRING","nullable":true},"enum":["OBJECT"],"const":{"type":"X"},"additionalProperties":false}"#;
        assert_eq!(read(same), (same.to_owned(), vec![]));
    }

    #[test]
    fn an_example_has_no_counterpart() {
        let (schema, lost) = read(r#"{"items":{"type":["STRING","NULL"],"example":"x"}}"#);
        assert_eq!(schema, r#"{"items":{"type":["string","null"]}}"#);
        assert_eq!(lost, [FieldLocation::Path("schema.items.example".into())]);
    }
}
