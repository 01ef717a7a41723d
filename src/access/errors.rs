//! Errors that several checks return.

use std::time::Duration;

use crate::model::{ApiError, ApiErrorKind};

/// The `retry-after` for limits that may be free again at any time.
pub(super) const RETRY_SOON: Duration = Duration::from_secs(1);

/// The error for a key that is not known.
pub fn invalid_key() -> ApiError {
    ApiError::new(ApiErrorKind::Unauthenticated, "the API key is not valid")
}

pub(super) fn retry_after(mut api_error: ApiError, wait: Duration) -> ApiError {
    api_error.retry_after = Some(wait);
    api_error
}
