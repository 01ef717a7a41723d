//! Plain JSON Schema, without the words that upstreams of this format do not know.
//!
//! `{"const":1}` → `{"enum":[1]}`. Of truth values only the type can be told.

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

/// The schema, and whether it still says all that it said.
pub(super) fn write<'a>(schema: &'a Json<'a>) -> (Json<'a>, bool) {
    let mut exact = true;
    let written = any(schema, &mut exact);
    (written, exact)
}

/// One schema or a list of them.
fn any<'a>(schema: &'a Json<'a>, exact: &mut bool) -> Json<'a> {
    let keywords = match schema {
        Json::Array(schemas) => {
            let written = schemas.iter().map(|schema| any(schema, exact));
            return Json::Array(written.collect());
        }
        Json::Object(keywords) => keywords,
        _ => return schema.clone(),
    };
    let mut written = Vec::with_capacity(keywords.len());
    for (keyword, value) in keywords.iter() {
        match (keyword, value) {
            ("const", value) => {
                let values = std::slice::from_ref(value);
                written.push(listed(values, exact));
            }
            ("enum", Json::Array(values)) => written.push(listed(values, exact)),
            (_, Json::Object(schemas)) if NAMED_SCHEMAS.contains(&keyword) => {
                let schemas = schemas
                    .iter()
                    .map(|(name, schema)| (name, any(schema, exact)));
                written.push((keyword, Json::Object(schemas.collect())));
            }
            _ if SCHEMAS.contains(&keyword) => written.push((keyword, any(value, exact))),
            _ => written.push((keyword, value.clone())),
        }
    }
    // A list of truth values has become a type, which may have stood there before.
    let mut has_type = false;
    written.retain(|(keyword, _)| *keyword != "type" || !std::mem::replace(&mut has_type, true));
    Json::Object(written.into())
}

fn listed<'a>(values: &[Json<'a>], exact: &mut bool) -> (&'a str, Json<'a>) {
    if !values.is_empty() && values.iter().all(Json::is_bool) {
        let both = [true, false].map(|truth| values.contains(&Json::Bool(truth)));
        *exact &= both == [true, true];
        return ("type", "boolean".into());
    }
    ("enum", Json::Array(values.to_vec()))
}
