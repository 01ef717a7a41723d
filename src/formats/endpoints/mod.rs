//! OpenAI's endpoints beside conversations, images and embeddings, which pass through to upstreams that have them.

mod completions;
mod response;

use super::chat::decode_model_name;
use super::{
    InputSummary, ModelField, Observation, PassthroughEndpoint, ResponseObserver, RoutingFields,
    decode_unique_fields,
};
use crate::json::{Edit, JsonReader, RawJson, has_repeated_keys};
use crate::model::ApiError;

const RERANK_FIELDS: [&str; 8] = [
    "model",
    "query",
    "documents",
    "top_n",
    "return_documents",
    "max_chunks_per_doc",
    "max_tokens_per_doc",
    "rank_fields",
];

impl PassthroughEndpoint {
    /// Decodes the fields of a request that routing and the reservation of its cost need.
    pub fn decode_routing_fields(self, body: &[u8]) -> Result<RoutingFields<'_>, ApiError> {
        match self {
            PassthroughEndpoint::Completions => completions::decode_routing_fields(body),
            PassthroughEndpoint::Moderations | PassthroughEndpoint::Rerank => {
                model_of(body).map(RoutingFields::of_model)
            }
        }
    }

    /// Summarizes the input of a request.
    pub fn summarize_input(self, body: &[u8]) -> InputSummary {
        let mut summary = match self {
            PassthroughEndpoint::Completions => completions::summarize_input(body),
            PassthroughEndpoint::Moderations => InputSummary::default(),
            PassthroughEndpoint::Rerank => rerank_input(body),
        };
        // What is not known may be input, and of two fields of the same name the upstream may read the other one.
        let text = str::from_utf8(body).unwrap_or_default();
        summary.has_unseen |= !self.knows_fields_of(text) || has_repeated_keys(text);
        summary
    }

    fn knows_fields_of(self, text: &str) -> bool {
        let known: &[&str] = match self {
            PassthroughEndpoint::Completions => &completions::FIELDS,
            PassthroughEndpoint::Moderations => &["model", "input"],
            PassthroughEndpoint::Rerank => &RERANK_FIELDS,
        };
        let mut is_known = true;
        let read = JsonReader::new(text).object(|reader, key| {
            is_known &= known.contains(&key);
            reader.skip()
        });
        read.is_ok() && is_known
    }

    /// Returns the edits that limit the output of a request which sets no limit of its own.
    pub fn limit_output(self, body: &[u8], limit: u64) -> Result<Vec<Edit>, ApiError> {
        match self {
            PassthroughEndpoint::Completions => completions::limit_output(body, limit),
            PassthroughEndpoint::Moderations | PassthroughEndpoint::Rerank => Ok(Vec::new()),
        }
    }

    /// Observes a JSON response: its usage, and whether it is complete.
    pub fn observe_response(
        self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        response::observe(self, body, observer)
    }

    /// Observes one event of a stream.
    pub fn observe_event(
        self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        completions::observe_event(data, observer)
    }
}

/// Summarizes the input of a ranking: the query is read with each of the documents.
fn rerank_input(body: &[u8]) -> InputSummary {
    let fields = decode_unique_fields(body, [&["query"], &["documents"]]);
    let Ok([query, documents]) = fields else {
        return InputSummary::default();
    };
    let length = query.value().map_or(0, |query| query.get().len() as u64);
    let documents = documents.value().map(RawJson::get).unwrap_or_default();
    let mut count: u64 = 0;
    let read = JsonReader::new(documents).array(|reader| {
        count += 1;
        reader.skip()
    });
    InputSummary {
        repeated_bytes: length.saturating_mul(count.saturating_sub(1)),
        has_unseen: read.is_err(),
        ..InputSummary::default()
    }
}

fn model_of(body: &[u8]) -> Result<Option<ModelField<'_>>, ApiError> {
    let [model] = decode_unique_fields(body, [&["model"]])?;
    let model = model.value().map(|raw| decode_model_name(body, raw));
    model.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_counts_with_every_document() {
        let body = br#"{"model":"m","query":"abcd","documents":["a",{"text":"b"},"c"]}"#;
        let summary = PassthroughEndpoint::Rerank.summarize_input(body);
        assert_eq!((summary.repeated_bytes, summary.has_unseen), (12, false));
        let other = br#"{"model":"m","query":"abcd","documents":"file"}"#;
        assert!(
            PassthroughEndpoint::Rerank
                .summarize_input(other)
                .has_unseen
        );
    }
}
