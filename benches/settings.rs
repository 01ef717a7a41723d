//! The model that the requests of the benches name.

/// Its name in every format.
pub const MODEL: &str = "bench-model";
