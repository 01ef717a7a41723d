//! The connections of clients: the listener, and the limits of how many there are.

mod connection_limits;
mod connection_state;
pub(super) mod listen_endpoint;
pub(super) mod listener;
mod open_connections;
