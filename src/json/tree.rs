//! Decodes any JSON value as a tree.

use std::borrow::Cow;

use serde_json_borrow::ObjectAsVec;

use super::from_json::FromJson;
use super::reader::{DecodeResult, JsonReader};
use crate::model::Json;

/// The tree borrows its keys from the text, so that keys with escapes need another way.
const PLAIN_KEY: &str = "a key without escapes";

impl<'a> FromJson<'a> for Json<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        let start = reader.clone();
        let outcome = fill(self, reader);
        if outcome.is_err() && reader.is_stopped_for(PLAIN_KEY) {
            // Rare: the slower deserializer of the tree, which copies keys.
            *reader = start;
            let tree = serde_json::from_str(reader.raw()?);
            *self = tree.map_err(|_| reader.stop("a value that can be read"))?;
            return Ok(());
        }
        outcome
    }
}

fn fill<'a>(target: &mut Json<'a>, reader: &mut JsonReader<'a>) -> DecodeResult {
    *target = match reader.peek() {
        Some(b'"') => Json::Str(reader.text()?),
        Some(b'{') => {
            let mut object = ObjectAsVec::default();
            reader.entries(|reader, key| match key {
                Cow::Borrowed(key) => {
                    fill(object.insert_unchecked_and_get_mut(key, Json::Null), reader)
                }
                Cow::Owned(_) => Err(reader.stop(PLAIN_KEY)),
            })?;
            Json::Object(object)
        }
        Some(b'[') => {
            let mut items = Vec::new();
            reader.array(|reader| {
                let mut item = Json::Null;
                fill(&mut item, reader)?;
                items.push(item);
                Ok(())
            })?;
            Json::Array(items)
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
