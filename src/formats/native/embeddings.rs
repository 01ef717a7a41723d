//! Embeddings: `POST /v1beta/models/{model}:embedContent` and `:batchEmbedContents`.

mod request_decoder;

use std::sync::LazyLock;

use serde::Serialize;

use self::request_decoder::RequestDecoder;
use super::Native;
use super::field_names::{self, FieldNames, resource_name};
use super::usage::UpstreamUsage;
use crate::formats::embedding_codec::check_count;
use crate::formats::embedding_vector::{broken, check_lengths, decode_vector};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::unknown_fields::UNKNOWN_FIELDS;
use crate::formats::{
    EmbedMethod, EmbeddingCodec, EmbeddingOptions, EmbeddingSummary, ErrorCodec, ModelField,
    ObservedEmbeddings, RequestFindings, UpstreamTarget, decode_model_name, decode_response_body,
    decode_unique_fields, decode_unique_item, to_json_string,
};
use crate::json::{
    DecodeResult, FieldIndex, Fields, FromJson, JsonReader, KnownFields, NO_FIELDS, PlacedFields,
    Present, RawJson, UniqueField, decode_json, from_json,
};
use crate::model::{ApiError, EmbeddingRequest, Embeddings, Losses, truncated};

const MODEL: FieldNames = &["model"];
const CONTENT: FieldNames = &["content"];
const REQUESTS: FieldNames = &["requests"];
const OUTPUT_DIMENSIONALITY: FieldNames = &["outputDimensionality", "output_dimensionality"];
const TASK_TYPE: FieldNames = &["taskType", "task_type"];
const TITLE: FieldNames = &["title"];
const AUTO_TRUNCATE: FieldNames = &["autoTruncate", "auto_truncate"];
/// Newer clients put the settings of a request in here.
const CONFIG: FieldNames = &["embedContentConfig", "embed_content_config"];

/// The fields of both methods. Each request of a batch has those of a single one; its model is compared with that of the
/// path, and no other place may name one.
const KNOWN_INPUT: KnownFields = KnownFields {
    top: &[
        "model",
        "content",
        "requests",
        "outputDimensionality",
        "taskType",
        "title",
        "autoTruncate",
        "embedContentConfig",
    ],
    nested: &[
        "content",
        "role",
        "parts",
        "text",
        "outputDimensionality",
        "taskType",
        "title",
        "autoTruncate",
        "embedContentConfig",
    ],
    placed: &[PlacedFields {
        names: &["model"],
        kind: None,
        at: &["requests"],
    }],
    has_snake_case: true,
    ..NO_FIELDS
};

static FIELDS: LazyLock<FieldIndex> =
    LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, UNKNOWN_FIELDS));

/// The codec of both methods.
pub(super) struct NativeEmbeddings;

impl EmbeddingCodec for NativeEmbeddings {
    fn summarize<'a>(
        &self,
        method: EmbedMethod,
        path_model: Option<&str>,
        body: &'a [u8],
    ) -> Result<(Option<ModelField<'a>>, EmbeddingSummary), ApiError> {
        let [model, content, requests] = decode_unique_fields(body, [MODEL, CONTENT, REQUESTS])?;
        let mut summary = EmbeddingSummary::default();
        let path_model = path_model.unwrap_or_default();
        summary.note_model(body, &model, path_model)?;
        match method {
            EmbedMethod::Single => {
                summary.inputs = Some(1);
                summary.input.has_unseen = !is_text(&content);
            }
            EmbedMethod::Batch => {
                let requests: Vec<RawJson<'_>> = requests.decoded("a list of requests")?;
                check_count("requests", requests.len())?;
                summary.inputs = Some(requests.len());
                summary.input.inputs = requests.len() as u64;
                for request in &requests {
                    let [model, content] =
                        decode_unique_item(request.get(), "requests[]", [MODEL, CONTENT])?;
                    summary.note_model(body, &model, path_model)?;
                    summary.input.has_unseen |= !is_text(&content);
                }
            }
        }
        Ok((None, summary))
    }

    fn decode_embedding_request<'a>(
        &self,
        method: EmbedMethod,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<EmbeddingRequest<'a>, ApiError> {
        let mut fields = Fields::of_body(body)?;
        let mut decoder = RequestDecoder {
            request: EmbeddingRequest::default(),
            losses,
        };
        match method {
            EmbedMethod::Single => decoder.add(fields)?,
            EmbedMethod::Batch => {
                let requests = field_names::take(&mut fields, REQUESTS);
                let Some(requests) = requests else {
                    let message = "missing required field requests";
                    return Err(ApiError::invalid(message).at("requests"));
                };
                requests.each(|_, node| node.fields(|fields| decoder.add(fields)))?;
                let _ = fields.take("model");
                fields.finish(decoder.losses);
            }
        }
        let request = decoder.request;
        check_count("requests", request.inputs.len())?;
        Ok(request)
    }

    fn encode_embedding_request(
        &self,
        request: &EmbeddingRequest<'_>,
        target: &UpstreamTarget<'_>,
    ) -> Vec<u8> {
        let model = resource_name(target.model);
        let requests = request.inputs.iter().map(|text| EncodedEmbedRequest {
            model: &model,
            content: EncodedEmbedContent {
                parts: [EncodedEmbedPart { text }],
            },
            output_dimensionality: request.dimensions,
        });
        let batch = EncodedEmbedBatch {
            requests: requests.collect(),
        };
        let frame = model.len() + 64;
        let size = request.inputs.iter().map(|text| text.len() + frame).sum();
        to_json_bytes(&batch, size)
    }

    fn decode_embeddings(&self, body: &[u8]) -> Result<Embeddings, ApiError> {
        let response = UpstreamEmbedResponse::decode(body)?;
        let vectors = response.vectors().map(decode_vector);
        let vectors: Vec<Vec<f32>> = vectors.collect::<Result<_, _>>()?;
        check_lengths(vectors.iter().map(Vec::len))?;
        Ok(Embeddings {
            vectors,
            input_tokens: response.input_tokens(),
        })
    }

    fn encode_embeddings(&self, embeddings: &Embeddings, options: &EmbeddingOptions) -> Vec<u8> {
        let numbers: usize = embeddings.vectors.iter().map(Vec::len).sum();
        let usage_metadata = embeddings.input_tokens.map(|tokens| EncodedEmbedUsage {
            prompt_token_count: tokens,
            total_token_count: tokens,
        });
        let mut vectors = embeddings
            .vectors
            .iter()
            .map(|values| EncodedValues { values });
        let encoded = match options.method {
            EmbedMethod::Single => EncodedEmbedResponse {
                embedding: vectors.next(),
                embeddings: None,
                usage_metadata,
            },
            EmbedMethod::Batch => EncodedEmbedResponse {
                embedding: None,
                embeddings: Some(vectors.collect()),
                usage_metadata,
            },
        };
        to_json_bytes(&encoded, numbers * 12)
    }

    fn observe_embeddings(
        &self,
        body: &[u8],
        _summary: &EmbeddingSummary,
    ) -> Result<ObservedEmbeddings, ApiError> {
        let response = UpstreamEmbedResponse::decode(body)?;
        let lengths = response.vectors().map(|raw| Ok(decode_vector(raw)?.len()));
        let lengths: Vec<usize> = lengths.collect::<Result<_, ApiError>>()?;
        check_lengths(lengths.iter().copied())?;
        Ok(ObservedEmbeddings {
            vectors: lengths.len(),
            input_tokens: response.input_tokens(),
            model: None,
        })
    }

    fn findings(&self, body: &[u8]) -> RequestFindings {
        RequestFindings::of(body, &FIELDS, &[])
    }

    fn encode_model_reference(&self, model: &str) -> Vec<u8> {
        to_json_string(&resource_name(model))
    }
}

