//! What a conversation is, in no wire format's words.

mod allowance;
mod api_error;
mod event;
mod image_options;
mod lease;
mod loss;
mod money;
mod owned;
mod proofs;
mod request;
mod response;
mod signature;
mod size;
mod spending;
mod text;
mod translation_state;
mod usage_record;

pub use allowance::{Allowance, Rate};
pub use api_error::{ApiError, ApiErrorKind};
pub use event::{Block, Delta, Event, Fold};
pub use image_options::{ImageOptions, ImageSize, Scale};
pub use lease::{LeaseGiven, LeaseNeed};
pub use loss::{Action, FieldLocation, ImageSetting, Loss, Losses, PartField, Setting};
pub use money::{LONGEST_AMOUNT, MAX_DIGITS, Money};
pub use proofs::{Proof, Proofs, Recall};
pub use request::{
    Arguments, Call, Depth, Effort, HostedTool, Labels, Output, Part, PartKind, Request, Role,
    Sampling, Search, Shape, Spelled, Thinking, Tool, ToolChoice, ToolKind, ToolResult, Turn,
};
pub use response::{
    Choice, Citation, Finish, Logprob, PROMPT_BLOCKED, Response, Usage, blocked_prompt,
};
pub use signature::{Issuer, Signature};
pub use spending::Spending;
pub use text::{Detail, Json, Media, Source, Text, shortened, split_data_url};
pub use translation_state::{ConversationState, Namespaced, Renamed, TranslationState};
pub use usage_record::UsageRecord;

/// The wire formats spoken on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    Chat,
    Messages,
    Native,
    Responses,
    /// Images by request: no conversation is held in it.
    Images,
}

impl Format {
    /// Those that conversations are held in.
    pub const ALL: [Format; 4] = [
        Format::Chat,
        Format::Messages,
        Format::Native,
        Format::Responses,
    ];

    /// With the one that has no conversations.
    pub const EVERY: [Format; 5] = [
        Format::Chat,
        Format::Messages,
        Format::Native,
        Format::Responses,
        Format::Images,
    ];

    /// The word for it in configs, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Chat => "chat",
            Format::Messages => "messages",
            Format::Native => "native",
            Format::Responses => "responses",
            Format::Images => "images",
        }
    }

    pub fn from_name(name: &str) -> Option<Format> {
        Format::EVERY
            .into_iter()
            .find(|format| format.name() == name)
    }
}
