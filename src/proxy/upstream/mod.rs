//! The connection to an upstream: the pool, tunnels of proxies, sending a request, the response header, compressed bodies, and redaction of what an upstream says.

pub(super) mod decompress;
mod peer_certificates;
pub(super) mod pool;
pub(super) mod redact;
pub(super) mod response_header;
pub(super) mod session;
mod tunnel;
