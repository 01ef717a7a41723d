//! The chat format: OpenAI Chat Completions.

pub mod request;
pub mod response;
pub mod stream;
pub mod strict;
