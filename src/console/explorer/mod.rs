//! The translation explorer: translates a body as the gateway does, and marks on both sides what becomes of it.

mod comparison;
mod format_losses;
mod known_values;
mod marked_json;
mod marked_paths;
mod samples;

pub use comparison::explore;
pub use format_losses::client_losses;
pub use samples::{format_title, is_sample, sample};
