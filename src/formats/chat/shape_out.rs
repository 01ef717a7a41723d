//! The shape of the answer: `response_format`, and the rules that a strict schema must meet.

use serde::Serialize;

use crate::model::{FieldLocation, Json, Losses, OutputFormat, Setting};

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: Named<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Named<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    schema: &'a Json<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

const SHAPE: FieldLocation = FieldLocation::Setting(Setting::OutputFormat);

pub(super) fn encode<'a>(
    shape: &'a OutputFormat<'a>,
    losses: &mut Losses,
) -> Option<ResponseFormat<'a>> {
    let json_schema = match shape {
        OutputFormat::Text => return None,
        OutputFormat::Json => return Some(ResponseFormat::JsonObject),
        OutputFormat::Schema {
            name,
            description,
            schema,
            strict,
        } => Named {
            name: named(name.as_deref(), losses),
            description: description.as_deref(),
            schema,
            strict: match strict {
                // Clients that give no name come from formats that know no such switch.
                None => name.is_none().then(|| may_be_strict(schema)),
                Some(strict) => Some(checked(*strict, schema, SHAPE, losses)),
            },
        },
        // The word comes back in quotes.
        OutputFormat::Enum(schema) => {
            losses.approximated(SHAPE);
            Named {
                name: named(None, losses),
                description: None,
                schema,
                strict: Some(false),
            }
        }
    };
    Some(ResponseFormat::JsonSchema { json_schema })
}

/// A name must be there.
fn named<'a>(name: Option<&'a str>, losses: &mut Losses) -> &'a str {
    name.unwrap_or_else(|| {
        losses.added(SHAPE);
        "response"
    })
}

/// Strict schemas that break the rules are refused upstream, so they are sent as lenient ones.
pub(super) fn checked(
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
const REFUSED: [&str; 11] = [
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

/// The whole must be an object, and all of it keep to the rules.
fn may_be_strict(schema: &Json<'_>) -> bool {
    schema.get("type").as_str() == Some("object") && is_strict(schema)
}

/// Every object closed, every property required, and so on down.
fn is_strict(schema: &Json<'_>) -> bool {
    let Some(keywords) = schema.as_object() else {
        return true;
    };
    if keywords.keys().any(|keyword| REFUSED.contains(&keyword)) {
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
    let required = schema.get("required").as_array().unwrap_or_default();
    let is_required = |name: &str| required.iter().any(|known| known.as_str() == Some(name));
    schema.get("additionalProperties").as_bool() == Some(false)
        && properties.is_none_or(|properties| properties.keys().all(is_required))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_schemas_are_known_by_their_keywords_not_by_names() {
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
