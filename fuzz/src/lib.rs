//! The floors of the gateway that are functions over bytes, and what must hold for any bytes at all.
//!
//! They are built here by themselves: the server around them has nothing to fuzz and takes minutes.

pub mod checks;
#[path = "../../src/formats/mod.rs"]
pub mod formats;
pub mod graft;
#[path = "../../src/json/mod.rs"]
pub mod json;
#[path = "../../src/model/mod.rs"]
pub mod model;
#[path = "../../src/sse.rs"]
pub mod sse;
#[path = "../../src/translate/mod.rs"]
pub mod translate;
