//! Schemas of other formats in the dialect of this one.

use serde_json::{Value, json};

use crate::formats::native::schema_encoder::{Written, write};

/// The schema as sent, and whether nothing was left out; `None`: it must be sent as it is.
fn written(schema: &Value) -> Option<(Value, bool)> {
    let text = schema.to_string();
    let tree = serde_json::from_str(&text).unwrap();
    match write(&tree) {
        Written::Dialect { schema, exact } => {
            let text = serde_json::to_string(&schema).unwrap();
            Some((serde_json::from_str(&text).unwrap(), exact))
        }
        Written::Plain { .. } => None,
    }
}

#[test]
fn what_the_dialect_can_say() {
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
        assert_eq!(written(&plain), Some((dialect, true)), "{plain}");
    }
}

#[test]
fn references_are_written_out() {
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
    assert_eq!(written(&plain), Some((dialect, true)));
}

#[test]
fn what_is_left_out_is_owned_up_to() {
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
        assert_eq!(written(&plain), Some((dialect, false)), "{key}");
    }
    let text = json!({"type": "STRING"});
    assert_eq!(
        written(&json!({"type": "string", "format": "uri"})),
        Some((text, false))
    );
    let either = json!([{"type": "STRING"}, {"type": "NUMBER"}]);
    assert_eq!(
        written(&json!({"oneOf": [{"type": "string"}, {"type": "number"}]})),
        Some((json!({"anyOf": either}), false))
    );
}

#[test]
fn names_and_values_are_never_rewritten() {
    let plain = json!({"type": "object",
        "properties": {"type": {"type": "string", "enum": ["string"]}, "$ref": {"type": "boolean"},
                       "const": {"default": {"type": "string", "const": 1}}},
        "required": ["type"]});
    let dialect = json!({"type": "OBJECT",
        "properties": {"type": {"type": "STRING", "enum": ["string"]}, "$ref": {"type": "BOOLEAN"},
                       "const": {"default": {"type": "string", "const": 1}}},
        "required": ["type"]});
    assert_eq!(written(&plain), Some((dialect, true)));
}

#[test]
fn properties_keep_their_order() {
    let plain = r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}"#;
    let tree = serde_json::from_str(plain).unwrap();
    let Written::Dialect { schema, .. } = write(&tree) else {
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
fn what_the_dialect_cannot_say_is_sent_as_it_is() {
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
        assert_eq!(written(&plain), None, "{plain}");
    }
}

#[test]
fn references_cannot_blow_a_schema_up() {
    let mut plain = json!({"$ref": "#/$defs/d0", "$defs": {"d20": {"type": "string"}}});
    for level in 0..20 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        plain["$defs"][format!("d{level}")] = json!({"properties": {"a": next, "b": next}});
    }
    assert_eq!(written(&plain), None);
}
