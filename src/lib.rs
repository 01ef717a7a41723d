//! Omniglot: one API key in front of model backends that speak different wire formats.
#![forbid(unsafe_code)]

pub mod admin;
pub mod catalog;
pub mod config;
pub mod formats;
pub mod json;
pub mod metrics;
pub mod model;
pub mod runtime;
pub mod sse;
pub mod translate;
