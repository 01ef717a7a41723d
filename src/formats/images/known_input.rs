//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use std::sync::LazyLock;

use super::form;
use crate::formats::RequestFindings;
use crate::formats::multipart;
use crate::formats::other_model::names_model;
use crate::json::{FieldIndex, KnownFields, NO_FIELDS};
use crate::model::truncated;

/// With any other field, an upstream may read or do what nobody has counted.
const KNOWN_INPUT: KnownFields = KnownFields {
    top: &[
        "model",
        "prompt",
        "n",
        "size",
        "quality",
        "style",
        "response_format",
        "output_format",
        "output_compression",
        "background",
        "moderation",
        "stream",
        "partial_images",
        "user",
        "seed",
        "image",
        "image[]",
        "images",
        "mask",
        "input_fidelity",
        "async",
    ],
    nested: &["image_url", "url", "file_id", "b64_json", "detail"],
    opaque: &[],
    types: &["image_url", "input_image"],
    ..NO_FIELDS
};

static FIELDS: LazyLock<FieldIndex> = LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, names_model));

/// Returns what decides access and money.
pub(super) fn findings(body: &[u8]) -> RequestFindings {
    match multipart::is_multipart(body) {
        true => RequestFindings {
            unknown_field: find_in_form(body, |name| !FIELDS.knows_top(name)),
            other_model: find_in_form(body, |name| name != "model" && names_model(name, true)),
            ..RequestFindings::default()
        },
        false => RequestFindings::of(body, &FIELDS, &[]),
    }
}

fn find_in_form(body: &[u8], is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let fields = form::decode(body).unwrap_or_default();
    let mut names = fields.iter().map(|field| field.name);
    let found = names.find(|name| is_wanted(name));
    found.map(|name| truncated(name).into_owned())
}
