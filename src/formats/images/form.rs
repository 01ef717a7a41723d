//! Forms of image requests.

use crate::formats::multipart::{self, FormRules, MultipartField};
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
