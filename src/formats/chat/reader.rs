//! Checks that the decoders of a request share: required fields, enumerations, objects.

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
