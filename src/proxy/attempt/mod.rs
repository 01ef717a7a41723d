//! One attempt at an upstream: what is sent, what comes back, and whether another one follows.

pub(super) mod response_memory;
mod retry;
mod upstream_body;
pub(super) mod upstream_credential;
pub(super) mod upstream_request;
pub(super) mod upstream_response;
