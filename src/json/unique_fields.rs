//! Decodes a few fields of an object strictly: each may stand there once, in a spelling that every parser reads alike.
//!
//! Of a field that stands there twice one parser takes the first and another the last; some do not mind the
//! case of a name. What decides access or money must not depend on that.

use super::from_json::{FromJson, RawJson, decode_json};
use super::reader::{DecodeResult, JsonError, JsonReader};
use crate::model::{ApiError, truncated};

/// One field, as it stands in the object.
#[derive(Debug, Clone, Copy, Default)]
pub struct UniqueField<'a> {
    /// The object that it is in; `None`: the body itself.
    parent: Option<&'static str>,
    name: &'static str,
    value: RawJson<'a>,
}

/// Why the fields could not be decoded.
#[derive(Debug)]
pub enum UniqueFieldsError {
    Syntax(JsonError),
    Refused(ApiError),
}

/// Decodes the fields of an object; the first spelling of each is the documented one. `Err`: the text is no
/// object, or a field stands there twice or in another case.
pub fn decode_unique<'a, const N: usize>(
    text: &'a str,
    parent: Option<&'static str>,
    spellings: [&[&'static str]; N],
) -> Result<[UniqueField<'a>; N], UniqueFieldsError> {
    let mut fields = spellings.map(|names| UniqueField {
        parent,
        name: names[0],
        value: RawJson::default(),
    });
    let mut reader = match parent {
        None => JsonReader::of_request(text),
        Some(_) => JsonReader::new(text),
    };
    let mut refused = None;
    let outcome = reader.object(|reader, key| {
        for (field, names) in fields.iter_mut().zip(spellings) {
            if let Some(name) = names.iter().find(|name| **name == key) {
                return field.take(name, reader, &mut refused);
            }
        }
        refuse_other_case(key, parent, &spellings, &mut refused);
        match refused {
            None => reader.skip(),
            Some(_) => Err(reader.stop("another spelling")),
        }
    });
    match (refused, outcome.and_then(|()| reader.end())) {
        (Some(api_error), _) => Err(UniqueFieldsError::Refused(api_error)),
        (None, Err(_)) => Err(UniqueFieldsError::Syntax(reader.problem())),
        (None, Ok(())) => Ok(fields),
    }
}

/// Refuses a name that parsers which ignore the case would take for a known one.
pub(super) fn refuse_other_case(
    key: &str,
    parent: Option<&'static str>,
    spellings: &[&[&'static str]],
    refused: &mut Option<ApiError>,
) {
    let mut names = spellings.iter().flat_map(|names| names.iter());
    if let Some(name) = names.find(|name| is_same_but_for_case(key, name)) {
        let (key, name) = (path(parent, &truncated(key)), path(parent, name));
        let message = format!("`{key}` must be spelled `{name}`");
        *refused = Some(ApiError::invalid(message).at(key));
    }
}

/// Compares as the most lenient parsers do: `ſ` is an `s` to them, and the Kelvin sign a `k`.
pub fn is_same_but_for_case(key: &str, name: &str) -> bool {
    if key.is_ascii() {
        return key.eq_ignore_ascii_case(name);
    }
    let folded = key.chars().flat_map(char::to_uppercase);
    let folded = folded.flat_map(char::to_lowercase);
    folded.eq(name.chars().map(|letter| letter.to_ascii_lowercase()))
}

fn path(parent: Option<&'static str>, name: &str) -> String {
    match parent {
        Some(parent) => format!("{parent}.{name}"),
        None => name.to_owned(),
    }
}

impl<'a> UniqueField<'a> {
    /// A field that the body does not have, until it is taken from there.
    pub fn absent(name: &'static str) -> UniqueField<'a> {
        UniqueField {
            name,
            ..UniqueField::default()
        }
    }

    pub(super) fn take(
        &mut self,
        name: &'static str,
        reader: &mut JsonReader<'a>,
        refused: &mut Option<ApiError>,
    ) -> DecodeResult {
        if self.value.written().is_some() {
            let (first, second) = (self.path(), path(self.parent, name));
            let message = match first == second {
                true => format!("`{first}` stands there twice: send it once"),
                false => format!("`{first}` and `{second}` are the same field: send one of them"),
            };
            *refused = Some(ApiError::invalid(message).at(second));
            return Err(reader.stop("each field once"));
        }
        self.name = name;
        self.value.decode(reader)
    }

    /// The path of the field, in the spelling of the client.
    pub fn path(&self) -> String {
        path(self.parent, self.name)
    }

    /// The name of the field, in the spelling of the client.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The value as it stands there, also `null`.
    pub fn written(&self) -> Option<RawJson<'a>> {
        self.value.written()
    }

    /// The value; `null` is the same as absent.
    pub fn value(&self) -> Option<RawJson<'a>> {
        self.written().filter(|value| value.get() != "null")
    }

    /// The error for a value of another kind.
    #[cold]
    pub fn wrong(&self, expected: &str) -> ApiError {
        let (path, got) = (self.path(), describe(self.value.get()));
        ApiError::invalid(format!("`{path}` must be {expected}, got {got}")).at(path)
    }

    /// The value as a boolean.
    pub fn flag(&self) -> Result<Option<bool>, ApiError> {
        let flag = |value: RawJson<'_>| value.get().parse().map_err(|_| self.wrong("a boolean"));
        self.value().map(flag).transpose()
    }

    /// The value, decoded; where it is absent, the default.
    pub fn decoded<T: FromJson<'a>>(&self, expected: &str) -> Result<T, ApiError> {
        match self.value() {
            Some(value) => decode_json(value.get()).map_err(|_| self.wrong(expected)),
            None => Ok(T::default()),
        }
    }

    /// The value as a number of things, which may also be written `40.0`; one beyond all limits is the largest.
    pub fn count(&self) -> Result<Option<u64>, ApiError> {
        let count = |value: RawJson<'_>| {
            parse_count(value.get()).ok_or_else(|| self.wrong("a non-negative integer"))
        };
        self.value().map(count).transpose()
    }

    /// The same, in formats whose numbers may stand in quotes.
    pub fn count_or_text(&self) -> Result<Option<u64>, ApiError> {
        let text = self.value().and_then(RawJson::text);
        match text {
            Some(text) => match parse_count(&text) {
                Some(count) => Ok(Some(count)),
                None => Err(self.wrong("a non-negative integer")),
            },
            None => self.count(),
        }
    }
}

fn parse_count(text: &str) -> Option<u64> {
    if let Ok(count) = text.parse() {
        return Some(count);
    }
    let number: f64 = text.parse().ok()?;
    (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
}

/// What was seen, in an error message.
fn describe(value: &str) -> String {
    match value.as_bytes().first() {
        Some(b'"') => "a string".to_owned(),
        Some(b'[') => "an array".to_owned(),
        Some(b'{') => "an object".to_owned(),
        _ => truncated(value).into_owned(),
    }
}

#[cfg(test)]
#[path = "tests/unique_fields.rs"]
mod tests;
