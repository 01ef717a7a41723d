//! The values of a body, so that those of its translation can be told from what the translation wrote itself.

use std::collections::HashSet;

use serde_json::Value;

use crate::model::split_data_url;

/// Members that name the shape of what they are in: every format has other words for these.
const SHAPE_NAMES: [&str; 3] = ["object", "role", "type"];

/// The values of some documents, and the names of their members.
#[derive(Debug, Default)]
pub struct KnownValues {
    texts: HashSet<String>,
    /// The bits of numbers.
    numbers: HashSet<u64>,
    names: HashSet<String>,
}

/// What the name of a member tells of its values. The name itself may be long, and a list of many values has it for each.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemberName {
    is_shape: bool,
    is_new: bool,
}

impl KnownValues {
    /// Adds the values of a document, if it is one.
    pub fn add(&mut self, document: &str) {
        if let Ok(value) = serde_json::from_str(document) {
            self.add_value(value, true);
        }
    }

    fn add_value(&mut self, value: Value, reads_texts: bool) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                self.numbers.extend(number.as_f64().map(f64::to_bits));
            }
            Value::String(text) => {
                if let Some((media_type, data)) = split_data_url(&text) {
                    self.texts.insert(media_type.to_owned());
                    self.texts.insert(data.to_owned());
                }
                // Arguments of calls are JSON in a text, in some formats.
                if reads_texts && let Some(inner) = inner_document(&text) {
                    self.add_value(inner, false);
                }
                self.texts.insert(text);
            }
            Value::Array(items) => {
                for item in items {
                    self.add_value(item, reads_texts);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.names.insert(name);
                    self.add_value(value, reads_texts);
                }
            }
        }
    }

    /// Reads the name of a member once, for all values that it has.
    pub fn read_name(&self, name: &str) -> MemberName {
        MemberName {
            is_shape: SHAPE_NAMES.contains(&name),
            is_new: !self.names.contains(name),
        }
    }

    /// Tells whether a value, as it is written in JSON, is none of these. `name` is that of its member.
    pub fn lacks(&self, name: MemberName, raw: &str) -> bool {
        if name.is_shape {
            return false;
        }
        match serde_json::from_str(raw) {
            // They are everywhere: a name that is new tells more.
            Ok(Value::Bool(_) | Value::Null) => name.is_new,
            Ok(value) => self.lacks_value(&value, true),
            Err(_) => false,
        }
    }

    fn lacks_value(&self, value: &Value, reads_texts: bool) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => {
                let bits = number.as_f64().map(f64::to_bits);
                bits.is_none_or(|bits| !self.numbers.contains(&bits))
            }
            Value::String(text) => !text.is_empty() && self.lacks_text(text, reads_texts),
            Value::Array(items) => items.iter().any(|item| self.lacks_value(item, reads_texts)),
            Value::Object(members) => {
                let mut values = members.values();
                values.any(|value| self.lacks_value(value, reads_texts))
            }
        }
    }

    fn lacks_text(&self, text: &str, reads_texts: bool) -> bool {
        if self.texts.contains(text) {
            return false;
        }
        if let Some((media_type, data)) = split_data_url(text) {
            return !self.texts.contains(media_type) || !self.texts.contains(data);
        }
        let inner = inner_document(text).filter(|_| reads_texts);
        inner.is_none_or(|inner| self.lacks_value(&inner, false))
    }
}

/// The object or list that a text holds.
fn inner_document(text: &str) -> Option<Value> {
    let begins = text.trim_start().starts_with(['{', '[']);
    begins.then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_wherever_they_went() {
        let mut known = KnownValues::default();
        known.add(r#"{"a":{"b":["x",1.0]},"url":"data:image/png;base64,AAAA","arguments":"{\"city\":\"Paris\",\"n\":3}","on":true}"#);
        for (name, raw, is_new) in [
            ("c", "\"x\"", false),
            ("c", "\"y\"", true),
            ("c", "\"\"", false),
            ("c", "1", false),
            ("c", "1e0", false),
            ("c", "2", true),
            // What is in a text may come out of it, and go into one.
            ("city", "\"Paris\"", false),
            ("n", "3", false),
            ("input", r#""{\"city\":\"Paris\"}""#, false),
            ("input", r#""{\"city\":\"Rome\"}""#, true),
            ("media_type", "\"image/png\"", false),
            ("data", "\"AAAA\"", false),
            ("url", "\"data:image/png;base64,AAAA\"", false),
            ("url", "\"data:image/gif;base64,AAAA\"", true),
            ("type", "\"anything\"", false),
            ("on", "false", false),
            ("store", "false", true),
        ] {
            let of = known.read_name(name);
            assert_eq!(known.lacks(of, raw), is_new, "{name}: {raw}");
        }
    }
}
