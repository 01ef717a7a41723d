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
pub use count::{estimated, question};
pub use gather::Gathered;
pub use meter::{Bulk, Metered};
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
    pub model_at: Option<Range<usize>>,
    pub operation: Operation,
    pub stream: bool,
    ask_usage: Option<Edit>,
    most: Option<OutputLimit>,
    /// Where a word in the body stands for the upstream's vendor.
    vendor_at: Vec<Range<usize>>,
    /// Takes out of the body what is said to the gateway alone.
    aside: Option<Edit>,
    /// The reply is to be fetched later.
    pub later: bool,
    /// In formats in which a conversation can go on from a reply that was kept.
    pub thread: Option<ConversationState>,
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
    pub fn of(
        codec: &dyn Codec,
        operation: Operation,
        path_model: Option<&str>,
        body: &[u8],
    ) -> Result<RequestSummary, ApiError> {
        let peek = codec.peek(body)?;
        let (model, model_at) = match (path_model, peek.model) {
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
            Operation::Generate | Operation::Edit => peek.stream,
            Operation::Stream(_) => true,
            Operation::CountTokens => false,
        };
        Ok(RequestSummary {
            model,
            model_at,
            operation,
            stream,
            ask_usage: peek.ask_usage.filter(|_| stream),
            most: peek.most,
            vendor_at: Vec::new(),
            later: peek.aside.as_ref().is_some_and(|aside| aside.later),
            aside: peek.aside.map(|aside| aside.removal),
            thread: peek.thread,
        })
    }

    /// What an upstream of the client's own format will get is looked through once, before the
    /// first attempt.
    pub fn inspect(
        &mut self,
        codec: &dyn Codec,
        body: &[u8],
        model: &ModelTraits<'_>,
        by_the_rules: bool,
    ) -> Result<(), ApiError> {
        let head = self.head(model);
        self.vendor_at = codec.inspect(&head, body, by_the_rules)?;
        Ok(())
    }

    pub fn head<'a>(&'a self, model: &ModelTraits<'a>) -> RequestHead<'a> {
        RequestHead {
            path_model: self.model_at.is_none().then_some(self.model.as_str()),
            stream: self.stream,
            text_only: model.text_only,
            sizes: model.sizes,
            edits: self.operation == Operation::Edit,
            ..RequestHead::default()
        }
    }

    /// How much may come back at most, as the request itself says it.
    pub fn most(&self, codec: &dyn Codec, body: &[u8]) -> OutputLimit {
        self.most.unwrap_or_else(|| codec.most(body))
    }

    /// The body without what is said to the gateway alone.
    pub fn without_aside(&self, body: &Bytes) -> Bytes {
        match &self.aside {
            Some(removal) => replace(body, std::slice::from_ref(removal)),
            None => body.clone(),
        }
    }

    /// Whether the usage of a stream is only there because we asked for it.
    pub fn hides_usage(&self) -> bool {
        self.ask_usage.is_some()
    }

    /// The body for an upstream of the client's own format: the client's bytes, but for the
    /// upstream's name of the model, its brand, and the question for usage.
    pub fn body_for(
        &self,
        codec: &dyn Codec,
        body: &Bytes,
        upstream_model: &str,
        brand: &str,
    ) -> ChunkedBytes {
        let asides = self.ask_usage.iter().chain(&self.aside);
        let mut edits: Vec<Edit> = asides.cloned().collect();
        if upstream_model != self.model {
            let with = codec.spelled(body, upstream_model);
            edits.extend(self.model_at.clone().map(|range| Edit { range, with }));
            let counter = codec
                .counter()
                .filter(|_| self.operation == Operation::CountTokens);
            edits.extend(counter.and_then(|counter| counter.rename(body, upstream_model)));
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
