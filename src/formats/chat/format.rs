//! The type that stands for the format: each part of its codec is implemented in the file of its work.

/// The codec of the chat format.
pub(in crate::formats) struct Chat;
