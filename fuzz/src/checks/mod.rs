//! What must hold for any bytes at all. Each module is one fuzz target: `check` panics when something does not.

pub mod errors;
pub mod framing;
mod grammar;
pub mod input;
pub mod json;
pub mod replies;
pub mod requests;
pub mod streams;
