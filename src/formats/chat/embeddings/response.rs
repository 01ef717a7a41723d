//! Responses: a list of vectors, each with the index of its input.

use serde::Serialize;

use crate::formats::chat::error::decode_error;
use crate::formats::embedding_vector::{
    broken, check_lengths, decode_vector, encode_floats, length_of_any,
};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::token_count::TokenCount;
use crate::formats::{
    EmbeddingOptions, EmbeddingSummary, ObservedEmbeddings, decode_response_body,
};
use crate::json::{Present, RawJson, from_json};
use crate::model::{ApiError, Embeddings};

from_json! {
    struct UpstreamEmbeddings<'a> {
        "data" => data: Option<Vec<UpstreamEmbedding<'a>>>,
        "model" => model: Option<RawJson<'a>>,
        "usage" => usage: Option<UpstreamEmbeddingUsage>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct UpstreamEmbedding<'a> {
        "index" => index: Option<usize>,
        "embedding" required => embedding: RawJson<'a>,
    }
}

from_json! {
    struct UpstreamEmbeddingUsage {
        "prompt_tokens" => prompt_tokens: TokenCount,
        "total_tokens" => total_tokens: TokenCount,
    }
}

impl UpstreamEmbeddings<'_> {
    fn decode(body: &[u8]) -> Result<(UpstreamEmbeddings<'_>, Vec<RawJson<'_>>), ApiError> {
        let response: UpstreamEmbeddings<'_> = decode_response_body(body)?;
        let data = match (&response.data, &response.error) {
            (Some(data), _) => data,
            (None, Some(_)) => return Err(decode_error(200, body)),
            (None, None) => return Err(broken("no vectors")),
        };
        let mut ordered = vec![None; data.len()];
        for (position, item) in data.iter().enumerate() {
            match ordered.get_mut(item.index.unwrap_or(position)) {
                Some(place @ None) => *place = Some(item.embedding),
                _ => return Err(broken("an index that is wrong or stands there twice")),
            }
        }
        Ok((response, ordered.into_iter().flatten().collect()))
    }

    /// Some upstreams send the total alone.
    fn input_tokens(&self) -> Option<u64> {
        let usage = self.usage.as_ref()?;
        let counts = [usage.prompt_tokens, usage.total_tokens];
        let mut counts = counts.into_iter().filter_map(TokenCount::known);
        counts.find(|count| *count > 0)
    }
}

/// Decodes a response for a client of another format.
pub(super) fn decode(body: &[u8]) -> Result<Embeddings, ApiError> {
    let (response, vectors) = UpstreamEmbeddings::decode(body)?;
    let vectors: Result<Vec<_>, _> = vectors.into_iter().map(decode_vector).collect();
    let vectors = vectors?;
    check_lengths(vectors.iter().map(Vec::len))?;
    Ok(Embeddings {
        vectors,
        input_tokens: response.input_tokens(),
    })
}

/// Observes a response that passes through; no more than one vector is in memory beside it.
pub(super) fn observe(
    body: &[u8],
    summary: &EmbeddingSummary,
) -> Result<ObservedEmbeddings, ApiError> {
    let (response, vectors) = UpstreamEmbeddings::decode(body)?;
    let length = |raw: &RawJson<'_>| match summary.has_unknown_fields {
        true => length_of_any(*raw),
        false => decode_vector(*raw).map(|vector| vector.len()),
    };
    let lengths: Result<Vec<usize>, _> = vectors.iter().map(length).collect();
    check_lengths(lengths?)?;
    Ok(ObservedEmbeddings {
        vectors: vectors.len(),
        input_tokens: response.input_tokens(),
        model: response.model.map(|raw| raw.range_in(body)),
    })
}

#[derive(Serialize)]
struct EncodedEmbeddings<'a> {
    object: &'static str,
    data: Vec<EncodedEmbedding<'a>>,
    model: &'a str,
    usage: EncodedEmbeddingUsage,
}

#[derive(Serialize)]
struct EncodedEmbedding<'a> {
    object: &'static str,
    index: usize,
    embedding: EncodedVector<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum EncodedVector<'a> {
    Numbers(&'a [f32]),
    Base64(String),
}

#[derive(Serialize)]
struct EncodedEmbeddingUsage {
    prompt_tokens: u64,
    total_tokens: u64,
}

/// Encodes a response. Clients of this endpoint rely on a usage, so that an estimate stands in for one.
pub(super) fn encode(embeddings: &Embeddings, options: &EmbeddingOptions) -> Vec<u8> {
    let tokens = embeddings.input_tokens.unwrap_or(options.estimated_tokens);
    let vectors = embeddings.vectors.iter().enumerate();
    let data = vectors.map(|(index, vector)| EncodedEmbedding {
        object: "embedding",
        index,
        embedding: match options.base64 {
            true => EncodedVector::Base64(encode_floats(vector)),
            false => EncodedVector::Numbers(vector),
        },
    });
    let numbers: usize = embeddings.vectors.iter().map(Vec::len).sum();
    let encoded = EncodedEmbeddings {
        object: "list",
        data: data.collect(),
        model: &options.model,
        usage: EncodedEmbeddingUsage {
            prompt_tokens: tokens,
            total_tokens: tokens,
        },
    };
    to_json_bytes(&encoded, numbers * 12)
}
