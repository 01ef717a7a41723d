//! The modules of the gateway that are functions over bytes, and the properties that hold for any bytes.
//!
//! They are compiled here without the server, which is not fuzzed and takes minutes to build.

pub mod checks;
#[path = "../../src/event_stream.rs"]
pub mod event_stream;
#[path = "../../src/formats/mod.rs"]
pub mod formats;
#[path = "../../src/json/mod.rs"]
pub mod json;
#[path = "../../src/model/mod.rs"]
pub mod model;
pub mod mutators;
#[path = "../../src/sse.rs"]
pub mod sse;
#[path = "../../src/translate/mod.rs"]
pub mod translate;
