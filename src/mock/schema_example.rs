//! Makes an example value for a JSON Schema: `{"type":"string"}` → `"example"`.

use serde_json::{Map, Number, Value, json};

use crate::model::Json;

/// The most levels of an example: schemas may refer to themselves.
const MAX_DEPTH: usize = 16;

/// Makes an example, always the same for a schema. Types may be in upper case.
pub(super) fn example(schema: &Json<'_>) -> Value {
    SchemaExample { root: schema }.of(schema, 0)
}

struct SchemaExample<'s> {
    root: &'s Json<'s>,
}

impl<'s> SchemaExample<'s> {
    fn of(&self, schema: &'s Json<'s>, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        if let Some(fixed) = fixed(schema) {
            return fixed;
        }
        if let Some(target) = schema.get("$ref").as_str() {
            return match self.resolve(target) {
                Some(target) => self.of(target, depth + 1),
                None => json!({}),
            };
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(first) = schema.get(choice).as_array().and_then(first_solid) {
                return self.of(first, depth + 1);
            }
        }
        if let Some(all) = schema.get("allOf").as_array() {
            return self.merged(schema, all, depth);
        }
        match kind(schema).as_str() {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => string(schema).into(),
            "integer" | "number" => number(schema),
            "boolean" => true.into(),
            _ => Value::Null,
        }
    }

    fn object(&self, schema: &'s Json<'s>, depth: usize) -> Value {
        let required = schema.get("required").as_array();
        let is_required = |name: &str| {
            required.is_none_or(|names| names.iter().any(|listed| listed.as_str() == Some(name)))
        };
        let properties = schema.get("properties").as_object();
        let mut object: Map<String, Value> = properties
            .into_iter()
            .flat_map(|properties| properties.iter())
            .filter(|(name, _)| is_required(name))
            .map(|(name, property)| (name.to_owned(), self.of(property, depth + 1)))
            .collect();
        for name in required
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str())
        {
            object.entry(name).or_insert_with(|| json!("example"));
        }
        object.into()
    }

    fn array(&self, schema: &'s Json<'s>, depth: usize) -> Value {
        let least = schema.get("minItems").as_u64().unwrap_or(1);
        let most = schema.get("maxItems").as_u64().unwrap_or(u64::MAX);
        let item = self.of(schema.get("items"), depth + 1);
        (0..least.clamp(1, 100).min(most))
            .map(|_| item.clone())
            .collect()
    }

    /// Makes an object that fits several schemas: with everything that any of them requires.
    fn merged(&self, schema: &'s Json<'s>, all: &'s [Json<'s>], depth: usize) -> Value {
        let own = schema.get("properties").as_object();
        let own = own.map(|_| self.object(schema, depth));
        let mut merged = None;
        for value in all.iter().map(|one| self.of(one, depth + 1)).chain(own) {
            match (&mut merged, value) {
                (Some(Value::Object(into)), Value::Object(more)) => into.extend(more),
                (Some(_), _) => {}
                (empty, value) => *empty = Some(value),
            }
        }
        merged.unwrap_or(Value::Null)
    }

    /// Local references only: `#/$defs/place`.
    fn resolve(&self, target: &str) -> Option<&'s Json<'s>> {
        let mut at = self.root;
        for step in target.strip_prefix('#')?.split('/').skip(1) {
            at = at
                .as_object()?
                .get(&step.replace("~1", "/").replace("~0", "~"))?;
        }
        Some(at)
    }
}

fn fixed(schema: &Json<'_>) -> Option<Value> {
    let object = schema.as_object()?;
    let listed = object
        .get("enum")
        .and_then(|words| words.as_array()?.first());
    let value = object.get("const").or(listed)?;
    Some(Value::from(value.clone()))
}

fn first_solid<'s>(choices: &'s [Json<'s>]) -> Option<&'s Json<'s>> {
    choices
        .iter()
        .find(|choice| kind(choice) != "null")
        .or(choices.first())
}

/// Returns the schema's type in lower case, guessed from its keywords where it has none.
fn kind(schema: &Json<'_>) -> String {
    let named = match schema.get("type") {
        Json::Array(kinds) => kinds
            .iter()
            .filter_map(|kind| kind.as_str())
            .find(|kind| !kind.eq_ignore_ascii_case("null")),
        kind => kind.as_str(),
    };
    match named {
        Some(kind) => kind.to_ascii_lowercase(),
        None if schema.get("properties").is_object() => "object".to_owned(),
        None if schema.get("items").is_object() => "array".to_owned(),
        None => "string".to_owned(),
    }
}

