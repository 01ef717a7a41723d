//! The native format: Gemini generateContent.

pub mod request;
pub mod response;
pub mod stream;
pub mod strict;
