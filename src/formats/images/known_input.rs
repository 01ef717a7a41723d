//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use super::form;
use crate::formats::multipart;
use crate::formats::other_model::{find_other_model, names_model};
use crate::json::KnownFields;
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
    base: None,
};

/// Returns the path of the first field that the gateway does not know.
pub(super) fn unknown_field(body: &[u8]) -> Option<String> {
    match multipart::is_multipart(body) {
        true => find_in_form(body, |name| !KNOWN_INPUT.knows_top(name)),
        false => KNOWN_INPUT.find_unknown(str::from_utf8(body).unwrap_or_default()),
    }
}

/// Returns the path of the first field that names another model.
pub(super) fn other_model(body: &[u8]) -> Option<String> {
    match multipart::is_multipart(body) {
        true => find_in_form(body, |name| name != "model" && names_model(name)),
        false => find_other_model(body, &KNOWN_INPUT, None, &[]),
    }
}

fn find_in_form(body: &[u8], is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let fields = form::decode(body).unwrap_or_default();
    let mut names = fields.iter().map(|field| field.name);
    let found = names.find(|name| is_wanted(name));
    found.map(|name| truncated(name).into_owned())
}
