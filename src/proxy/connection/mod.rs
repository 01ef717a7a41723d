//! The connections of clients: the listener, the limits of how many there are, and the framing of what a client sends.

mod chunk_heads;
mod connection_limits;
mod connection_state;
mod header_scanner;
pub(super) mod http1_framing;
mod http1_stream;
pub(super) mod listen_endpoint;
pub(super) mod listener;
mod open_connections;
