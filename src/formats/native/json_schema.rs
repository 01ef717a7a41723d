//! JSON Schema for upstreams of this format, which lack some keywords.
//!
//! `{"const":1}` → `{"enum":[1]}`. A list of booleans becomes the type.

use crate::model::Json;

/// Keywords whose value is a schema, a list of schemas, or schemas by name.
const SCHEMAS: [&str; 12] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "anyOf",
    "oneOf",
    "allOf",
    "prefixItems",
];
const NAMED_SCHEMAS: [&str; 4] = ["properties", "$defs", "definitions", "patternProperties"];

/// Encodes a schema and tells whether nothing was left out.
pub(super) fn encode_json_schema<'a>(schema: &'a Json<'a>) -> (Json<'a>, bool) {
    let mut exact = true;
    let encoded = encode_any(schema, &mut exact);
    (encoded, exact)
}

/// Encodes one schema or a list of them.
fn encode_any<'a>(schema: &'a Json<'a>, exact: &mut bool) -> Json<'a> {
    let keywords = match schema {
        Json::Array(schemas) => {
            let encoded = schemas.iter().map(|schema| encode_any(schema, exact));
            return Json::Array(encoded.collect());
        }
        Json::Object(keywords) => keywords,
        _ => return schema.clone(),
    };
    let mut encoded = Vec::with_capacity(keywords.len());
    for (keyword, value) in keywords.iter() {
        match (keyword, value) {
            ("const", value) => {
                let values = std::slice::from_ref(value);
                encoded.push(encode_enum(values, exact));
            }
            ("enum", Json::Array(values)) => encoded.push(encode_enum(values, exact)),
            (_, Json::Object(schemas)) if NAMED_SCHEMAS.contains(&keyword) => {
                let schemas = schemas
                    .iter()
                    .map(|(name, schema)| (name, encode_any(schema, exact)));
                encoded.push((keyword, Json::Object(schemas.collect())));
            }
            _ if SCHEMAS.contains(&keyword) => encoded.push((keyword, encode_any(value, exact))),
            _ => encoded.push((keyword, value.clone())),
        }
    }
    // A list of booleans became a second `type` beside the one of the schema.
    let mut has_type = false;
    encoded.retain(|(keyword, _)| *keyword != "type" || !std::mem::replace(&mut has_type, true));
    Json::Object(encoded.into())
}

fn encode_enum<'a>(values: &[Json<'a>], exact: &mut bool) -> (&'a str, Json<'a>) {
    if !values.is_empty() && values.iter().all(Json::is_bool) {
        let both = [true, false].map(|value| values.contains(&Json::Bool(value)));
        *exact &= both == [true, true];
        return ("type", "boolean".into());
    }
    ("enum", Json::Array(values.to_vec()))
}
