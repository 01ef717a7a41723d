//! What codecs are given besides a body: facts about the request, its target and its response.

use std::borrow::Cow;
use std::ops::Range;

use super::capabilities::Capabilities;
use crate::json::Edit;
use crate::model::{ConversationState, ImageSize, SignatureLookup, TranslationState};

/// An operation of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// One JSON response, or a stream where the body says so.
    Generate,
    /// A stream, because the path says so.
    Stream(Framing),
    CountTokens,
    /// Images made from images.
    Edit,
    /// Embeddings of texts.
    Embed(EmbedMethod),
    /// What only an upstream with the same endpoint can answer.
    Passthrough(PassthroughEndpoint),
}

/// An endpoint of OpenAI's API that passes through to upstreams which have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassthroughEndpoint {
    Completions,
    Moderations,
    Rerank,
    /// Text that is read aloud.
    Speech,
    /// The text of a recording.
    Transcriptions,
    /// The English text of a recording.
    Translations,
}

impl PassthroughEndpoint {
    pub const ALL: [PassthroughEndpoint; 6] = [
        PassthroughEndpoint::Completions,
        PassthroughEndpoint::Moderations,
        PassthroughEndpoint::Rerank,
        PassthroughEndpoint::Speech,
        PassthroughEndpoint::Transcriptions,
        PassthroughEndpoint::Translations,
    ];

    /// Returns the path behind `/v1`.
    pub const fn path(self) -> &'static str {
        match self {
            PassthroughEndpoint::Completions => "/completions",
            PassthroughEndpoint::Moderations => "/moderations",
            PassthroughEndpoint::Rerank => "/rerank",
            PassthroughEndpoint::Speech => "/audio/speech",
            PassthroughEndpoint::Transcriptions => "/audio/transcriptions",
            PassthroughEndpoint::Translations => "/audio/translations",
        }
    }

    /// Tells whether the endpoint is about audio: its responses may be no JSON.
    pub const fn is_audio(self) -> bool {
        matches!(self, PassthroughEndpoint::Speech) || self.takes_recording()
    }

    /// Tells whether requests are forms with a recording.
    pub const fn takes_recording(self) -> bool {
        matches!(
            self,
            PassthroughEndpoint::Transcriptions | PassthroughEndpoint::Translations
        )
    }

    const fn model_type(self) -> &'static str {
        match self {
            PassthroughEndpoint::Completions => "completion",
            PassthroughEndpoint::Moderations => "moderation",
            PassthroughEndpoint::Rerank => "rerank",
            PassthroughEndpoint::Speech
            | PassthroughEndpoint::Transcriptions
            | PassthroughEndpoint::Translations => "audio",
        }
    }

    /// Returns the name in logs, metrics, usage records and the paths of upstreams.
    pub const fn label(self) -> &'static str {
        match self {
            PassthroughEndpoint::Completions => "completions",
            PassthroughEndpoint::Moderations => "moderations",
            PassthroughEndpoint::Rerank => "rerank",
            PassthroughEndpoint::Speech => "speech",
            PassthroughEndpoint::Transcriptions => "transcriptions",
            PassthroughEndpoint::Translations => "translations",
        }
    }
}

impl Operation {
    /// The types of models that are asked for one operation only.
    pub const MODEL_TYPES: [&str; 5] = ["embedding", "completion", "moderation", "rerank", "audio"];

    /// The labels of all operations that have one.
    pub const LABELS: [&str; 7] = [
        "embeddings",
        "completions",
        "moderations",
        "rerank",
        "speech",
        "transcriptions",
        "translations",
    ];

    /// Returns the type of the models that do it, which are asked for nothing else. `None`: models of conversations
    /// and images do it.
    pub const fn model_type(self) -> Option<&'static str> {
        match self {
            Operation::Embed(_) => Some("embedding"),
            Operation::Passthrough(endpoint) => Some(endpoint.model_type()),
            Operation::Generate
            | Operation::Stream(_)
            | Operation::CountTokens
            | Operation::Edit => None,
        }
    }

    /// Returns what models of a type are asked for.
    pub fn of_model_type(model_type: &str) -> Operation {
        let endpoints = PassthroughEndpoint::ALL.map(Operation::Passthrough);
        let mut beside = [Operation::Embed(EmbedMethod::Batch)]
            .into_iter()
            .chain(endpoints);
        let found = beside.find(|operation| operation.model_type() == Some(model_type));
        found.unwrap_or(Operation::Generate)
    }

    /// Tells whether the response has an output of tokens.
    pub const fn has_output(self) -> bool {
        match self {
            Operation::Generate | Operation::Stream(_) | Operation::Edit => true,
            Operation::Passthrough(endpoint) => !matches!(
                endpoint,
                PassthroughEndpoint::Moderations | PassthroughEndpoint::Rerank
            ),
            Operation::CountTokens | Operation::Embed(_) => false,
        }
    }

    /// Tells whether a request can limit that output: how long a recording or its text gets depends on the input alone.
    pub const fn has_output_limit(self) -> bool {
        match self {
            Operation::Passthrough(endpoint) => {
                matches!(endpoint, PassthroughEndpoint::Completions)
            }
            other => other.has_output(),
        }
    }

    /// Returns the name in logs, metrics and usage records, where it is not that of the client's format.
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Operation::Embed(_) => Some("embeddings"),
            Operation::Passthrough(endpoint) => Some(endpoint.label()),
            Operation::Generate
            | Operation::Stream(_)
            | Operation::CountTokens
            | Operation::Edit => None,
        }
    }
}

