//! What a client sends, until its model is known: admission, framing, body.

pub(super) mod admission;
pub(super) mod inspected_request;
pub(super) mod model_suffix;
pub(super) mod plain_body;
pub(super) mod request_body;
pub(super) mod request_framing;
