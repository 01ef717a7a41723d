//! Schemas of clients, in the dialect of the format, decoded into JSON Schema.

use std::borrow::Cow;

use serde_json_borrow::ObjectAsVec;

use crate::json::{Node, Path};
use crate::model::{ApiError, FieldLocation, Json, Losses};

/// Keywords that clients spell in another way than JSON Schema, and its spelling.
const KEYWORD_ALIASES: [(&str, &str); 11] = [
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

/// Decodes the schema of a field, in the dialect or in JSON Schema.
pub(super) fn decode_schema<'a>(
    node: Option<Node<'a, '_>>,
    losses: &mut Losses,
) -> Result<Option<Json<'a>>, ApiError> {
    match node {
        None => Ok(None),
        Some(Node { value, path }) if value.is_object() => {
            Ok(Some(to_json_schema(value, &path, losses)))
        }
        Some(node) => Err(node.wrong("a schema object")),
    }
}

/// Converts a schema of the dialect to JSON Schema.
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
        let keyword = match (keyword_for(&key), &key) {
            (Some(keyword), _) => keyword,
            (None, Cow::Borrowed(key)) => *key,
            // The key has escapes, which no keyword needs.
            (None, Cow::Owned(_)) => "",
        };
        match keyword {
            "nullable" => nullable = value == Json::Bool(true),
            "propertyOrdering" | "example" | "" if !losses.has_room() => {}
            "propertyOrdering" | "example" | "" => {
                losses.dropped(FieldLocation::Path(path.to_string().into()));
            }
            "type" => keywords.extend(decode_type(value).map(|value| (keyword, value))),
            _ => keywords.push((keyword, decode_keyword(keyword, value, &path, losses))),
        }
    }
    if nullable {
        allow_null(&mut keywords);
    }
    Json::Object(keywords.into())
}

/// The JSON Schema spelling of a keyword that has an alias.
fn keyword_for(key: &str) -> Option<&'static str> {
    let found = KEYWORD_ALIASES.iter().find(|(alias, _)| *alias == key)?;
    Some(found.1)
}

fn decode_keyword<'a>(
    keyword: &str,
    value: Json<'a>,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Json<'a> {
    match (keyword, value) {
        ("properties" | "patternProperties" | "$defs" | "definitions", Json::Object(named)) => {
            decode_named_schemas(named, path, losses)
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Json::Array(schemas)) => {
            let decode = |(at, schema)| to_json_schema(schema, &Path::Index(path, at), losses);
            Json::Array(schemas.into_iter().enumerate().map(decode).collect())
        }
        ("items" | "additionalProperties" | "not", schema) => to_json_schema(schema, path, losses),
        // The format sends 64-bit integers as strings.
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

/// How many members of an object are looked up one by one.
pub(super) const MAX_LOOKED_UP: usize = 64;

/// Decodes the schemas of an object, each under its name.
fn decode_named_schemas<'a>(
    mut named: ObjectAsVec<'a>,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Json<'a> {
    let mut names = named.as_vec().iter().map(|(name, _)| &name.0);
    if names.all(|name| matches!(name, Cow::Borrowed(_))) {
        let schemas = named
            .into_vec()
            .into_iter()
            .filter_map(|(name, schema)| match name {
                Cow::Borrowed(name) => {
                    let schema = to_json_schema(schema, &Path::Key(path, name), losses);
                    Some((name, schema))
                }
                Cow::Owned(_) => None,
            });
        return Json::Object(schemas.collect());
    }
    if named.len() > MAX_LOOKED_UP {
        losses.approximated(FieldLocation::Path(path.to_string().into()));
        return Json::Object(named);
    }
    let names: Vec<String> = named.keys().map(str::to_owned).collect();
    for (at, name) in names.iter().enumerate() {
        let path = Path::Key(path, name);
        // Only the first schema of a name is found. Converted again for each other one, it would take twice as long at each level.
        if names[..at].contains(name) {
            if losses.has_room() {
                losses.approximated(FieldLocation::Path(path.to_string().into()));
            }
        } else if let Some(schema) = named.get_mut(name) {
            *schema = to_json_schema(std::mem::take(schema), &path, losses);
        }
    }
    Json::Object(named)
}

/// Decodes `type`, which clients write in upper case.
fn decode_type(value: Json<'_>) -> Option<Json<'_>> {
    match value {
        Json::Str(name) if name == "TYPE_UNSPECIFIED" => None,
        Json::Str(name) if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Some(name.to_ascii_lowercase().into())
        }
        Json::Array(names) => {
            let names = names.into_iter().filter_map(decode_type);
            Some(Json::Array(names.collect()))
        }
        other => Some(other),
    }
}

/// Adds null to the types that a schema allows, for `nullable`.
fn allow_null(keywords: &mut [(&str, Json<'_>)]) {
    let find = |name: &str| keywords.iter().position(|(keyword, _)| *keyword == name);
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
    use crate::json::decode_json;

    #[test]
    fn a_name_that_stands_twice_is_converted_once() {
        const DEPTH: usize = 40;
        let text = (0..DEPTH).fold("{}".to_owned(), |below, _| {
            let named = format!(r#"{{"\u0062":{{}},"a":{below},"a":{{}}}}"#);
            format!(r#"{{"type":"OBJECT","properties":{named}}}"#)
        });
        let schema: Json<'_> = decode_json(&text).expect("a schema");
        let mut losses = Losses::default();
        let decoded = to_json_schema(schema, &Path::Root, &mut losses);
        assert_eq!(losses.0.len(), DEPTH, "the second one of each");
        let mut schema = &decoded;
        for _ in 0..DEPTH {
            let keywords = schema.as_object().expect("a schema");
            assert_eq!(keywords.get("type"), Some(&"object".into()));
            let named = keywords.get("properties").and_then(|it| it.as_object());
            schema = named.and_then(|named| named.get("a")).expect("the first");
        }
    }
}
