//! Requests: `input` is a text, a list of texts, a list of tokens, or a list of such lists.

use std::sync::LazyLock;

use serde::Serialize;

use crate::formats::dearer_setting::{DEARER_FIELDS, USUAL_VALUES};
use crate::formats::embedding_codec::check_count;
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::token_input::{TokenInput, count_unknown_inputs};
use crate::formats::unknown_fields::UNKNOWN_FIELDS;
use crate::formats::{
    EmbeddingSummary, ModelField, RequestFindings, UpstreamTarget, decode_model_name,
    decode_unique_fields,
};
use crate::json::{FieldIndex, Fields, JsonReader, KnownFields, NO_FIELDS, Node, RawJson};
use crate::model::{ApiError, EmbeddingRequest, FieldLocation, Json, Losses, Text};

const KNOWN_INPUT: KnownFields = KnownFields {
    top: &[
        "model",
        "input",
        "dimensions",
        "encoding_format",
        "user",
        "service_tier",
        "speed",
        "inference_geo",
    ],
    opaque: &["metadata"],
    wanted: DEARER_FIELDS,
    ..NO_FIELDS
};

static FIELDS: LazyLock<FieldIndex> =
    LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, UNKNOWN_FIELDS));

/// Settings of vendors that are lists.
const LIST_SETTINGS: [&str; 2] = ["embedding_types", "output_types"];

const BASE64: &str = "base64";
const FLOAT: &str = "float";

/// Decodes what routing needs of a request, and counts its inputs.
pub(super) fn summarize(
    body: &[u8],
) -> Result<(Option<ModelField<'_>>, EmbeddingSummary), ApiError> {
    let [model, input, encoding, ..] = decode_unique_fields(
        body,
        [
            &["model"],
            &["input"],
            &["encoding_format"],
            // An upstream may have its own prices for these.
            &["dimensions"],
        ],
    )?;
    let encoding = encoding.value().and_then(RawJson::text);
    let encoding = encoding.as_deref();
    let text = str::from_utf8(body).unwrap_or_default();
    let mut summary = EmbeddingSummary {
        base64: encoding == Some(BASE64),
        has_unknown_fields: !has_known_fields_only(text)
            || !matches!(encoding, None | Some(FLOAT | BASE64)),
        ..EmbeddingSummary::default()
    };
    let written = input.value().map(RawJson::get).unwrap_or_default();
    let input = TokenInput::count(written);
    summary.input = input.summary(written);
    let is_input = |key: &str| !LIST_SETTINGS.contains(&key);
    summary.input.inputs += count_unknown_inputs(body, &FIELDS, is_input);
    // Some upstreams take images here, or messages in place of it.
    if !input.has_other {
        check_count("input", input.inputs)?;
        summary.inputs = Some(input.inputs);
    }
    Ok((decode_model_name(body, &model)?, summary))
}

/// Returns what decides access and money.
pub(super) fn findings(body: &[u8]) -> RequestFindings {
    RequestFindings::of(body, &FIELDS, USUAL_VALUES)
}

fn has_known_fields_only(text: &str) -> bool {
    let mut is_known = true;
    let read = JsonReader::new(text).object(|reader, key| {
        is_known &= FIELDS.knows_top(key);
        reader.skip()
    });
    read.is_ok() && is_known
}

/// Decodes a request for an upstream of another format.
pub(super) fn decode<'a>(
    body: &'a [u8],
    losses: &mut Losses,
) -> Result<EmbeddingRequest<'a>, ApiError> {
    let mut fields = Fields::of_body(body)?;
    let _ = fields.take("model");
    let inputs = fields.node("input").map(decode_input).transpose()?;
    let inputs = fields.need("input", inputs)?;
    check_count("input", inputs.len())?;
    let dimensions = fields.u64("dimensions")?;
    if dimensions == Some(0) {
        let message = "`dimensions` must be a whole number from 1 on, got 0";
        return Err(ApiError::invalid(message).at("dimensions"));
    }
    if let Some(encoding) = fields.text("encoding_format")?
        && ![FLOAT, BASE64].contains(&&*encoding)
    {
        let message = format!("`encoding_format` must be {FLOAT} or {BASE64} for this model");
        return Err(ApiError::invalid(message).at("encoding_format"));
    }
    if fields.text("user")?.is_some() {
        losses.dropped(FieldLocation::Path("user".into()));
    }
    fields.finish(losses);
    Ok(EmbeddingRequest {
        inputs,
        dimensions,
        hints: Vec::new(),
    })
}

fn decode_input<'a>(node: Node<'a, '_>) -> Result<Vec<Text<'a>>, ApiError> {
    match node.value {
        Json::Str(text) => Ok(vec![text]),
        Json::Array(_) => {
            let mut texts = Vec::new();
            node.each(|_, item| match item.value {
                Json::Str(text) => {
                    texts.push(text);
                    Ok(())
                }
                Json::Number(_) | Json::Array(_) => Err(item
                    .path
                    .wrong("text: the upstream of this model takes no tokens")),
                _ => Err(item.wrong("a string")),
            })?;
            Ok(texts)
        }
        _ => Err(node.wrong("a string or a list of strings")),
    }
}

#[derive(Serialize)]
struct EncodedEmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [Text<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u64>,
}

/// Encodes a request; every upstream writes floats where it is not asked for something else.
pub(super) fn encode(request: &EmbeddingRequest<'_>, target: &UpstreamTarget<'_>) -> Vec<u8> {
    let size = request.inputs.iter().map(|text| text.len() + 4).sum();
    let encoded = EncodedEmbeddingRequest {
        model: target.model,
        input: &request.inputs,
        dimensions: request.dimensions,
    };
    to_json_bytes(&encoded, size)
}
