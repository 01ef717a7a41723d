//! Checks that the decoders of a request share: required fields, enumerations, ranges.

use std::ops::RangeInclusive;

use crate::json::{Fields, Node, Path};
use crate::model::{ApiError, Json};

/// Takes a field that must be present.
pub(super) fn required<'a, 's>(
    fields: &'s mut Fields<'a, '_>,
    key: &'s str,
) -> Result<Node<'a, 's>, ApiError> {
    let value = fields.take(key);
    Ok(Node {
        value: fields.need(key, value)?,
        path: Path::Key(&fields.path, key),
    })
}

/// Maps a string of a fixed set to its value; any other string is an error that lists the set.
pub(super) fn one_of<T: Copy>(node: Node<'_, '_>, values: &[(&str, T)]) -> Result<T, ApiError> {
    let path = node.path;
    let text = node.text()?;
    if let Some((_, value)) = values.iter().find(|(name, _)| *name == text) {
        return Ok(*value);
    }
    let known: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    Err(path.wrong_text(&known.join(" or "), &text))
}

/// Takes an object that is carried unchanged.
pub(super) fn object<'a>(node: Node<'a, '_>) -> Result<Json<'a>, ApiError> {
    match node.value {
        Json::Object(_) => Ok(node.value),
        _ => Err(node.wrong("an object")),
    }
}

/// Takes an optional number and checks its range.
pub(super) fn number_in(
    fields: &mut Fields<'_, '_>,
    key: &str,
    range: RangeInclusive<f64>,
) -> Result<Option<f64>, ApiError> {
    let value = fields.f64(key)?;
    if value.is_some_and(|value| !range.contains(&value)) {
        let expected = format!("a number_in from {} to {}", range.start(), range.end());
        return Err(Path::Key(&fields.path, key).wrong(&expected));
    }
    Ok(value)
}

/// Takes an optional integer and checks its range.
pub(super) fn integer_in(
    fields: &mut Fields<'_, '_>,
    key: &str,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, ApiError> {
    let value = fields.i64(key)?;
    let Some(value) = value else { return Ok(None) };
    match u64::try_from(value) {
        Ok(value) if range.contains(&value) => Ok(Some(value)),
        _ => {
            let expected = format!("an integer from {} to {}", range.start(), range.end());
            Err(Path::Key(&fields.path, key).wrong(&expected))
        }
    }
}
