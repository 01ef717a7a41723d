//! Claude on Vertex AI: messages with the model in the path and the version in the body.

use bytes::Bytes;
use serde_json::Value;

use crate::formats::{Operation, take_headers};
use crate::model::Format;

/// What the end of a path asks for, like `claude-opus-4-6:rawPredict`.
pub(super) fn operation(call: &str) -> Option<Operation> {
    match call.rsplit_once(':')? {
        ("count-tokens", "rawPredict") => Some(Operation::CountTokens),
        (_, "rawPredict" | "streamRawPredict") => Some(Operation::Generate),
        _ => None,
    }
}

/// The body as the messages API takes it. What Vertex AI would refuse becomes a body that the mock refuses: one without a
/// version, with a model beside that of the path, or with a stream at the path for none.
pub(super) fn plain_body(call: &str, operation: Operation, body: &Bytes) -> Bytes {
    let fields: Value = serde_json::from_slice(body).unwrap_or_default();
    let has_model = fields.get("model").is_some();
    let is_count = operation == Operation::CountTokens;
    let (model, verb) = call.rsplit_once(':').unwrap_or((call, ""));
    let is_stream = verb == "streamRawPredict";
    if fields.get("anthropic_version").is_none()
        || has_model != is_count
        || (fields["stream"] == true) != is_stream
    {
        return Bytes::new();
    }
    let codec = Format::Messages.codec();
    let body = take_headers(body).unwrap_or_default().0;
    if is_count {
        return body;
    }
    let named = codec.set_model(&body, model);
    named.ok().flatten().unwrap_or_default()
}
