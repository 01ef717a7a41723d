//! OpenAI's endpoints beside conversations, images and embeddings, which pass through to upstreams that have them.

mod audio;
mod completions;
mod endpoint_fields;
mod response;
mod text_items;

use std::sync::LazyLock;

use bytes::Bytes;

use super::chat::Chat;
use super::dearer_setting::{DEARER_FIELDS, USUAL_VALUES};
use super::json_bytes::to_json_string;
use super::multipart;
use super::token_input::count_unknown_inputs;
use super::{
    InputSummary, Observation, Passthrough, PassthroughEndpoint, RequestFindings, ResponseObserver,
    RoutingFields, decode_model_name, decode_unique_fields, set_model,
};
use crate::json::{Edit, FieldIndex};
use crate::model::{ApiError, Usage};

use endpoint_fields::index_fields;

static MODERATION_FIELDS: LazyLock<FieldIndex> = LazyLock::new(|| {
    const NAMES: &[&str] = &["model", "input", "service_tier", "speed", "inference_geo"];
    index_fields(NAMES, DEARER_FIELDS)
});

static RERANK_FIELDS: LazyLock<FieldIndex> = LazyLock::new(|| {
    const NAMES: &[&str] = &[
        "model",
        "query",
        "documents",
        "top_n",
        "return_documents",
        "max_chunks_per_doc",
        "max_tokens_per_doc",
        "rank_fields",
        "service_tier",
        "speed",
        "inference_geo",
    ];
    index_fields(NAMES, DEARER_FIELDS)
});

impl PassthroughEndpoint {
    /// Decodes the fields of a request that routing and the reservation of its cost need.
    pub fn decode_routing_fields(self, body: &[u8]) -> Result<RoutingFields<'_>, ApiError> {
        match self {
            PassthroughEndpoint::Completions => completions::decode_routing_fields(body),
            PassthroughEndpoint::Speech => audio::decode_speech_fields(body),
            PassthroughEndpoint::Transcriptions | PassthroughEndpoint::Translations => {
                audio::decode_form_fields(body)
            }
            PassthroughEndpoint::Moderations => {
                let [model, _] = decode_unique_fields(body, [&["model"], &["input"]])?;
                decode_model_name(body, &model).map(RoutingFields::of_model)
            }
            PassthroughEndpoint::Rerank => {
                let fields = [&["model"] as &[_], &["query"], &["documents"]];
                let [model, _, _] = decode_unique_fields(body, fields)?;
                decode_model_name(body, &model).map(RoutingFields::of_model)
            }
        }
    }

    /// Rewrites a client's body before anything else reads it: forms are written anew, because parsers read a
    /// client's own in too many ways. `None`: it stays as it is.
    pub fn rewrite_body(self, body: &[u8]) -> Result<Option<Vec<u8>>, ApiError> {
        let rewritten = self.takes_recording().then(|| audio::rewrite_form(body));
        rewritten.transpose()
    }

    /// Returns the `content-type` of a request's body, where it is not JSON.
    pub fn content_type(self, body: &[u8]) -> Option<String> {
        let form = Some(body).filter(|_| self.takes_recording());
        form.and_then(multipart::content_type)
    }

    /// Encodes a model's name as it stands in a request's body.
    pub fn encode_model_name(self, name: &str) -> Vec<u8> {
        match self.takes_recording() {
            true => name.as_bytes().to_vec(),
            false => to_json_string(name),
        }
    }

    /// Returns a request's body with this model.
    pub fn set_model(self, body: &[u8], model: &str) -> Result<Bytes, ApiError> {
        match self.takes_recording() {
            true => audio::set_model(body, model),
            false => set_model(body, model),
        }
    }

    /// Summarizes the input of a request.
    pub fn summarize_input(self, body: &[u8]) -> InputSummary {
        match self {
            _ if self.takes_recording() => audio::summarize_form(body),
            PassthroughEndpoint::Completions => completions::summarize_input(body),
            PassthroughEndpoint::Rerank => {
                with_unknown_inputs(text_items::rerank_input(body), body, &RERANK_FIELDS)
            }
            PassthroughEndpoint::Moderations => {
                with_unknown_inputs(text_items::moderation_input(body), body, &MODERATION_FIELDS)
            }
            _ => InputSummary::default(),
        }
    }

    /// Returns what of a request decides access and money.
    pub fn findings(self, body: &[u8]) -> RequestFindings {
        let fields = match self {
            // Its `speed` is that of the voice.
            PassthroughEndpoint::Speech => return audio::speech_findings(body),
            PassthroughEndpoint::Completions => {
                let findings = RequestFindings::of(body, &completions::FIELDS, USUAL_VALUES);
                // The endpoint has no tools, but routers of models run theirs for fields of their own.
                return findings.with_tool_rounds(body, |_| 0);
            }
            PassthroughEndpoint::Moderations => &MODERATION_FIELDS,
            PassthroughEndpoint::Rerank => &RERANK_FIELDS,
            PassthroughEndpoint::Transcriptions | PassthroughEndpoint::Translations => {
                return audio::form_findings(body);
            }
        };
        RequestFindings::of(body, fields, USUAL_VALUES)
    }

    /// Returns the edits that limit the output of a request which sets no limit of its own.
    pub fn limit_output(
        self,
        body: &[u8],
        limit: u64,
        may_be_written: bool,
    ) -> Result<Vec<Edit>, ApiError> {
        match self {
            PassthroughEndpoint::Completions => {
                completions::limit_output(body, limit, may_be_written)
            }
            _ => Ok(Vec::new()),
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

    /// Observes a response that is plain text.
    pub fn observe_text(self, body: &[u8], observer: &mut ResponseObserver) {
        observer
            .uncounted
            .add_plain_text(&String::from_utf8_lossy(body));
        (observer.has_content, observer.ended) = (true, true);
    }

    /// Returns the usage that a JSON response reports, also where nothing else of it can be used.
    pub fn reported_usage(self, body: &[u8]) -> Option<Usage> {
        response::reported_usage(self, body)
    }

    /// Observes one event of a stream.
    pub fn observe_event(
        self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        match self {
            PassthroughEndpoint::Completions => Chat.observe_event(data, observer),
            _ => audio::observe_event(data, observer),
        }
    }

    /// Returns what a response of this content type is.
    pub fn response_kind(self, mime: &str) -> Option<EndpointResponse> {
        let mime = mime.to_ascii_lowercase();
        let is_recording = !mime.starts_with("text/");
        match (&*mime, self) {
            ("" | "application/json", _) => Some(EndpointResponse::Json),
            ("text/event-stream", _) => Some(EndpointResponse::Events),
            ("text/html", _) => None,
            (encoding, PassthroughEndpoint::Speech) if is_recording => {
                let bytes = audio::bytes_per_token(encoding);
                Some(EndpointResponse::Recording(bytes))
            }
            (_, endpoint) if endpoint.takes_recording() => Some(EndpointResponse::Text),
            _ => None,
        }
    }
}

/// What a response of an endpoint may be, by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointResponse {
    Json,
    Events,
    /// Text, such as subtitles.
    Text,
    /// Bytes that go to the client as they come; so many of them are a token, where the upstream counts none.
    Recording(u64),
}

fn with_unknown_inputs(input: InputSummary, body: &[u8], fields: &FieldIndex) -> InputSummary {
    InputSummary {
        inputs: input.inputs + count_unknown_inputs(body, fields, |_| true),
        ..input
    }
}
