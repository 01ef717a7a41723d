//! Codec of the endpoint that makes embeddings, in the formats that have one.

use std::ops::Range;

use super::request_findings::RequestFindings;
use super::request_options::{EmbedMethod, ModelField, UpstreamTarget};
use super::token_input::InputSummary;
use crate::model::{ApiError, EmbeddingRequest, Embeddings, Losses};

/// The most inputs of one request.
pub(super) const MAX_INPUTS: usize = 2048;

/// Encodes and decodes the requests and responses of an endpoint for embeddings.
pub trait EmbeddingCodec: Sync {
    /// Decodes what routing, the reservation of the cost and passthrough need of a request. They decide access and
    /// money, so a field that parsers may read in two ways is refused.
    fn summarize<'a>(
        &self,
        method: EmbedMethod,
        path_model: Option<&str>,
        body: &'a [u8],
    ) -> Result<(Option<ModelField<'a>>, EmbeddingSummary), ApiError>;
    /// Decodes a client's request for an upstream of another format.
    fn decode_embedding_request<'a>(
        &self,
        method: EmbedMethod,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<EmbeddingRequest<'a>, ApiError>;
    /// Encodes a request for an upstream, which is asked for a list.
    fn encode_embedding_request(
        &self,
        request: &EmbeddingRequest<'_>,
        target: &UpstreamTarget<'_>,
    ) -> Vec<u8>;
    /// Decodes an upstream's response to a request for a list. `Err`: it is not complete.
    fn decode_embeddings(&self, body: &[u8]) -> Result<Embeddings, ApiError>;
    /// Encodes a response for a client.
    fn encode_embeddings(&self, embeddings: &Embeddings, options: &EmbeddingOptions) -> Vec<u8>;
    /// Observes a response that passes through. `Err`: it is not complete.
    fn observe_embeddings(
        &self,
        body: &[u8],
        summary: &EmbeddingSummary,
    ) -> Result<ObservedEmbeddings, ApiError>;
    /// Returns what of a request decides access and money. The models that the summary has found are no others: they are
    /// the same.
    fn findings(&self, body: &[u8]) -> RequestFindings;
    /// Encodes a model's name as it stands where the summary has found it.
    fn encode_model_reference(&self, model: &str) -> Vec<u8>;
}

/// What is known of a request for embeddings before it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbeddingSummary {
    /// How many vectors the response must have; `None`: the input has a shape that only the upstream knows.
    pub inputs: Option<usize>,
    pub input: InputSummary,
    /// The client wants the vectors in base64.
    pub base64: bool,
    /// The vectors may be of something else than floats, since the request has fields that are not known.
    pub has_unknown_fields: bool,
    /// Where the body names the model, beside the field for routing.
    pub model_ranges: Vec<Range<usize>>,
}

/// The facts about a request that the encoder of its response needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingOptions {
    /// The model id that the client sent.
    pub model: String,
    pub method: EmbedMethod,
    pub base64: bool,
    /// An estimate of the tokens of the input, for clients that must get a number.
    pub estimated_tokens: u64,
}

/// What a response that passes through has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedEmbeddings {
    pub vectors: usize,
    pub input_tokens: Option<u64>,
    /// Where the model's name stands, quotes included.
    pub model: Option<Range<usize>>,
}

/// Refuses a request with more inputs than upstreams take, or with none.
pub(super) fn check_count(path: &str, count: usize) -> Result<(), ApiError> {
    let message = match count {
        0 => format!("`{path}` is empty: send at least one input"),
        1..=MAX_INPUTS => return Ok(()),
        _ => format!("`{path}` has {count} inputs: at most {MAX_INPUTS} are accepted"),
    };
    Err(ApiError::invalid(message).at(path))
}
