//! The spans of traces that a request and its attempts make.

mod request_spans;
pub(super) mod span_content;
