//! The endpoint that a request was sent to.

use crate::formats::Operation;
use crate::model::Format;

/// What the path of a request tells.
pub(super) struct MockEndpoint {
    pub format: Format,
    pub operation: Operation,
    pub path_model: Option<String>,
}
