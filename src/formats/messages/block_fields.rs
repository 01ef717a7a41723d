//! Fields and errors that the decoders of content blocks share.

use crate::json::Fields;
use crate::model::{ApiError, FieldLocation, Text};

/// Takes a string that must be there.
pub(super) fn required_text<'a>(
    fields: &mut Fields<'a, '_>,
    key: &str,
) -> Result<Text<'a>, ApiError> {
    let text = fields.text(key)?;
    fields.need(key, text)
}

/// The location of the block itself.
pub(super) fn location_of(fields: &Fields<'_, '_>) -> FieldLocation {
    FieldLocation::Path(fields.path.to_string().into())
}

/// The error for a block of a type that is not allowed at this location.
pub(super) fn unexpected_block(kind: &str, fields: &Fields<'_, '_>) -> ApiError {
    let message = format!("{}: a block of type {kind} cannot stand here", fields.path);
    ApiError::invalid(message).at(fields.path.to_string())
}
