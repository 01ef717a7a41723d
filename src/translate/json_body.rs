//! Translates JSON responses, or passes them through with the client's name of the model.

use std::ops::Range;

use bytes::Bytes;

use super::body_buffer::BodyBuffer;
use super::count_tokens;
use super::embeddings::EmbeddingBody;
use super::request_summary::RequestSummary;
use super::restore_names;
use super::signatures;
use super::upstream_error::{chunk_too_large, is_failure};
use super::usage;
use crate::formats::{
    CloudEmbeddings, Operation, PassthroughEndpoint, ReportedUsage, ResponseObserver,
    ResponseOptions, encode_bedrock_token_count, to_json_string,
};
use crate::json::{ChunkedBytes, Edit, splice};
use crate::model::{ApiError, Format, Losses, SignedParts, Usage};

/// Translates a whole JSON response for a client of another format.
pub fn response(
    from: Format,
    to: Format,
    body: &[u8],
    options: &ResponseOptions,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    let mut response = from.codec().decode_response(body, losses)?;
    restore_names::restore_response(&mut response, options);
    Ok(to.codec().encode_response(&response, options, losses))
}

/// A JSON response on its way to the client.
pub(super) struct JsonBody {
    mode: JsonBodyMode,
    buffer: BodyBuffer,
    signed_parts: Option<SignedParts>,
    losses: Losses,
    /// The chunks after the first one of a long document.
    remaining: ChunkedBytes,
}

/// What happens to the document when it is complete.
enum JsonBodyMode {
    /// The formats are the same: only the model's name changes, to this JSON string.
    Passthrough(Format, Vec<u8>),
    Translate {
        from: Format,
        to: Format,
        options: ResponseOptions,
    },
    /// A count of tokens has a body of its own.
    CountTokens {
        from: Format,
        to: Format,
        /// The upstream's body is not quite that of its format.
        is_encoded_anew: bool,
        /// The client expects the body of AWS Bedrock.
        is_for_bedrock: bool,
    },
    /// Nothing but the model's name changes in what this endpoint returns.
    Endpoint(PassthroughEndpoint, Vec<u8>),
    /// What this endpoint returns is text, which passes as it is.
    Text(PassthroughEndpoint),
    /// Embeddings have one too; the client's name of the model is this JSON string.
    Embeddings(EmbeddingBody, Vec<u8>),
}

/// A document that is complete, and fit for the client.
enum FinishedDocument {
    /// Only the name of the model changes, which stands here.
    Passthrough(Option<Range<usize>>),
    Translated(Vec<u8>),
}

impl JsonBody {
    pub(super) fn new(
        client: Format,
        upstream: Format,
        summary: &RequestSummary,
        options: ResponseOptions,
    ) -> JsonBody {
        let name = || to_json_string(&summary.model);
        let mode = if let Some(body) = EmbeddingBody::new(client, upstream, summary) {
            JsonBodyMode::Embeddings(body, name())
        } else if let Operation::Passthrough(endpoint) = summary.operation {
            JsonBodyMode::Endpoint(endpoint, name())
        } else if summary.operation == Operation::CountTokens {
            JsonBodyMode::CountTokens {
                from: upstream,
                to: client,
                is_encoded_anew: client != upstream,
                is_for_bedrock: false,
            }
        } else if client == upstream {
            JsonBodyMode::Passthrough(client, name())
        } else {
            JsonBodyMode::Translate {
                from: upstream,
                to: client,
                options,
            }
        };
        JsonBody::of_mode(mode)
    }

    /// A response of an endpoint that is text in place of JSON.
    pub(super) fn of_text(endpoint: PassthroughEndpoint) -> JsonBody {
        JsonBody::of_mode(JsonBodyMode::Text(endpoint))
    }

    fn of_mode(mode: JsonBodyMode) -> JsonBody {
        JsonBody {
            mode,
            buffer: BodyBuffer::default(),
            signed_parts: None,
            losses: Losses::default(),
            remaining: ChunkedBytes::default(),
        }
    }

