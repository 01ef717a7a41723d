//! The properties that hold for any bytes. Each public module with a `check` is a fuzz target; `check` panics if a property does not hold.

pub mod errors;
pub mod framing;
mod grammar;
pub mod input;
pub mod json;
pub mod replies;
pub mod requests;
pub mod streams;
