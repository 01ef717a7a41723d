//! Omniglot: one API key in front of model backends that speak different wire formats.
#![forbid(unsafe_code)]

pub mod config;
pub mod formats;
pub mod json;
pub mod mock;
pub mod model;
pub mod sse;
