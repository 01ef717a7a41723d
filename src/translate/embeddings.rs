//! Translates requests for embeddings and their responses.

use std::ops::Range;

use super::body_estimate::BodyEstimate;
use super::request_summary::RequestSummary;
use super::upstream_error::decode_bare_error;
use crate::formats::{
    CloudEmbeddings, EmbedMethod, EmbeddingCodec, EmbeddingOptions, EmbeddingSummary,
    ReportedUsage, ResponseObserver, UpstreamTarget,
};
use crate::model::{ApiError, ApiErrorKind, Format, Losses, Usage};

/// Translates the body of a client's request for an upstream that takes it in the words of a cloud.
pub fn cloud_embedding_request(
    from: Format,
    to: CloudEmbeddings,
    method: EmbedMethod,
    body: &[u8],
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    let request = codec(from)?.decode_embedding_request(method, body, losses)?;
    to.encode_request(&request, target, losses)
}

/// Translates the body of a client's request for an upstream of another format.
pub fn embedding_request(
    from: Format,
    to: Format,
    method: EmbedMethod,
    body: &[u8],
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    let to = to.codec().embedding_codec().ok_or_else(|| {
        let message = format!(
            "the upstream of this model has the format {}, which has no embeddings: use another model",
            to.name()
        );
        ApiError::invalid(message).at("model")
    })?;
    let request = codec(from)?.decode_embedding_request(method, body, losses)?;
    for hints in &request.hints {
        hints.report_dropped(losses);
    }
    Ok(to.encode_embedding_request(&request, target))
}

/// The response to a request for embeddings.
pub(super) struct EmbeddingBody {
    from: Format,
    /// The upstream's response is in the words of a cloud.
    cloud: Option<CloudEmbeddings>,
    to: Format,
    summary: EmbeddingSummary,
    options: EmbeddingOptions,
}

impl EmbeddingBody {
    /// `None`: the request asks for something else.
    pub(super) fn new(
        client: Format,
        upstream: Format,
        request: &RequestSummary,
    ) -> Option<EmbeddingBody> {
        let (method, summary) = request.embedding.as_ref()?;
        Some(EmbeddingBody {
            from: upstream,
            cloud: None,
            to: client,
            summary: summary.clone(),
            options: EmbeddingOptions {
                model: request.model.clone(),
                method: *method,
                base64: summary.base64,
                estimated_tokens: BodyEstimate::of_input(request.body_length, &summary.input)
                    .tokens(),
            },
        })
    }

    /// Has the response read in the words of a cloud.
    pub(super) fn set_cloud(&mut self, cloud: CloudEmbeddings) {
        self.cloud = Some(cloud);
    }

    pub(super) fn is_translated(&self) -> bool {
        self.cloud.is_some() || self.from != self.to
    }

    /// Observes a response that passes through, and returns where the model's name stands.
    pub(super) fn observe(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Option<Range<usize>>, ApiError> {
        let observed = codec(self.from)?.observe_embeddings(body, &self.summary)?;
        self.check(observed.vectors)?;
        record(observed.input_tokens, observer);
        Ok(observed.model)
    }

    pub(super) fn translate(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Vec<u8>, ApiError> {
        let embeddings = match self.cloud {
            Some(cloud) => cloud.decode_response(body)?,
            None => codec(self.from)?.decode_embeddings(body)?,
        };
        // What it reports is paid for, also if a vector is missing.
        observer.usage = embeddings.input_tokens.map(usage_of_input);
        self.check(embeddings.vectors.len())?;
        record(embeddings.input_tokens, observer);
        Ok(codec(self.to)?.encode_embeddings(&embeddings, &self.options))
    }

    /// Returns the usage of a response that cannot be used.
    pub(super) fn reported_usage(&self, body: &[u8]) -> Option<Usage> {
        match self.cloud {
            Some(cloud) => cloud.reported_tokens(body).map(usage_of_input),
            None => self.from.codec().reported_usage(body),
        }
    }

    /// Tells whether a response of success is an error, which costs nothing.
    pub(super) fn is_error(&self, body: &[u8]) -> bool {
        decode_bare_error(self.from.codec(), body).is_some()
    }

    /// Checks that each input has its vector.
    fn check(&self, vectors: usize) -> Result<(), ApiError> {
        match self.summary.inputs {
            Some(inputs) if inputs != vectors => Err(ApiError::bad_gateway(format!(
                "the upstream's response has {vectors} vectors for {inputs} inputs"
            ))),
            _ => Ok(()),
        }
    }
}

fn record(input_tokens: Option<u64>, observer: &mut ResponseObserver) {
    if let Some(input) = input_tokens {
        observer.record_usage(ReportedUsage::of_whole(usage_of_input(input)));
    }
    (observer.has_content, observer.ended) = (true, true);
}

fn usage_of_input(input: u64) -> Usage {
    Usage {
        input,
        ..Usage::default()
    }
}

/// Returns the codec of a format that is known to have one.
fn codec(format: Format) -> Result<&'static dyn EmbeddingCodec, ApiError> {
    let codec = format.codec().embedding_codec();
    codec.ok_or_else(|| ApiError::new(ApiErrorKind::Internal, "the format has no embeddings"))
}
