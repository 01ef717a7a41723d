//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use std::sync::LazyLock;

use super::form;
use crate::formats::RequestFindings;
use crate::formats::dearer_setting::{DEARER_FIELDS, USUAL_VALUES, find_dearer_in_form};
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
        "service_tier",
        "speed",
        "inference_geo",
    ],
    nested: &["image_url", "url", "file_id", "b64_json", "detail"],
    opaque: &[],
    types: &["image_url", "input_image"],
    wanted: DEARER_FIELDS,
    ..NO_FIELDS
};

static FIELDS: LazyLock<FieldIndex> = LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, names_model));

/// Returns what decides access and money.
pub(super) fn findings(body: &[u8]) -> RequestFindings {
    if !multipart::is_multipart(body) {
        return RequestFindings::of(body, &FIELDS, USUAL_VALUES);
    }
    let fields = form::decode(body).unwrap_or_default();
    let find = |is_wanted: fn(&str) -> bool| {
        let mut names = fields.iter().map(|field| field.name);
        let found = names.find(|name| is_wanted(name));
        found.map(|name| truncated(name).into_owned())
    };
    RequestFindings {
        unknown_field: find(|name| !FIELDS.knows_top(name)),
        other_model: find(|name| name != "model" && names_model(name, true)),
        dearer: find_dearer_in_form(&fields),
        ..RequestFindings::default()
    }
}
