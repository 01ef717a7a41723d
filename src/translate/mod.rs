//! From the client's bytes to the upstream's and back.

mod array;
mod convert;
mod count;
mod estimate;
mod gather;
mod halves;
mod instead;
mod meter;
mod proofs;
mod relay;
mod rename;
mod reply;
mod tap;
mod think;
mod undo;
mod whole;

pub use convert::{TranslatedRequest, error, request, response, stream};
pub use count::{count_tokens_request, estimate_token_count};
pub use gather::BodyBuffer;
pub use meter::{BodyEstimate, MeasuredUsage};
pub use reply::{ResponseMode, ResponseTranslator};

use std::ops::Range;

use bytes::Bytes;

use crate::formats::{Codec, Operation, OutputLimit, RequestHead};
use crate::json::{ChunkedBytes, Edit, replace, splice};
use crate::model::{ApiError, ConversationState, ImageSize};

/// What routing learned of a request; it stays beside the body for every attempt.
#[derive(Debug, Clone)]
pub struct RequestSummary {
    /// The id the client asked for.
    pub model: String,
    /// Where the id stands in the body; `None`: it stands in the path.
    pub model_range: Option<Range<usize>>,
    pub operation: Operation,
    pub stream: bool,
    include_usage_edit: Option<Edit>,
    output_limit: Option<OutputLimit>,
    /// Where a word in the body stands for the upstream's vendor.
    vendor_at: Vec<Range<usize>>,
    /// Takes out of the body what is said to the gateway alone.
    async_removal: Option<Edit>,
    /// The reply is to be fetched later.
    pub is_async: bool,
    /// In formats in which a conversation can go on from a reply that was kept.
    pub conversation: Option<ConversationState>,
}

/// What a request must know of the model that it asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelTraits<'a> {
    /// It is known to answer with words only.
    pub text_only: bool,
    /// The sizes that its images may have; empty: any.
    pub sizes: &'a [ImageSize],
}

impl RequestSummary {
    pub fn new(
        codec: &dyn Codec,
        operation: Operation,
        path_model: Option<&str>,
        body: &[u8],
    ) -> Result<RequestSummary, ApiError> {
        let fields = codec.decode_routing_fields(body)?;
        let (model, model_range) = match (path_model, fields.model) {
            (Some(model), _) => (model.to_owned(), None),
            (None, Some(named)) => (named.name.into_owned(), Some(named.range)),
            (None, None) => {
                return Err(ApiError::invalid("missing required field model").at("model"));
            }
        };
        if model.is_empty() {
            return Err(ApiError::invalid("model: expected the id of a model").at("model"));
        }
        let stream = match operation {
            Operation::Generate | Operation::Edit => fields.stream,
            Operation::Stream(_) => true,
            Operation::CountTokens => false,
        };
        Ok(RequestSummary {
            model,
            model_range,
            operation,
            stream,
            include_usage_edit: fields.include_usage_edit.filter(|_| stream),
            output_limit: fields.output_limit,
            vendor_at: Vec::new(),
            is_async: fields
                .async_option
                .as_ref()
                .is_some_and(|option| option.is_async),
            async_removal: fields.async_option.map(|option| option.removal),
            conversation: fields.conversation,
        })
    }

    /// What an upstream of the client's own format will get is looked through once, before the
    /// first attempt.
    pub fn check_passthrough(
        &mut self,
        codec: &dyn Codec,
        body: &[u8],
        model: &ModelTraits<'_>,
        strict: bool,
    ) -> Result<(), ApiError> {
        let head = self.head(model);
        self.vendor_at = codec.check_passthrough(&head, body, strict)?;
        Ok(())
    }

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

    /// How much may come back at most, as the request itself says it.
    pub fn output_limit(&self, codec: &dyn Codec, body: &[u8]) -> OutputLimit {
        self.output_limit
            .unwrap_or_else(|| codec.output_limit(body))
    }

    /// The body without what is said to the gateway alone.
    pub fn body_without_async(&self, body: &Bytes) -> Bytes {
        match &self.async_removal {
            Some(removal) => replace(body, std::slice::from_ref(removal)),
            None => body.clone(),
        }
    }

    /// Whether the usage of a stream is only there because we asked for it.
    pub fn hides_usage(&self) -> bool {
        self.include_usage_edit.is_some()
    }

    /// The body for an upstream of the client's own format: the client's bytes, but for the
    /// upstream's name of the model, its brand, and the question for usage.
    pub fn passthrough_body(
        &self,
        codec: &dyn Codec,
        body: &Bytes,
        upstream_model: &str,
        brand: &str,
    ) -> ChunkedBytes {
        let asides = self.include_usage_edit.iter().chain(&self.async_removal);
        let mut edits: Vec<Edit> = asides.cloned().collect();
        if upstream_model != self.model {
            let with = codec.encode_model_name(body, upstream_model);
            edits.extend(self.model_range.clone().map(|range| Edit { range, with }));
            let counter = codec
                .token_counter()
                .filter(|_| self.operation == Operation::CountTokens);
            edits.extend(counter.and_then(|counter| counter.rename_model(body, upstream_model)));
        }
        let brand = brand.as_bytes();
        let others = self.vendor_at.iter().filter(|range| {
            let written = body.get(range.start..range.end);
            written != Some(brand)
        });
        edits.extend(others.map(|range| Edit {
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
