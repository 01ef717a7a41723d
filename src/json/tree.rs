//! Decodes any JSON value as a tree.

use std::borrow::Cow;

use serde_json_borrow::ObjectAsVec;

use super::from_json::FromJson;
use super::reader::{DecodeResult, JsonError, JsonReader};
use crate::model::Json;

/// The tree borrows its keys from the text, so that keys with escapes need another way.
const PLAIN_KEY: &str = "a key without escapes";

/// The values of a tree, each of which takes far more memory than its text.
const MAX_VALUES: usize = 1_000_000;
const FEWER_VALUES: &str = "at most 1000000 values";

/// The keys of one object.
const MAX_KEYS: usize = 10_000;
const FEWER_KEYS: &str = "at most 10000 keys in an object";

impl<'a> FromJson<'a> for Json<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        let start = reader.clone();
        let outcome = TreeDecoder::default().fill(self, reader);
        if outcome.is_err() && reader.is_stopped_for(PLAIN_KEY) {
            // Rare: the slower deserializer of the tree, which copies keys and knows no limits.
            *reader = start.clone();
            TreeDecoder::default().count(reader)?;
            *reader = start;
            let tree = serde_json::from_str(reader.raw()?);
            *self = tree.map_err(|_| reader.stop("a value that can be read"))?;
            return Ok(());
        }
        outcome
    }
}

/// Tells whether an error is about one of the limits of a tree.
pub(super) fn is_limit(error: &JsonError) -> bool {
    [FEWER_VALUES, FEWER_KEYS].contains(&error.expected())
}

/// Decodes one tree.
#[derive(Default)]
struct TreeDecoder {
    values: usize,
}

impl TreeDecoder {
    fn fill<'a>(&mut self, target: &mut Json<'a>, reader: &mut JsonReader<'a>) -> DecodeResult {
        self.count_value(reader)?;
        *target = match reader.peek() {
            Some(b'"') => Json::Str(reader.text()?),
            Some(b'{') => {
                let mut object = ObjectAsVec::default();
                let mut keys = 0;
                reader.entries(|reader, key| {
                    count_key(&mut keys, reader)?;
                    let Cow::Borrowed(key) = key else {
                        return Err(reader.stop(PLAIN_KEY));
                    };
                    self.fill(object.insert_unchecked_and_get_mut(key, Json::Null), reader)
                })?;
                Json::Object(object)
            }
            Some(b'[') => {
                let mut items = Elements::default();
                reader.array(|reader| {
                    let mut item = Json::Null;
                    self.fill(&mut item, reader)?;
                    items.push(item);
                    Ok(())
                })?;
                Json::Array(items.into_vec())
            }
            Some(b't' | b'f') => Json::Bool(reader.flag()?),
            Some(b'-' | b'0'..=b'9') => {
                let number = number(reader.number()?);
                number.ok_or_else(|| reader.stop("a number within range"))?
            }
            _ => match reader.null()? {
                true => Json::Null,
                false => return Err(reader.stop("a value")),
            },
        };
        Ok(())
    }

    /// Reads a value only to see whether it is within the limits.
    fn count(&mut self, reader: &mut JsonReader<'_>) -> DecodeResult {
        self.count_value(reader)?;
        match reader.peek() {
            Some(b'{') => {
                let mut keys = 0;
                reader.object(|reader, _| {
                    count_key(&mut keys, reader)?;
                    self.count(reader)
                })
            }
            Some(b'[') => reader.array(|reader| self.count(reader)),
            _ => reader.skip(),
        }
    }

    fn count_value(&mut self, reader: &mut JsonReader<'_>) -> DecodeResult {
        self.values += 1;
        match self.values <= MAX_VALUES {
            true => Ok(()),
            false => Err(reader.stop(FEWER_VALUES)),
        }
    }
}

/// The elements of an array. Where there are many arrays, most hold one at most, and a vector that grows takes room for four.
struct Elements<T> {
    only: Option<T>,
    all: Vec<T>,
}

