//! The connection to an upstream: the pool, sending a request, the response header, compressed bodies, and redaction of what an upstream says.

pub(super) mod decompress;
pub(super) mod pool;
pub(super) mod redact;
pub(super) mod response_header;
pub(super) mod session;
