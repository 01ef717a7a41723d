//! The model's name in the requests of the benches.

/// The model's name in every format.
pub const MODEL: &str = "bench-model";
