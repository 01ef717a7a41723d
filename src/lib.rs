//! Omniglot: one API key in front of model backends that speak different wire formats.
#![forbid(unsafe_code)]
// What a request's futures hold is copied from call to call, and kept by every open stream.
#![warn(clippy::large_futures)]

pub mod access;
pub mod admin;
pub mod app;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod formats;
pub mod images;
pub mod journal;
pub mod json;
pub mod metrics;
pub mod mock;
pub mod model;
pub mod proxy;
pub mod runtime;
pub mod sse;
pub mod store;
pub mod translate;
