//! Faults of upstreams and clients in every pair of formats, after which no request, memory or connection stays.

mod clients;
mod fault_table;
mod faulty_upstream;
mod held_connections;
mod held_handshakes;
mod killed_upstream;
mod matrix;
mod mock_responses;
mod outbound;
mod resets;
mod slow_headers;