impl EmbeddingSummary {
    /// Notes where the body names the model, which must be that of the path: an upstream might take either.
    fn note_model(
        &mut self,
        body: &[u8],
        field: &UniqueField<'_>,
        path_model: &str,
    ) -> Result<(), ApiError> {
        let Some(named) = decode_model_name(body, field)? else {
            return Ok(());
        };
        let name = named.name.strip_prefix("models/").unwrap_or(&named.name);
        if name != path_model {
            let (path, expected, got) = (field.path(), truncated(path_model), truncated(name));
            let message =
                format!("`{path}` must be the model of the path, `models/{expected}`, got `{got}`");
            return Err(ApiError::invalid(message).at(path));
        }
        self.model_ranges.push(named.range);
        Ok(())
    }
}

/// Tells whether a content is text alone.
fn is_text(content: &UniqueField<'_>) -> bool {
    let content = content.value().map(RawJson::get).unwrap_or_default();
    decode_json::<TextContent>(content).is_ok()
}

/// A content without anything but text.
#[derive(Default)]
struct TextContent;

impl<'a> FromJson<'a> for TextContent {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.object(|reader, key| match key {
            "role" => reader.skip(),
            "parts" => reader.array(|reader| {
                reader.object(|reader, key| match key {
                    "text" => reader.text().map(drop),
                    _ => Err(reader.stop("text alone")),
                })
            }),
            _ => Err(reader.stop("parts alone")),
        })
    }
}

#[derive(Serialize)]
struct EncodedEmbedBatch<'a> {
    requests: Vec<EncodedEmbedRequest<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EncodedEmbedRequest<'a> {
    model: &'a str,
    content: EncodedEmbedContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_dimensionality: Option<u64>,
}

#[derive(Serialize)]
struct EncodedEmbedContent<'a> {
    parts: [EncodedEmbedPart<'a>; 1],
}

#[derive(Serialize)]
struct EncodedEmbedPart<'a> {
    text: &'a str,
}

from_json! {
    struct UpstreamEmbedResponse<'a> {
        "embeddings" => embeddings: Option<Vec<UpstreamValues<'a>>>,
        "embedding" => embedding: Option<UpstreamValues<'a>>,
        "usageMetadata" => usage_metadata: Option<UpstreamUsage<'a>>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct UpstreamValues<'a> {
        "values" required => values: RawJson<'a>,
    }
}

impl<'a> UpstreamEmbedResponse<'a> {
    fn decode(body: &'a [u8]) -> Result<UpstreamEmbedResponse<'a>, ApiError> {
        let response: UpstreamEmbedResponse<'a> = decode_response_body(body)?;
        match (&response.embeddings, &response.embedding) {
            (None, None) if response.error.is_some() => Err(Native.decode_error(200, body)),
            (None, None) => Err(broken("no vectors")),
            _ => Ok(response),
        }
    }

    fn vectors(&self) -> impl Iterator<Item = RawJson<'a>> {
        let listed = self.embeddings.iter().flatten();
        listed.chain(&self.embedding).map(|item| item.values)
    }

    fn input_tokens(&self) -> Option<u64> {
        let usage = self.usage_metadata.as_ref()?;
        Some(usage.decode().input).filter(|tokens| *tokens > 0)
    }
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EncodedEmbedResponse<'a> {
    embedding: Option<EncodedValues<'a>>,
    embeddings: Option<Vec<EncodedValues<'a>>>,
    usage_metadata: Option<EncodedEmbedUsage>,
}

#[derive(Serialize)]
struct EncodedValues<'a> {
    values: &'a [f32],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EncodedEmbedUsage {
    prompt_token_count: u64,
    total_token_count: u64,
}
