//! Tests of schemas: the dialect decoded into JSON Schema, and JSON Schema encoded in the dialect.

use serde_json::{Value, json};

use crate::formats::native::reference_budget::ReferenceBudget;
use crate::formats::native::schema::{EncodedSchema, encode_schema};
use crate::formats::native::schema_decoder::to_json_schema;
use crate::json::Path;
use crate::model::{FieldLocation, Losses};

/// Decodes a schema of the dialect, with the fields that were dropped.
fn decoded(schema: &str) -> (String, Vec<FieldLocation>) {
    let mut losses = Losses::default();
    let tree = serde_json::from_str(schema).unwrap();
    let schema = to_json_schema(tree, &Path::Key(&Path::Root, "schema"), &mut losses);
    let locations = losses.0.into_iter().map(|loss| loss.location).collect();
    (serde_json::to_string(&schema).unwrap(), locations)
}

#[test]
fn keywords_are_decoded_and_property_names_are_left_alone() {
    let (schema, dropped) = decoded(
        r#"{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true,"enum":["STRING"]},
        "any_of":{"type":"ARRAY","min_items":"2","items":{"any_of":[{"type":"INTEGER"}],"nullable":true}},
        "caf\u00e9":{"type":"NUMBER"}},"required":["type"],"property_ordering":["type"]}"#,
    );
    assert_eq!(
        schema,
        r#"{"type":"object","properties":{"type":{"type":["string","null"],"enum":["STRING"]},"any_of":{"type":"array","minItems":2,"items":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"café":{"type":"number"}},"required":["type"]}"#
    );
    assert_eq!(
        dropped,
        [FieldLocation::Path("schema.property_ordering".into())]
    );
}

#[test]
fn decoding_leaves_values_alone() {
    let same = r#"{"default":{"type":"STRING","nullable":true},"enum":["OBJECT"],"const":{"type":"X"},"additionalProperties":false}"#;
    assert_eq!(decoded(same), (same.to_owned(), vec![]));
}

