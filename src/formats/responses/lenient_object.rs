//! A JSON object of an upstream, decoded leniently: a field that is missing or of another type counts as empty.

use std::borrow::Cow;

use crate::model::{Json, Text};

/// An object whose fields are taken out one by one.
pub(super) struct LenientObject<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl<'a> LenientObject<'a> {
    /// Takes a value apart; anything but an object has no fields.
    pub(super) fn of(value: Json<'a>) -> LenientObject<'a> {
        match value {
            Json::Object(fields) => LenientObject(fields.into_vec()),
            _ => LenientObject(Vec::new()),
        }
    }

    /// Takes out a value of any type.
    pub(super) fn take(&mut self, key: &str) -> Json<'a> {
        match self.0.iter().position(|(name, _)| name == key) {
            Some(at) => self.0.swap_remove(at).1,
            None => Json::Null,
        }
    }

    /// Takes out a string.
    pub(super) fn text(&mut self, key: &str) -> Text<'a> {
        match self.take(key) {
            Json::Str(text) => text,
            _ => Text::default(),
        }
    }

    /// Takes out an array.
    pub(super) fn list(&mut self, key: &str) -> Vec<Json<'a>> {
        match self.take(key) {
            Json::Array(items) => items,
            _ => Vec::new(),
        }
    }

    /// Takes out an unsigned integer.
    pub(super) fn number(&mut self, key: &str) -> u64 {
        self.take(key).as_u64().unwrap_or_default()
    }
}