fn string(schema: &Json<'_>) -> String {
    let example = match schema.get("format").as_str() {
        Some("date-time") => "2026-01-01T12:00:00Z",
        Some("date") => "2026-01-01",
        Some("time") => "12:00:00Z",
        Some("duration") => "PT1H",
        Some("email") => "someone@example.com",
        Some("hostname") => "example.com",
        Some("uri") => "https://example.com/",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "example",
    };
    let length = |word| {
        let length = schema.get(word).as_u64()?;
        usize::try_from(length.min(10_000)).ok()
    };
    let least = length("minLength").unwrap_or(0);
    let most = length("maxLength").unwrap_or(usize::MAX);
    let padding = std::iter::repeat_n('x', least.saturating_sub(example.len()));
    example.chars().chain(padding).take(most).collect()
}

fn number(schema: &Json<'_>) -> Value {
    let bound = |word| schema.get(word).as_f64();
    let mut value: f64 = 1.0;
    if let Some(most) = bound("maximum") {
        value = value.min(most);
    }
    if let Some(most) = bound("exclusiveMaximum").filter(|most| value >= *most) {
        value = most - 1.0;
    }
    if let Some(least) = bound("minimum") {
        value = value.max(least);
    }
    if let Some(least) = bound("exclusiveMinimum").filter(|least| value <= *least) {
        value = least + 1.0;
    }
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        value = (value / step).ceil() * step;
    }
    if kind(schema) == "integer" {
        value = value.ceil();
    }
    whole(value).map_or_else(|| Number::from_f64(value).into(), Value::from)
}

/// `1`, not `1.0`: readers of integers insist.
fn whole(value: f64) -> Option<i64> {
    let text = format!("{value:.0}");
    let whole: i64 = text.parse().ok()?;
    (value.fract() == 0.0).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &str) -> Value {
        let schema: Json<'_> = serde_json::from_str(schema).unwrap();
        example(&schema)
    }

    #[test]
    fn plain_types_have_plain_examples() {
        assert_eq!(of(r#"{"type":"string"}"#), json!("example"));
        assert_eq!(of(r#"{"type":"STRING","maxLength":3}"#), json!("exa"));
        assert_eq!(of(r#"{"type":["null","integer"]}"#), json!(1));
        assert_eq!(of(r#"{"type":"integer","minimum":18}"#), json!(18));
        assert_eq!(
            of(r#"{"type":"number","exclusiveMaximum":0.5}"#),
            json!(-0.5)
        );
        assert_eq!(of(r#"{"type":"boolean"}"#), json!(true));
        assert_eq!(
            of(r#"{"type":"string","format":"date"}"#),
            json!("2026-01-01")
        );
        assert_eq!(of(r#"{"enum":["red","blue"]}"#), json!("red"));
        assert_eq!(of(r#"{"const":7}"#), json!(7));
        assert_eq!(of("{}"), json!("example"));
    }

    #[test]
    fn objects_hold_what_is_required_or_else_everything() {
        let properties = r#""properties":{"city":{"type":"string"},"days":{"type":"integer"}}"#;
        assert_eq!(
            of(&format!(
                r#"{{"type":"object",{properties},"required":["city"]}}"#
            )),
            json!({"city": "example"})
        );
        assert_eq!(
            of(&format!("{{{properties}}}")),
            json!({"city": "example", "days": 1})
        );
        assert_eq!(of(r#"{"type":"object"}"#), json!({}));
        assert_eq!(
            of(r#"{"type":"object","required":["free"]}"#),
            json!({"free": "example"})
        );
    }

    #[test]
    fn lists_are_as_long_as_they_must_be() {
        let of_numbers = |bounds| {
            of(&format!(
                r#"{{"type":"array","items":{{"type":"number"}}{bounds}}}"#
            ))
        };
        assert_eq!(of_numbers(""), json!([1]));
        assert_eq!(of_numbers(r#","minItems":3"#), json!([1, 1, 1]));
        assert_eq!(of_numbers(r#","maxItems":0"#), json!([]));
    }

    #[test]
    fn references_and_choices_are_followed_but_not_for_ever() {
        let place = r##"{"$defs":{"place":{"type":"object","properties":{"at":{"type":"number"}}}},
            "anyOf":[{"type":"null"},{"$ref":"#/$defs/place"}]}"##;
        assert_eq!(of(place), json!({"at": 1}));
        let both =
            r#"{"allOf":[{"properties":{"a":{"const":1}}},{"properties":{"b":{"const":2}}}]}"#;
        assert_eq!(of(both), json!({"a": 1, "b": 2}));
        let endless =
            r##"{"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]}"##;
        assert!(of(endless).is_object());
    }
}
