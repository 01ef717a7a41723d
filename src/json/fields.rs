//! A JSON object that is decoded field by field: fields are taken by name and type, what remains is a loss.

use std::fmt::Display;

use serde_json_borrow::ObjectAsVec;

use super::from_json::decode_json;
use super::path::Path;
use super::rules::{NotedField, ObjectRules};
use super::tree::is_limit;
use super::validate_tree::validate_tree;
use crate::model::{ApiError, FieldLocation, Json, Losses, Text};

/// A value and its path.
#[derive(Debug)]
pub struct Node<'a, 'p> {
    pub value: Json<'a>,
    pub path: Path<'p>,
}

impl<'a> Node<'a, '_> {
    /// The error for a value of another kind, which it names.
    #[cold]
    pub fn wrong(&self, expected: &str) -> ApiError {
        let got = match &self.value {
            Json::Null => "null".to_owned(),
            Json::Bool(flag) => flag.to_string(),
            Json::Number(number) => number.to_string(),
            Json::Str(_) => "a string".to_owned(),
            Json::Array(_) => "an array".to_owned(),
            Json::Object(_) => "an object".to_owned(),
        };
        self.path.wrong(&format!("{expected}, got {got}"))
    }

    pub fn text(self) -> Result<Text<'a>, ApiError> {
        match self {
            Node {
                value: Json::Str(text),
                ..
            } => Ok(text),
            other => Err(other.wrong("a string")),
        }
    }

    pub fn f64(self) -> Result<f64, ApiError> {
        self.value.as_f64().ok_or_else(|| self.wrong("a number"))
    }

    /// An integer, which may also be written `40.0`.
    pub fn i64(self) -> Result<i64, ApiError> {
        let whole = |number: f64| (number.fract() == 0.0).then_some(number as i64);
        self.value
            .as_i64()
            .or_else(|| self.value.as_f64().and_then(whole))
            .ok_or_else(|| self.wrong("an integer"))
    }

    pub fn u64(self) -> Result<u64, ApiError> {
        let path = self.path;
        let number = self.i64()?;
        let wrong = || path.wrong(&format!("a non-negative integer, got {number}"));
        u64::try_from(number).map_err(|_| wrong())
    }

    pub fn bool(self) -> Result<bool, ApiError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong("true or false"))
    }

    pub fn fields<T>(
        self,
        decode: impl FnOnce(Fields<'a, '_>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        match self {
            Node {
                value: Json::Object(object),
                path,
            } => decode(Fields::new(object, path)),
            other => Err(other.wrong("an object")),
        }
    }

    pub fn each(
        self,
        mut decode: impl FnMut(u32, Node<'a, '_>) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let (items, parent) = match self {
            Node {
                value: Json::Array(items),
                path,
            } => (items, path),
            other => return Err(other.wrong("an array")),
        };
        for (index, value) in items.into_iter().enumerate() {
            let path = Path::Index(&parent, index);
            let number = u32::try_from(index).map_err(|_| path.wrong("a shorter array"))?;
            decode(number, Node { value, path })?;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub struct Fields<'a, 'p> {
    /// A field that is taken leaves `null` behind.
    object: ObjectAsVec<'a>,
    /// A bit for every length that a key has: most keys that are looked up are absent, and their length
    /// mostly tells.
    lengths: u64,
    pub path: Path<'p>,
}

const fn length_of(key: &str) -> u64 {
    1 << (key.len() % u64::BITS as usize)
}

impl<'a> Fields<'a, 'static> {
    /// Parses a whole request body, which must be an object.
    pub fn of_body(body: &'a [u8]) -> Result<Self, ApiError> {
        let wrong =
            |why: &dyn Display| ApiError::invalid(format!("the body is not valid JSON: {why}"));
        let text = str::from_utf8(body).map_err(|error| wrong(&error))?;
        let decoded = decode_json(text).map_err(|error| match is_limit(&error) {
            true => ApiError::invalid(format!("the body has too many parts: {error}")),
            false => wrong(&error),
        });
        match decoded? {
            Json::Object(object) => Ok(Fields::new(object, Path::Root)),
            _ => Err(ApiError::invalid("the body must be a JSON object")),
        }
    }
}

impl<'a, 'p> Fields<'a, 'p> {
    fn new(object: ObjectAsVec<'a>, path: Path<'p>) -> Fields<'a, 'p> {
        let lengths = object.keys().map(length_of);
        Fields {
            lengths: lengths.fold(0, |all, length| all | length),
            object,
            path,
        }
    }

    /// Validates the object against a table of rules; no field is taken.
    pub fn validate(&self, rules: &'static ObjectRules) -> Result<Vec<NotedField>, ApiError> {
        validate_tree(&self.object, rules, &self.path)
    }

    /// Takes the value of a key; `null` is the same as absent.
    #[inline]
    pub fn take(&mut self, key: &str) -> Option<Json<'a>> {
        if self.lacks(key) {
            return None;
        }
        self.find(key)
    }

    #[inline]
    fn lacks(&self, key: &str) -> bool {
        self.lengths & length_of(key) == 0
    }

    #[inline(never)]
    fn find(&mut self, key: &str) -> Option<Json<'a>> {
        let value = std::mem::take(self.object.get_mut(key)?);
        (!value.is_null()).then_some(value)
    }

    #[inline]
    pub fn node<'s>(&'s mut self, key: &'s str) -> Option<Node<'a, 's>> {
        let value = self.take(key)?;
        Some(Node {
            value,
            path: Path::Key(&self.path, key),
        })
    }

    /// Takes a value of one type. Only the check whether the key is there is inlined: most keys are not.
    #[inline]
    fn typed<T>(
        &mut self,
        key: &str,
        decode: fn(Node<'a, '_>) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        match self.lacks(key) {
            true => Ok(None),
            false => self.decode(key, decode),
        }
    }

    #[inline(never)]
    fn decode<T>(
        &mut self,
        key: &str,
        decode: fn(Node<'a, '_>) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        self.node(key).map(decode).transpose()
    }

    #[inline]
    pub fn text(&mut self, key: &str) -> Result<Option<Text<'a>>, ApiError> {
        self.typed(key, |node| node.text())
    }

    #[inline]
    pub fn f64(&mut self, key: &str) -> Result<Option<f64>, ApiError> {
        self.typed(key, |node| node.f64())
    }

    #[inline]
    pub fn u64(&mut self, key: &str) -> Result<Option<u64>, ApiError> {
        self.typed(key, |node| node.u64())
    }

    #[inline]
    pub fn i64(&mut self, key: &str) -> Result<Option<i64>, ApiError> {
        self.typed(key, |node| node.i64())
    }

    #[inline]
    pub fn bool(&mut self, key: &str) -> Result<Option<bool>, ApiError> {
        self.typed(key, |node| node.bool())
    }

    pub fn each(
        &mut self,
        key: &str,
        decode: impl FnMut(u32, Node<'a, '_>) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        match self.node(key) {
            Some(node) => node.each(decode),
            None => Ok(()),
        }
    }

    /// Returns the value, or the error for a missing required field.
    pub fn need<T>(&self, key: &str, value: Option<T>) -> Result<T, ApiError> {
        value.ok_or_else(|| {
            let path = Path::Key(&self.path, key);
            ApiError::invalid(format!("missing required field {path}")).at(path.to_string())
        })
    }

    /// Reports every field that was not taken as dropped.
    pub fn finish(self, losses: &mut Losses) {
        for (key, value) in self.object.iter() {
            if !losses.has_room() {
                return;
            }
            if !value.is_null() {
                let path = Path::Key(&self.path, key).to_string();
                losses.dropped(FieldLocation::Path(path.into()));
            }
        }
    }
}
