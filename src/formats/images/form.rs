//! Forms of image requests.

use std::borrow::Cow;

use super::Images;
use crate::formats::multipart::{self, FormRules, MultipartField};
use crate::formats::{BodyCodec, to_json_string};
use crate::model::ApiError;

pub(super) const RULES: FormRules = FormRules {
    lists: &["image", "image[]", "images"],
    single: &[
        "model",
        "n",
        "size",
        "quality",
        "stream",
        "async",
        "prompt",
        "mask",
        "background",
        "moderation",
        "output_format",
        "output_compression",
        "response_format",
        "partial_images",
        "seed",
        "user",
    ],
    files: &["mask"],
};

/// Decodes the fields of a form.
pub(super) fn decode(body: &[u8]) -> Result<Vec<MultipartField<'_>>, ApiError> {
    multipart::decode(body, &RULES)
}

impl BodyCodec for Images {
    /// Forms are written anew: parsers read a client's own in too many ways.
    fn rewrite_body(&self, body: &[u8]) -> Result<Option<Vec<u8>>, ApiError> {
        let is_form = multipart::is_multipart(body);
        let rewritten =
            is_form.then(|| multipart::rewrite(body, multipart::own_boundary(), &RULES));
        rewritten.transpose()
    }

    fn content_type(&self, body: &[u8]) -> Cow<'static, str> {
        match multipart::content_type(body) {
            Some(form) => form.into(),
            None => "application/json".into(),
        }
    }

    fn encode_model_name(&self, body: &[u8], name: &str) -> Vec<u8> {
        match multipart::is_multipart(body) {
            true => name.as_bytes().to_vec(),
            false => to_json_string(name),
        }
    }
}