    /// Has embeddings read in the words of a cloud.
    pub(super) fn set_cloud_embeddings(&mut self, cloud: CloudEmbeddings) {
        if let JsonBodyMode::Embeddings(body, _) = &mut self.mode {
            body.set_cloud(cloud);
        }
    }

    /// Has a count encoded also for a client of the same format.
    pub(super) fn encode_count_anew(&mut self) {
        if let JsonBodyMode::CountTokens {
            is_encoded_anew, ..
        } = &mut self.mode
        {
            *is_encoded_anew = true;
        }
    }

    /// Has a count encoded for a client of Bedrock.
    pub(super) fn write_bedrock_count(&mut self) {
        if let JsonBodyMode::CountTokens { is_for_bedrock, .. } = &mut self.mode {
            *is_for_bedrock = true;
        }
    }

    /// Reserves memory for a response of this length.
    pub(super) fn expect_length(&mut self, length: usize) {
        self.buffer = BodyBuffer::with_expected_length(length);
    }

    pub(super) fn buffered(&self) -> usize {
        self.buffer.len() + self.remaining.len()
    }

    pub(super) fn is_translated(&self) -> bool {
        match &self.mode {
            JsonBodyMode::Passthrough(..) | JsonBodyMode::Endpoint(..) | JsonBodyMode::Text(_) => {
                false
            }
            JsonBodyMode::Translate { .. } => true,
            JsonBodyMode::CountTokens {
                is_encoded_anew,
                is_for_bedrock,
                ..
            } => *is_encoded_anew || *is_for_bedrock,
            JsonBodyMode::Embeddings(body, _) => body.is_translated(),
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: Bytes,
        end: bool,
        limit: usize,
        observer: &mut ResponseObserver,
        out: &mut Option<Bytes>,
    ) -> Result<(), ApiError> {
        self.buffer.push(bytes);
        if self.buffer.len() > limit {
            return Err(chunk_too_large(limit, observer));
        }
        if end {
            let body = self.buffer.take();
            let finished = self.finish(&body, observer);
            if let Err(api_error) = &finished
                && observer.usage.is_none()
            {
                observer.usage = self.reported_usage(&body);
                let is_reported = observer.usage.is_some() || api_error.is_sent;
                observer.is_unread = !is_reported && self.is_unread(&body);
            }
            let mut chunks = match finished? {
                FinishedDocument::Translated(translated) => Bytes::from(translated).into(),
                FinishedDocument::Passthrough(model) => {
                    observer.observe_raw_model(model.clone().map(|range| &body[range]));
                    renamed(body, model, self.mode.name())
                }
            };
            *out = chunks.next_chunk();
            self.remaining = chunks;
        }
        Ok(())
    }

    /// Returns the whole document in one chunk.
    pub(super) fn joined(&mut self, first: &mut Bytes) -> Bytes {
        if !self.remaining.is_empty() {
            let remaining = self.take_remaining().into_bytes();
            *first = [&**first, &*remaining].concat().into();
        }
        first.clone()
    }

    pub(super) fn take_remaining(&mut self) -> ChunkedBytes {
        std::mem::take(&mut self.remaining)
    }

    pub(super) fn take_signatures(&mut self) -> Option<SignedParts> {
        self.signed_parts.take()
    }

    pub(super) fn take_losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }

    /// Returns the usage of a document that cannot be used.
    fn reported_usage(&self, body: &[u8]) -> Option<Usage> {
        match &self.mode {
            JsonBodyMode::Passthrough(format, _) => format.codec().reported_usage(body),
            JsonBodyMode::Translate { from, .. } => from.codec().reported_usage(body),
            JsonBodyMode::Embeddings(embeddings, _) => embeddings.reported_usage(body),
            JsonBodyMode::Endpoint(endpoint, _) => endpoint.reported_usage(body),
            JsonBodyMode::Text(_) | JsonBodyMode::CountTokens { .. } => None,
        }
    }

