//! Writes JSON so that it can be read: what is short stands on one line.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

const WIDTH: usize = 120;

/// JSON without white space.
pub fn compact(json: &str) -> String {
    joined(json, ",", ":")
}

/// Lays out JSON that begins this far from the start of its line; fields keep their order.
pub fn layout(json: &str, indent: usize) -> String {
    let short = joined(json, ", ", ": ");
    if indent + short.chars().count() <= WIDTH {
        return short;
    }
    let inner = indent + 1;
    let (open, close, elements) = match Container::of(json) {
        Container::Object(fields) => {
            let field = |(name, value): &(String, Box<RawValue>)| {
                format!("{}: {}", quoted(name), layout(value.get(), inner))
            };
            ("{", "}", fields.iter().map(field).collect::<Vec<_>>())
        }
        Container::Array(elements) => {
            let laid_out = elements.iter().map(|value| layout(value.get(), inner));
            ("[", "]", laid_out.collect())
        }
        Container::None => return short,
    };
    let lines = elements.join(&format!(",\n{}", " ".repeat(inner)));
    format!(
        "{open}\n{}{lines}\n{}{close}",
        " ".repeat(inner),
        " ".repeat(indent)
    )
}

fn joined(json: &str, comma: &str, colon: &str) -> String {
    match Container::of(json) {
        Container::Object(fields) => {
            let field = |(name, value): &(String, Box<RawValue>)| {
                let value = joined(value.get(), comma, colon);
                format!("{}{colon}{value}", quoted(name))
            };
            let fields: Vec<_> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(comma))
        }
        Container::Array(elements) => {
            let elements = elements.iter();
            let elements = elements.map(|value| joined(value.get(), comma, colon));
            let elements: Vec<_> = elements.collect();
            format!("[{}]", elements.join(comma))
        }
        Container::None => json.trim().to_owned(),
    }
}

pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("JSON")
}

enum Container {
    Object(Vec<(String, Box<RawValue>)>),
    Array(Vec<Box<RawValue>>),
    /// A string, a number, true, false or null.
    None,
}

impl Container {
    fn of(json: &str) -> Container {
        match json.trim_start().as_bytes().first() {
            Some(b'{') => {
                let fields: Fields = serde_json::from_str(json).expect("an object");
                Container::Object(fields.0)
            }
            Some(b'[') => Container::Array(serde_json::from_str(json).expect("an array")),
            _ => Container::None,
        }
    }
}

/// The fields of an object in their order.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct FieldVisitor;
        impl<'de> Visitor<'de> for FieldVisitor {
            type Value = Fields;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldVisitor)
    }
}
