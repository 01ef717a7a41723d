//! The type that stands for the format: each part of its codec is implemented in the file of its work.

/// The codec of the native format.
pub(in crate::formats) struct Native;
