//! What routing knows of a request, and the body for upstreams of the client's own format.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;

use super::body_estimate::BodyEstimate;
use crate::formats::{
    Codec, EmbedMethod, EmbeddingSummary, InputSummary, Operation, OutputLimit, RequestFindings,
    RequestHead, RoutingFields,
};
use crate::json::{ChunkedBytes, Edit, replace, splice};
use crate::model::{ApiError, ConversationState, ImageSize, truncated};

/// The fields of a request that routing and passthrough need, for all attempts.
#[derive(Debug, Clone)]
pub struct RequestSummary {
    /// The model id that the client sent.
    pub model: String,
    /// Where the id stands in the body; `None`: in the path.
    pub model_range: Option<Range<usize>>,
    pub operation: Operation,
    pub stream: bool,
    include_usage_edit: Option<Edit>,
    /// The largest output that the request allows.
    pub output_limit: OutputLimit,
    /// The upstream is to answer after the response to this request.
    pub is_background: bool,
    /// The field for which the upstream keeps the conversation under the id of its response, whatever the gateway stores.
    pub kept_conversation: Option<&'static str>,
    /// Where the body names the upstream's vendor.
    vendor_ranges: Vec<Range<usize>>,
    /// Removes the `async` field, which is for the gateway alone.
    async_removal: Option<Edit>,
    /// The client will fetch the result later.
    pub is_async: bool,
    /// In formats where a conversation can continue from a stored response.
    pub conversation: Option<ConversationState>,
    /// Of a request for embeddings.
    pub embedding: Option<(EmbedMethod, EmbeddingSummary)>,
    pub(super) body_length: usize,
    findings: OnceLock<Box<RequestFindings>>,
}

/// What is known of the model of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelTraits<'a> {
    /// It is known to answer with text only.
    pub text_only: bool,
    /// It answers with images only.
    pub images_only: bool,
    /// The sizes that its images may have; empty: any.
    pub sizes: &'a [ImageSize],
}

impl RequestSummary {
    /// Decodes the fields that routing needs.
    pub fn new(
        codec: &dyn Codec,
        operation: Operation,
        path_model: Option<&str>,
        body: &[u8],
    ) -> Result<RequestSummary, ApiError> {
        let (fields, embedding) = match (operation, codec.embedding_codec()) {
            (Operation::Embed(method), Some(embedder)) => {
                let (model, summary) = embedder.summarize(method, path_model, body)?;
                (RoutingFields::of_model(model), Some((method, summary)))
            }
            (Operation::Passthrough(endpoint), _) => (endpoint.decode_routing_fields(body)?, None),
            _ => (codec.decode_routing_fields(body)?, None),
        };
        let (model, model_range) = match (path_model, fields.model) {
            (Some(model), Some(named)) if named.name != model => {
                return Err(other_model(model, &named.name));
            }
            (Some(model), _) => (model.to_owned(), None),
            (None, Some(named)) => (named.name.into_owned(), Some(named.range)),
            (None, None) => {
                return Err(ApiError::invalid("missing required field model").at("model"));
            }
        };
        let counter = codec
            .token_counter()
            .filter(|_| operation == Operation::CountTokens);
        if let (Some(counter), Some(path_model)) = (counter, path_model) {
            counter.check_model(body, path_model)?;
        }
        if model.is_empty() {
            return Err(ApiError::invalid("model: expected the id of a model").at("model"));
        }
        let stream = match operation {
            Operation::Generate | Operation::Edit => fields.stream,
            Operation::Stream(_) => true,
            Operation::Passthrough(_) => fields.stream,
            Operation::CountTokens | Operation::Embed(_) => false,
        };
        Ok(RequestSummary {
            model,
            model_range,
            operation,
            stream,
            include_usage_edit: fields.include_usage_edit.filter(|_| stream),
            output_limit: fields.output_limit,
            is_background: fields.is_background,
            kept_conversation: fields.kept_conversation,
            vendor_ranges: Vec::new(),
            is_async: fields
                .async_option
                .as_ref()
                .is_some_and(|option| option.is_async),
            async_removal: fields.async_option.map(|option| option.removal),
            conversation: fields.conversation,
            embedding,
            body_length: body.len(),
            findings: OnceLock::new(),
        })
    }

    /// Checks the body for upstreams of the client's own format, once before the first attempt.
    pub fn check_passthrough(
        &mut self,
        codec: &dyn Codec,
        body: &[u8],
        model: &ModelTraits<'_>,
        strict: bool,
    ) -> Result<(), ApiError> {
        if !self.is_conversation() {
            return Ok(());
        }
        let head = self.head(model);
        if model.images_only && self.operation != Operation::CountTokens {
            codec.check_image_request(body)?;
        }
        self.vendor_ranges = codec.check_passthrough(&head, body, strict)?;
        Ok(())
    }

    /// Tells whether the request is for embeddings.
    pub const fn is_embedding(&self) -> bool {
        self.embedding.is_some()
    }

    /// Tells whether the request continues or begins a conversation, which has an output and settings for it.
    pub const fn is_conversation(&self) -> bool {
        self.operation.model_type().is_none()
    }