impl<T> Default for Elements<T> {
    fn default() -> Elements<T> {
        Elements {
            only: None,
            all: Vec::new(),
        }
    }
}

impl<T> Elements<T> {
    fn push(&mut self, element: T) {
        match self.only.take() {
            Some(first) => self.all.extend([first, element]),
            None if self.all.is_empty() => self.only = Some(element),
            None => self.all.push(element),
        }
    }

    fn into_vec(self) -> Vec<T> {
        match self.only {
            Some(only) => vec![only],
            None => self.all,
        }
    }
}

/// The values that a body has which is read as a tree of its own words, such as an error.
const MAX_OWNED_VALUES: usize = 50_000;

/// Decodes a short JSON document. `null`: it is no JSON, or has far more values than one that means something.
pub fn decode_value(body: &[u8]) -> serde_json::Value {
    let Ok(text) = std::str::from_utf8(body) else {
        return serde_json::Value::Null;
    };
    let mut counted = TreeDecoder {
        values: MAX_VALUES - MAX_OWNED_VALUES,
    };
    match counted.count(&mut JsonReader::new(text)) {
        Ok(()) => serde_json::from_str(text).unwrap_or_default(),
        Err(_) => serde_json::Value::Null,
    }
}

fn count_key(keys: &mut usize, reader: &mut JsonReader<'_>) -> DecodeResult {
    *keys += 1;
    match *keys <= MAX_KEYS {
        true => Ok(()),
        false => Err(reader.stop(FEWER_KEYS)),
    }
}

/// An integer where that is exact, else the nearest float. `None`: the number is out of range.
fn number(written: &str) -> Option<Json<'static>> {
    if let Ok(whole) = written.parse::<u64>() {
        return Some(Json::Number(whole.into()));
    }
    match written.parse::<i64>() {
        // `-0` stays a float: integers have no negative zero.
        Ok(whole) if whole != 0 => Some(Json::Number(whole.into())),
        _ => {
            let number: f64 = written.parse().ok()?;
            number.is_finite().then(|| Json::Number(number.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::decode_json;

    fn problem(text: &str) -> Option<String> {
        let decoded: Result<Json<'_>, JsonError> = decode_json(text);
        decoded.err().map(|error| error.to_string())
    }

    #[test]
    fn an_array_of_one_takes_room_for_one() {
        let tree: Json<'_> = decode_json("[[0],[[0]]]").expect("a tree");
        let Json::Array(items) = tree else {
            panic!("an array");
        };
        for item in items {
            let Json::Array(items) = item else {
                panic!("an array");
            };
            assert_eq!(items.capacity(), 1);
        }
    }

    #[test]
    fn a_short_document_has_few_values() {
        let array = |values: usize| format!("[{}]", vec!["0"; values - 1].join(","));
        assert!(decode_value(array(MAX_OWNED_VALUES).as_bytes()).is_array());
        for body in [array(MAX_OWNED_VALUES + 1).as_bytes(), b"[", b"\xff"] {
            assert!(decode_value(body).is_null());
        }
    }

    #[test]
    fn a_tree_has_a_limit_of_values_and_of_keys() {
        let values = |count: usize| vec!["0"; count].join(",");
        let keys = |count: usize| vec!["\"a\":0"; count].join(",");
        // The second one has a key with an escape, which is decoded in another way.
        for before in ["", r#"{"\u0061":0},"#] {
            let within = MAX_VALUES - 1 - 2 * usize::from(!before.is_empty());
            assert_eq!(problem(&format!("[{before}{}]", values(within))), None);
            let found = problem(&format!("[{before}{}]", values(within + 1)));
            assert!(found.is_some_and(|found| found.contains(FEWER_VALUES)));
            assert_eq!(problem(&format!("[{before}{{{}}}]", keys(MAX_KEYS))), None);
            let found = problem(&format!("[{before}{{{}}}]", keys(MAX_KEYS + 1)));
            assert!(found.is_some_and(|found| found.contains(FEWER_KEYS)));
        }
    }
}