/// Which method of an endpoint for embeddings is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedMethod {
    /// One vector, in formats that have a method of its own for it.
    Single,
    /// A list of vectors.
    Batch,
}

/// The framing of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Sse,
    /// A JSON array that arrives element by element.
    Array,
}

/// The facts about a request that do not stand in its body.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestHead<'a> {
    pub path_model: Option<&'a str>,
    pub stream: bool,
    /// The model is known to answer with text only.
    pub text_only: bool,
    /// The request is for images made from images.
    pub edits: bool,
    /// The sizes that the model's images may have; empty: any.
    pub sizes: &'a [ImageSize],
    /// The response will be stored if the client asks for that.
    pub keeps: bool,
    /// The longest output to ask for where the client sets no limit: no more has been reserved.
    pub reserved_output: Option<u64>,
    /// The most images that the upstream's own tool may make: no more have been reserved.
    pub image_limit: Option<u64>,
    /// Finds signatures for clients that do not send them back.
    pub recall: Option<&'a dyn SignatureLookup>,
}

/// The model of an upstream that a request is encoded for.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamTarget<'a> {
    /// The upstream's own name of the model.
    pub model: &'a str,
    pub stream: bool,
    /// Sent where the format requires a limit and the client set none.
    pub max_output_tokens: Option<u64>,
    pub capabilities: &'a Capabilities,
    /// The vendor's name in the names of the upstream's own tools.
    pub brand: &'a str,
    /// The model answers with images only.
    pub images_only: bool,
}

/// The facts about a request that the encoder of its response needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseOptions {
    /// The model id that the client sent.
    pub model: String,
    pub stream: bool,
    pub framing: Framing,
    pub include_usage: bool,
    pub request_id: String,
    /// Unix seconds.
    pub created_at: i64,
    pub translation_state: TranslationState,
}

/// The fields of a request that routing needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoutingFields<'a> {
    pub model: Option<ModelField<'a>>,
    pub stream: bool,
    /// Makes the stream report its usage; `None`: it does so already.
    pub include_usage_edit: Option<Edit>,
    pub output_limit: OutputLimit,
    /// The upstream is to answer after the response to this request.
    pub is_background: bool,
    /// The field for which the upstream keeps the conversation under the id of its response, whatever the gateway stores.
    pub kept_conversation: Option<&'static str>,
    /// In formats that have a [`ConversationCodec`](super::ConversationCodec).
    pub conversation: Option<ConversationState>,
    /// In formats that have it.
    pub async_option: Option<AsyncOption>,
}

impl<'a> RoutingFields<'a> {
    /// The fields of a request that has no others than its model.
    pub fn of_model(model: Option<ModelField<'a>>) -> RoutingFields<'a> {
        RoutingFields {
            model,
            ..RoutingFields::default()
        }
    }
}

/// The `async` field of an image request, which is for the gateway and no upstream gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncOption {
    /// The client will fetch the result later.
    pub is_async: bool,
    /// Removes the field from the body.
    pub removal: Edit,
}

/// The largest output that a request allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    /// Tokens of each choice; `None`: the request sets no limit.
    pub output: Option<u64>,
    /// The body may have a field for it, be it `null` or 0.
    pub may_be_written: bool,
    pub choices: u64,
    /// Width and height of each image, where the request says how large it is.
    pub pixels: Option<(u32, u32)>,
    /// The field with a limit of 0 beside a field with another one: an upstream that heeds the first may take it for none.
    pub zero_field: Option<&'static str>,
}

impl Default for OutputLimit {
    fn default() -> OutputLimit {
        OutputLimit::of(None, None)
    }
}

impl OutputLimit {
    /// The limit by two fields. A limit of 0 is none: some upstreams take it for an absent one.
    pub(super) fn of(output: Option<u64>, choices: Option<u64>) -> OutputLimit {
        OutputLimit {
            output: output.filter(|output| *output > 0),
            may_be_written: true,
            choices: choices.unwrap_or(1).max(1),
            pixels: None,
            zero_field: None,
        }
    }
}

/// A model's name in a body, and where it stands, quotes included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelField<'a> {
    pub name: Cow<'a, str>,
    pub range: Range<usize>,
}