    /// Counts the input of the body, and whether there is more of it elsewhere.
    pub fn estimate(
        &self,
        codec: &dyn Codec,
        model: &ModelTraits<'_>,
        body: &[u8],
    ) -> BodyEstimate {
        let findings = self.findings(codec, body);
        let input = match (self.operation, &self.embedding) {
            (Operation::Passthrough(endpoint), _) => endpoint.summarize_input(body),
            (_, Some((_, summary))) => summary.input,
            (_, None) => {
                return BodyEstimate::with_unseen(codec, &self.head(model), body, findings);
            }
        };
        // What is not known may be input.
        let has_unseen = input.has_unseen || findings.unknown_field.is_some();
        let input = InputSummary {
            has_unseen,
            ..input
        };
        BodyEstimate::of_input_in(body, &input)
    }

    /// Returns what of the request decides access and money; the body is read for it once.
    pub fn findings(&self, codec: &dyn Codec, body: &[u8]) -> &RequestFindings {
        self.findings.get_or_init(|| {
            let embedder = codec.embedding_codec();
            Box::new(match (self.operation, embedder) {
                (Operation::Passthrough(endpoint), _) => endpoint.findings(body),
                (Operation::Embed(_), Some(embedder)) => embedder.findings(body),
                (Operation::CountTokens, _) => {
                    let counter = codec.token_counter();
                    let found = counter.and_then(|counter| counter.findings(body));
                    found.unwrap_or_else(|| codec.findings(body))
                }
                _ => codec.findings(body),
            })
        })
    }

    /// Returns the facts about the request that do not stand in its body.
    pub fn head<'a>(&'a self, model: &ModelTraits<'a>) -> RequestHead<'a> {
        RequestHead {
            path_model: self.model_range.is_none().then_some(self.model.as_str()),
            stream: self.stream,
            text_only: model.text_only,
            sizes: model.sizes,
            edits: self.operation == Operation::Edit,
            ..RequestHead::default()
        }
    }

    /// Returns the body without the `async` field.
    pub fn body_without_async(&self, body: &Bytes) -> Bytes {
        match &self.async_removal {
            Some(removal) => replace(body, std::slice::from_ref(removal)),
            None => body.clone(),
        }
    }

    /// Tells whether a stream reports usage only because the gateway asked for it.
    pub fn hides_usage(&self) -> bool {
        self.include_usage_edit.is_some()
    }

    /// Returns the body for an upstream of the client's own format: the client's bytes, with the
    /// upstream's names of model and vendor, and with `include_usage`.
    pub fn passthrough_body(
        &self,
        codec: &dyn Codec,
        body: &Bytes,
        upstream_model: &str,
        brand: &str,
    ) -> ChunkedBytes {
        self.passthrough_body_with(codec, body, upstream_model, brand, Vec::new())
    }

    /// The edits of the model's names that routing does not read.
    fn further_names(&self, codec: &dyn Codec, upstream_model: &str) -> Vec<Edit> {
        let Some(((_, summary), embedder)) = self.embedding.as_ref().zip(codec.embedding_codec())
        else {
            return Vec::new();
        };
        let with = embedder.encode_model_reference(upstream_model);
        let ranges = summary.model_ranges.iter().cloned();
        ranges
            .map(|range| Edit {
                range,
                with: with.clone(),
            })
            .collect()
    }

    /// The same, with further edits.
    pub fn passthrough_body_with(
        &self,
        codec: &dyn Codec,
        body: &Bytes,
        upstream_model: &str,
        brand: &str,
        further: Vec<Edit>,
    ) -> ChunkedBytes {
        let edits = self.include_usage_edit.iter().chain(&self.async_removal);
        let mut edits: Vec<Edit> = edits.cloned().chain(further).collect();
        if upstream_model != self.model {
            let with = match self.operation {
                Operation::Passthrough(endpoint) => endpoint.encode_model_name(upstream_model),
                _ => codec.encode_model_name(body, upstream_model),
            };
            edits.extend(self.model_range.clone().map(|range| Edit { range, with }));
            let counter = codec
                .token_counter()
                .filter(|_| self.operation == Operation::CountTokens);
            edits.extend(counter.and_then(|counter| counter.rename_model(body, upstream_model)));
            edits.extend(self.further_names(codec, upstream_model));
        }
        let brand = brand.as_bytes();
        let ranges = self.vendor_ranges.iter().filter(|range| {
            let name = body.get(range.start..range.end);
            name != Some(brand)
        });
        edits.extend(ranges.map(|range| Edit {
            range: range.clone(),
            with: brand.to_vec(),
        }));
        if edits.is_empty() {
            return body.clone().into();
        }
        edits.sort_by_key(|edit| edit.range.start);
        splice(body, &edits)
    }
}

/// The error for a body that names another model than the path: an upstream might take either.
fn other_model(path: &str, body: &str) -> ApiError {
    let (path, body) = (truncated(path), truncated(body));
    let message = format!("`model` must be the model of the path, `{path}`, got `{body}`");
    ApiError::invalid(message).at("model")
}
