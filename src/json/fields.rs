//! One JSON object being read: fields are taken by name and type, what remains was not understood.

use std::fmt::{self, Display};

use serde_json_borrow::ObjectAsVec;

use super::from_json::decode_json;
use super::shape::{NotedField, ObjectRules};
use super::walk::walk;
use crate::model::{ApiError, FieldLocation, Json, Losses, Text};

/// Where a value stands, as `messages[3].content`; costs nothing until it is printed.
#[derive(Debug, Clone, Copy)]
pub enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Key(Path::Root, key) => out.write_str(key),
            Path::Key(parent, key) => write!(out, "{parent}.{key}"),
            Path::Index(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

impl Path<'_> {
    #[cold]
    pub fn wrong(&self, expected: &str) -> ApiError {
        ApiError::invalid(format!("{self}: expected {expected}")).at(self.to_string())
    }
}

/// A value and where it stands.
#[derive(Debug)]
pub struct Node<'a, 'p> {
    pub value: Json<'a>,
    pub path: Path<'p>,
}

impl<'a> Node<'a, '_> {
    pub fn text(self) -> Result<Text<'a>, ApiError> {
        match self.value {
            Json::Str(text) => Ok(text),
            _ => Err(self.path.wrong("a string")),
        }
    }

    pub fn f64(self) -> Result<f64, ApiError> {
        self.value
            .as_f64()
            .ok_or_else(|| self.path.wrong("a number"))
    }

    /// Whole numbers may be spelled `40.0`.
    pub fn i64(self) -> Result<i64, ApiError> {
        let whole = |number: f64| (number.fract() == 0.0).then_some(number as i64);
        self.value
            .as_i64()
            .or_else(|| self.value.as_f64().and_then(whole))
            .ok_or_else(|| self.path.wrong("an integer"))
    }

    pub fn u64(self) -> Result<u64, ApiError> {
        let path = self.path;
        u64::try_from(self.i64()?).map_err(|_| path.wrong("a non-negative integer"))
    }

    pub fn bool(self) -> Result<bool, ApiError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.path.wrong("true or false"))
    }

    pub fn fields<T>(
        self,
        read: impl FnOnce(Fields<'a, '_>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        match self.value {
            Json::Object(object) => read(Fields::new(object, self.path)),
            _ => Err(self.path.wrong("an object")),
        }
    }

    pub fn each(
        self,
        mut read: impl FnMut(u32, Node<'a, '_>) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let Json::Array(items) = self.value else {
            return Err(self.path.wrong("an array"));
        };
        for (index, value) in items.into_iter().enumerate() {
            let path = Path::Index(&self.path, index);
            let number = u32::try_from(index).map_err(|_| path.wrong("a shorter array"))?;
            read(number, Node { value, path })?;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub struct Fields<'a, 'p> {
    /// What is taken leaves `null` behind.
    object: ObjectAsVec<'a>,
    /// A bit for every length that a key has: nearly all that is looked for is not there, and most
    /// of that is known by its length.
    lengths: u64,
    pub path: Path<'p>,
}

const fn length_of(key: &str) -> u64 {
    1 << (key.len() % u64::BITS as usize)
}

impl<'a> Fields<'a, 'static> {
    /// A whole request body.
    pub fn of_body(body: &'a [u8]) -> Result<Self, ApiError> {
        let wrong =
            |why: &dyn Display| ApiError::invalid(format!("the body is not valid JSON: {why}"));
        let text = str::from_utf8(body).map_err(|error| wrong(&error))?;
        match decode_json(text).map_err(|error| wrong(&error))? {
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

    /// What is there against a table of rules; nothing is taken.
    pub fn hold(&self, shape: &'static ObjectRules) -> Result<Vec<NotedField>, ApiError> {
        walk(&self.object, shape, &self.path)
    }

    /// The value of a key, taken out; `null` is the same as absent.
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

    /// A value of a kind. Only the look whether it is there stands where it is asked for: most of
    /// what is asked for is not, and the code for what is would be there many times over.
    #[inline]
    fn one<T>(
        &mut self,
        key: &str,
        read: fn(Node<'a, '_>) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        match self.lacks(key) {
            true => Ok(None),
            false => self.read(key, read),
        }
    }

    #[inline(never)]
    fn read<T>(
        &mut self,
        key: &str,
        read: fn(Node<'a, '_>) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        self.node(key).map(read).transpose()
    }

    #[inline]
    pub fn text(&mut self, key: &str) -> Result<Option<Text<'a>>, ApiError> {
        self.one(key, |node| node.text())
    }

    #[inline]
    pub fn f64(&mut self, key: &str) -> Result<Option<f64>, ApiError> {
        self.one(key, |node| node.f64())
    }

    #[inline]
    pub fn u64(&mut self, key: &str) -> Result<Option<u64>, ApiError> {
        self.one(key, |node| node.u64())
    }

    #[inline]
    pub fn i64(&mut self, key: &str) -> Result<Option<i64>, ApiError> {
        self.one(key, |node| node.i64())
    }

    #[inline]
    pub fn bool(&mut self, key: &str) -> Result<Option<bool>, ApiError> {
        self.one(key, |node| node.bool())
    }

    pub fn each(
        &mut self,
        key: &str,
        read: impl FnMut(u32, Node<'a, '_>) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        match self.node(key) {
            Some(node) => node.each(read),
            None => Ok(()),
        }
    }

    /// The error for a key that must be there.
    pub fn need<T>(&self, key: &str, value: Option<T>) -> Result<T, ApiError> {
        value.ok_or_else(|| {
            let path = Path::Key(&self.path, key);
            ApiError::invalid(format!("missing required field {path}")).at(path.to_string())
        })
    }

    /// Whatever was not taken has no counterpart.
    pub fn finish(self, losses: &mut Losses) {
        for (key, value) in self.object.iter() {
            if !value.is_null() {
                let path = Path::Key(&self.path, key).to_string();
                losses.dropped(FieldLocation::Path(path.into()));
            }
        }
    }
}