#[test]
fn an_example_is_dropped() {
    let (schema, dropped) = decoded(r#"{"items":{"type":["STRING","NULL"],"example":"x"}}"#);
    assert_eq!(schema, r#"{"items":{"type":["string","null"]}}"#);
    assert_eq!(
        dropped,
        [FieldLocation::Path("schema.items.example".into())]
    );
}

/// Encodes a schema in the dialect and tells whether nothing was left out; `None` if it is sent as
/// JSON Schema.
fn encoded(schema: &Value) -> Option<(Value, bool)> {
    let text = schema.to_string();
    let tree = serde_json::from_str(&text).unwrap();
    match encode_schema(&tree, &mut ReferenceBudget::default()) {
        EncodedSchema::Native { schema, exact } => {
            let text = serde_json::to_string(&schema).unwrap();
            Some((serde_json::from_str(&text).unwrap(), exact))
        }
        EncodedSchema::JsonSchema { .. } => None,
    }
}

#[test]
fn schemas_that_the_dialect_can_express() {
    for (plain, dialect) in [
        (
            json!({"type": ["string", "null"]}),
            json!({"type": "STRING", "nullable": true}),
        ),
        (
            json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "title": "T"}),
            json!({"type": "INTEGER", "minimum": 1, "title": "T", "nullable": true}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}], "nullable": true}),
        ),
        (
            json!({"type": ["string", "integer"]}),
            json!({"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        ),
        (
            json!({"const": "x"}),
            json!({"type": "STRING", "enum": ["x"]}),
        ),
        (
            json!({"enum": ["a", null]}),
            json!({"type": "STRING", "enum": ["a"], "nullable": true}),
        ),
        (
            json!({"allOf": [{"type": "string", "description": "inner"}], "description": "outer"}),
            json!({"type": "STRING", "description": "outer"}),
        ),
        (
            json!({"type": "array", "items": true, "maxItems": 2}),
            json!({"type": "ARRAY", "items": {}, "maxItems": 2}),
        ),
        (
            json!({"type": "string", "format": "date-time", "pattern": "x", "default": "d"}),
            json!({"type": "STRING", "format": "date-time", "pattern": "x", "default": "d"}),
        ),
    ] {
        assert_eq!(encoded(&plain), Some((dialect, true)), "{plain}");
    }
}

#[test]
fn references_are_resolved() {
    let plain = json!({
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place", "title": "To"}},
        "$defs": {"place": {"type": "object", "properties": {"city": {"$ref": "#/$defs/a~1b"}}},
                  "a/b": {"type": "string"}}
    });
    let place = json!({"type": "OBJECT", "properties": {"city": {"type": "STRING"}}});
    let mut titled = place.clone();
    titled["title"] = "To".into();
    let dialect = json!({"type": "OBJECT", "properties": {"from": place, "to": titled}});
    assert_eq!(encoded(&plain), Some((dialect, true)));
}

#[test]
fn omitted_keywords_are_reported() {
    for key in [
        "$schema",
        "$id",
        "additionalProperties",
        "unevaluatedProperties",
        "examples",
        "not",
        "if",
        "patternProperties",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ] {
        let plain = json!({"type": "object", key: {}});
        let dialect = json!({"type": "OBJECT"});
        assert_eq!(encoded(&plain), Some((dialect, false)), "{key}");
    }
    let text = json!({"type": "STRING"});
    assert_eq!(
        encoded(&json!({"type": "string", "format": "uri"})),
        Some((text, false))
    );
    let either = json!([{"type": "STRING"}, {"type": "NUMBER"}]);
    assert_eq!(
        encoded(&json!({"oneOf": [{"type": "string"}, {"type": "number"}]})),
        Some((json!({"anyOf": either}), false))
    );
}

#[test]
fn names_and_values_are_never_reencoded() {
    let plain = json!({"type": "object",
        "properties": {"type": {"type": "string", "enum": ["string"]}, "$ref": {"type": "boolean"},
                       "const": {"default": {"type": "string", "const": 1}}},
        "required": ["type"]});
    let dialect = json!({"type": "OBJECT",
        "properties": {"type": {"type": "STRING", "enum": ["string"]}, "$ref": {"type": "BOOLEAN"},
                       "const": {"default": {"type": "string", "const": 1}}},
        "required": ["type"]});
    assert_eq!(encoded(&plain), Some((dialect, true)));
}

#[test]
fn properties_keep_their_order() {
    let plain = r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}"#;
    let tree = serde_json::from_str(plain).unwrap();
    let EncodedSchema::Native { schema, .. } =
        encode_schema(&tree, &mut ReferenceBudget::default())
    else {
        panic!("the dialect can say it");
    };
    let sent = serde_json::to_string(&schema).unwrap();
    assert_eq!(
        sent,
        plain
            .replace("object", "OBJECT")
            .replace("\"string", "\"STRING")
    );
}

#[test]
fn schemas_beyond_the_dialect_are_sent_as_json_schema() {
    for plain in [
        json!({"enum": [1, 2]}),
        json!({"const": 1}),
        json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}}),
        json!({"$ref": "#"}),
        json!({"$ref": "https://example.com/s.json"}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"allOf": [{"type": "string"}, {"minLength": 1}]}),
        json!({"type": "array", "prefixItems": [{"type": "string"}]}),
        json!({"type": "array", "items": [{"type": "string"}]}),
        json!({"type": "object", "properties": {"x": false}}),
        json!({"type": "integer", "anyOf": [{"type": "string"}]}),
    ] {
        assert_eq!(encoded(&plain), None, "{plain}");
    }
}

#[test]
fn nested_references_are_limited() {
    let mut plain = json!({"$ref": "#/$defs/d0", "$defs": {"d20": {"type": "string"}}});
    for level in 0..20 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        plain["$defs"][format!("d{level}")] = json!({"properties": {"a": next, "b": next}});
    }
    assert_eq!(encoded(&plain), None);
}
