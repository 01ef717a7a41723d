//! What a request may cost, before it is forwarded, and what it has cost.

pub(super) mod body_growth;
mod cost;
mod image_output;
mod known_cost;
mod max_input;
mod recording_time;
mod reservation;
mod response_time;
mod searches;
pub(super) mod settlement;
mod thinking_output;

pub(super) use cost::{before_header, keep_cost};
pub(super) use reservation::{image_limit, reserve, reserved_output};
