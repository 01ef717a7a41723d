//! The connections of clients: the listener, the limits of how many there are, and what a client says first.

mod client_hello;
mod connection_limits;
pub(super) mod listener;
