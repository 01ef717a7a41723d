//! The messages format: Anthropic Messages.

pub mod request;
pub mod response;
pub mod stream;
pub mod strict;
