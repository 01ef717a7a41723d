//! What a conversation is, in no wire format's words.

mod allowance;
mod event;
mod fault;
mod lease;
mod lost;
mod memory;
mod money;
mod owned;
mod picture;
mod proofs;
mod receipt;
mod request;
mod response;
mod seal;
mod size;
mod spending;
mod text;

pub use allowance::{Allowance, Rate};
pub use event::{Block, Delta, Event, Fold};
pub use fault::{Fault, FaultKind};
pub use lease::{LeaseGiven, LeaseNeed};
pub use lost::{Action, Losses, Lost, PartField, PictureSetting, Place, Setting};
pub use memory::{Memory, Namespaced, Renamed, Thread};
pub use money::{LONGEST_AMOUNT, MAX_DIGITS, Money};
pub use picture::{Picture, PictureSize, Scale};
pub use proofs::{Proof, Proofs, Recall};
pub use receipt::Receipt;
pub use request::{
    Arguments, Call, Depth, Effort, HostedTool, Labels, Output, Part, PartKind, Request, Role,
    Sampling, Search, Shape, Spelled, Thinking, Tool, ToolChoice, ToolKind, ToolResult, Turn,
};
pub use response::{
    Choice, Citation, Finish, Logprob, PROMPT_BLOCKED, Response, Usage, blocked_prompt,
};
pub use seal::{Issuer, Seal};
pub use spending::Spending;
pub use text::{Detail, Json, Media, Source, Text, shortened, split_data_url};

/// The wire formats spoken on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    Chat,
    Messages,
    Native,
    Responses,
    /// Pictures by request: no conversation is held in it.
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
