//! The YAML a user writes: read with places, checked as a whole, every problem reported at once.

mod settings;

pub use settings::*;
