//! OpenAI Embeddings, `POST /v1/embeddings`, which upstreams of the chat and responses formats have too.

mod request;
mod response;
#[cfg(test)]
mod tests;

use crate::formats::{
    EmbedMethod, EmbeddingCodec, EmbeddingOptions, EmbeddingSummary, ModelField,
    ObservedEmbeddings, RequestFindings, UpstreamTarget, to_json_string,
};
use crate::model::{ApiError, EmbeddingRequest, Embeddings, Losses};

/// The codec of the endpoint.
pub(in crate::formats) struct EmbeddingsEndpoint;

impl EmbeddingCodec for EmbeddingsEndpoint {
    fn summarize<'a>(
        &self,
        _method: EmbedMethod,
        _path_model: Option<&str>,
        body: &'a [u8],
    ) -> Result<(Option<ModelField<'a>>, EmbeddingSummary), ApiError> {
        request::summarize(body)
    }

    fn decode_embedding_request<'a>(
        &self,
        _method: EmbedMethod,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<EmbeddingRequest<'a>, ApiError> {
        request::decode(body, losses)
    }

    fn encode_embedding_request(
        &self,
        request: &EmbeddingRequest<'_>,
        target: &UpstreamTarget<'_>,
    ) -> Vec<u8> {
        request::encode(request, target)
    }

    fn decode_embeddings(&self, body: &[u8]) -> Result<Embeddings, ApiError> {
        response::decode(body)
    }

    fn encode_embeddings(&self, embeddings: &Embeddings, options: &EmbeddingOptions) -> Vec<u8> {
        response::encode(embeddings, options)
    }

    fn observe_embeddings(
        &self,
        body: &[u8],
        summary: &EmbeddingSummary,
    ) -> Result<ObservedEmbeddings, ApiError> {
        response::observe(body, summary)
    }

    fn findings(&self, body: &[u8]) -> RequestFindings {
        request::findings(body)
    }

    fn encode_model_reference(&self, model: &str) -> Vec<u8> {
        to_json_string(model)
    }
}
