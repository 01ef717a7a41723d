//! A conversation in no wire format's words: requests, responses, events, errors, money and usage.

mod api_error;
mod embedding;
mod event;
mod image_options;
mod lease;
mod loss;
mod money;
mod name_pattern;
mod owned;
mod rate_limit;
mod request;
mod response;
mod signature;
mod signed_parts;
mod size;
mod spending;
mod text;
mod translation_state;
mod usage_record;

pub use api_error::{ApiError, ApiErrorKind};
pub use embedding::{EmbeddingRequest, Embeddings, InputHint, InputHints};
pub use event::{Block, Delta, Event, Fold};
pub use image_options::{ImageOptions, ImageSize, Scale};
pub use lease::{CapKind, LeaseGrant, LeaseRequest};
pub use loss::{Action, FieldLocation, ImageSetting, Loss, Losses, PartField, Setting};
pub use money::{MAX_AMOUNT_LEN, MAX_DIGITS, Money};
pub use name_pattern::{NamePattern, PatternIndex, is_plain_name};
pub use rate_limit::{RateLimit, RateLimitStatus};
pub use request::{
    Arguments, Call, Depth, Effort, HostedTool, Labels, Output, OutputFormat, Part, PartKind,
    Request, Role, Sampling, Search, SettingAliases, Thinking, Tool, ToolChoice, ToolKind,
    ToolResult, Turn,
};
pub use response::{
    Choice, Citation, CompactionUsage, Finish, Logprob, PROMPT_BLOCKED, Response, Usage,
    blocked_prompt,
};
pub use signature::{Issuer, Signature};
pub use signed_parts::{SignatureLookup, SignedPart, SignedParts};
pub use size::InputMedia;
pub use spending::Spending;
pub use text::{
    Detail, Json, Media, Source, Text, append, borrowed, own, split_data_url, truncated,
};
pub use translation_state::{ConversationState, TranslationState};
pub use usage_record::{EarlierAttempt, UsageDetails, UsageRecord};

/// The wire formats of clients and upstreams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    Chat,
    Messages,
    Native,
    Responses,
    /// The images API, which has no conversations.
    Images,
}

impl Format {
    /// The formats of conversations.
    pub const ALL: [Format; 4] = [
        Format::Chat,
        Format::Messages,
        Format::Native,
        Format::Responses,
    ];

    /// All formats, the images API included.
    pub const EVERY: [Format; 5] = [
        Format::Chat,
        Format::Messages,
        Format::Native,
        Format::Responses,
        Format::Images,
    ];

    /// The name in configs, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Chat => "chat",
            Format::Messages => "messages",
            Format::Native => "native",
            Format::Responses => "responses",
            Format::Images => "images",
        }
    }

    /// Tells whether a stream of the format says that it is over. The others just end.
    pub const fn has_end_mark(self) -> bool {
        !matches!(self, Format::Native | Format::Images)
    }

    pub fn from_name(name: &str) -> Option<Format> {
        Format::EVERY
            .into_iter()
            .find(|format| format.name() == name)
    }
}
