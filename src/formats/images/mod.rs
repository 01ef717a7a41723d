//! The images format, which is OpenAI Images: `POST /v1/images/generations` and `/v1/images/edits`.

mod error;
mod field_paths;
mod form;
mod format;
mod image_header;
mod input_image;
mod known_input;
mod parameters;
mod passthrough;
mod request;
mod request_body;
mod response;
mod stream;
#[cfg(test)]
mod tests;
mod usage;

pub(in crate::formats) use format::Images;
pub use image_header::image_media_type;
pub use response::image_urls;

use http::HeaderName;

use super::{Codec, HeaderFields, HttpApi, Operation, SignatureCodec, chat};
use crate::model::{PartKind, RateLimitStatus, Request};

impl Codec for Images {}

/// The format has no reasoning.
impl SignatureCodec for Images {}

impl HttpApi for Images {
    fn upstream_path(&self, operation: Operation, _model: &str) -> String {
        match operation {
            Operation::Edit => "/images/edits".to_owned(),
            _ => "/images/generations".to_owned(),
        }
    }

    /// A request with input images edits these.
    fn upstream_operation(&self, request: &Request<'_>, _stream: bool) -> Operation {
        let mut parts = request.turns.iter().flat_map(|turn| &turn.parts);
        match parts.any(|part| matches!(part.kind, PartKind::Media(_))) {
            true => Operation::Edit,
            false => Operation::Generate,
        }
    }

    fn passthrough_headers(&self) -> &'static [HeaderName] {
        &chat::OWN_HEADERS
    }

    fn encode_rate_limits(&self, allowance: &RateLimitStatus, fields: &mut HeaderFields) {
        chat::encode_rate_limit_headers(allowance, fields);
    }
}