    /// Tells whether a document that cannot be used, and reports no usage, may have cost something all the same.
    fn is_unread(&self, body: &[u8]) -> bool {
        match &self.mode {
            // They cost their input, and hardly any upstream counts it.
            JsonBodyMode::Embeddings(embeddings, _) => {
                !embeddings.is_error(body) && !is_failure(Format::Chat.codec(), body)
            }
            JsonBodyMode::CountTokens { .. } => false,
            JsonBodyMode::Passthrough(format, _) | JsonBodyMode::Translate { from: format, .. } => {
                !is_failure(format.codec(), body)
            }
            JsonBodyMode::Endpoint(..) | JsonBodyMode::Text(_) => {
                !is_failure(Format::Chat.codec(), body)
            }
        }
    }

    fn finish(
        &mut self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<FinishedDocument, ApiError> {
        match &self.mode {
            JsonBodyMode::CountTokens {
                from,
                to,
                is_encoded_anew,
                is_for_bedrock,
            } => {
                let translated = count_tokens::translate_count(*from, *to, body)?;
                Ok(match (is_for_bedrock, is_encoded_anew) {
                    (true, _) => {
                        FinishedDocument::Translated(encode_bedrock_token_count(&translated)?)
                    }
                    (false, false) => FinishedDocument::Passthrough(None),
                    (false, true) => FinishedDocument::Translated(translated),
                })
            }
            JsonBodyMode::Embeddings(embeddings, _) if embeddings.is_translated() => {
                let translated = embeddings.translate(body, observer)?;
                Ok(FinishedDocument::Translated(translated))
            }
            JsonBodyMode::Embeddings(embeddings, _) => {
                let model = embeddings.observe(body, observer)?;
                Ok(FinishedDocument::Passthrough(model))
            }
            JsonBodyMode::Text(endpoint) => {
                endpoint.observe_text(body, observer);
                Ok(FinishedDocument::Passthrough(None))
            }
            JsonBodyMode::Endpoint(endpoint, _) => {
                let observation = endpoint.observe_response(body, observer)?;
                Ok(FinishedDocument::Passthrough(observation.model))
            }
            JsonBodyMode::Passthrough(format, _) => {
                let observation = format.codec().observe_response(body, observer)?;
                if !observer.has_output_count() {
                    observer.uncounted = usage::content_tokens_of_body(format.codec(), body);
                }
                Ok(FinishedDocument::Passthrough(observation.model))
            }
            JsonBodyMode::Translate { from, to, options } => {
                let mut losses = Losses::default();
                let mut response = from.codec().decode_response(body, &mut losses)?;
                restore_names::restore_response(&mut response, options);
                observer.usage = response.usage;
                observer.images = usage::count_images(&response);
                to.codec().check_response(&response)?;
                let report = response.usage.map(|usage| from.codec().usage_report(usage));
                if !report.is_some_and(ReportedUsage::counts_everything) {
                    observer.uncounted = usage::content_tokens(&response);
                }
                if let Some(report) = report {
                    observer.record_usage(report);
                }
                (observer.has_content, observer.ended) = (true, true);
                observer.observe_model(&response.model);
                for choice in &response.choices {
                    observer.observe_finish(&choice.finish);
                }
                if !to.codec().clients_return_signatures() {
                    self.signed_parts = signatures::of_response(&response);
                }
                let translated = to.codec().encode_response(&response, options, &mut losses);
                self.losses = losses;
                Ok(FinishedDocument::Translated(translated))
            }
        }
    }
}

impl JsonBodyMode {
    /// The client's name of the model, where the document names it.
    fn name(&self) -> &[u8] {
        match self {
            JsonBodyMode::Passthrough(_, name)
            | JsonBodyMode::Endpoint(_, name)
            | JsonBodyMode::Embeddings(_, name) => name,
            JsonBodyMode::Text(_)
            | JsonBodyMode::Translate { .. }
            | JsonBodyMode::CountTokens { .. } => &[],
        }
    }
}

/// Returns a document with the client's name of the model.
fn renamed(body: Bytes, model: Option<Range<usize>>, name: &[u8]) -> ChunkedBytes {
    match model {
        Some(range) if body[range.clone()] != *name => {
            let with = name.to_vec();
            splice(&body, &[Edit { range, with }])
        }
        _ => body.into(),
    }
}
