//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use std::sync::LazyLock;

use super::input_image::InputImage;
use super::parameters::decode_parameters;
use super::{Images, form};
use crate::formats::chosen_host::chosen_host_in_form;
use crate::formats::dearer_setting::{DEARER_FIELDS, USUAL_VALUES, find_dearer_in_form};
use crate::formats::multipart;
use crate::formats::other_model::model_in_form;
use crate::formats::unknown_fields::UNKNOWN_FIELDS;
use crate::formats::{InputInspection, RequestFindings, RequestHead};
use crate::json::{FieldIndex, KnownFields, NO_FIELDS};
use crate::model::{ApiError, InputMedia, Losses, truncated};

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

static FIELDS: LazyLock<FieldIndex> =
    LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, UNKNOWN_FIELDS));

impl InputInspection for Images {
    fn findings(&self, body: &[u8]) -> RequestFindings {
        if !multipart::is_multipart(body) {
            let findings = RequestFindings::of(body, &FIELDS, USUAL_VALUES);
            return RequestFindings {
                may_make_images: true,
                ..findings
            };
        }
        let fields = form::decode(body).unwrap_or_default();
        let find = |is_wanted: fn(&str) -> bool| {
            let mut names = fields.iter().map(|field| field.name);
            let found = names.find(|name| is_wanted(name));
            found.map(|name| truncated(name).into_owned())
        };
        RequestFindings {
            unknown_field: find(|name| !FIELDS.knows_top(name)),
            other_model: model_in_form(&fields, |name| FIELDS.knows_top(name)),
            dearer: find_dearer_in_form(&fields),
            chosen_host: chosen_host_in_form(&fields),
            may_make_images: true,
            ..RequestFindings::default()
        }
    }

    /// The format has no other input than images that is not in the body.
    fn input_media(&self, head: &RequestHead<'_>, body: &[u8]) -> Result<InputMedia, ApiError> {
        let Ok(parameters) = decode_parameters(head, body, &mut Losses::default()) else {
            return Ok(InputMedia::default());
        };
        let images = parameters.images.iter().chain(&parameters.mask);
        let lengths: Vec<u64> = images.clone().filter_map(InputImage::length).collect();
        Ok(InputMedia {
            count: images.clone().count() as u64,
            linked_images: images.count().saturating_sub(lengths.len()) as u64,
            lengths,
            has_unseen: false,
        })
    }
}
