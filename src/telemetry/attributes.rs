//! The attributes of a span, and how they are added: what is not known is left out.

use super::otlp::{AnyValue, AttributeList, AttributeValue, KeyValue};

/// The attributes of one span or of the resource.
#[derive(Debug, Default)]
pub struct Attributes(Vec<KeyValue>);

impl Attributes {
    pub fn with_capacity(count: usize) -> Attributes {
        Attributes(Vec::with_capacity(count))
    }

    pub fn into_list(self) -> Vec<KeyValue> {
        self.0
    }

    pub fn text(&mut self, name: &str, value: impl Into<String>) {
        self.add(name, AttributeValue::Text(value.into()));
    }

    /// Adds a text that may not be known.
    pub fn known_text(&mut self, name: &str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    pub fn flag(&mut self, name: &str, value: bool) {
        self.add(name, AttributeValue::Flag(value));
    }

    pub fn integer(&mut self, name: &str, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.add(name, AttributeValue::Integer(value));
    }

    /// Adds a count that means nothing where it is zero.
    pub fn positive(&mut self, name: &str, value: u64) {
        if value > 0 {
            self.integer(name, value);
        }
    }

    pub fn number(&mut self, name: &str, value: f64) {
        self.add(name, AttributeValue::Number(value));
    }

    /// Adds a list of texts, unless it is empty.
    pub fn texts(&mut self, name: &str, values: &[&str]) {
        if values.is_empty() {
            return;
        }
        let values = values.iter().map(|value| AnyValue {
            value: Some(AttributeValue::Text((*value).to_owned())),
        });
        let values = values.collect();
        self.add(name, AttributeValue::List(AttributeList { values }));
    }

    fn add(&mut self, name: &str, value: AttributeValue) {
        self.0.push(KeyValue {
            key: name.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
        });
    }
}
