//! The error for a request that asks an image model for text alone.

use crate::model::ApiError;

/// Makes the error: the field at `path` decides what the model answers with, and `advice` says how to
/// ask for images.
pub(in crate::formats) fn images_only(path: &str, advice: &str) -> ApiError {
    let message = format!("{path}: this model generates images only; {advice}");
    let mut api_error = ApiError::invalid(message).at(path);
    api_error.code = Some("invalid_model".to_owned());
    api_error
}
