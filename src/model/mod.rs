//! What a conversation is, in no wire format's words.

mod fault;

pub use fault::{Fault, FaultKind};

/// The wire formats spoken on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    Chat,
    Messages,
    Native,
    Responses,
}

impl Format {
    pub const ALL: [Format; 4] = [
        Format::Chat,
        Format::Messages,
        Format::Native,
        Format::Responses,
    ];

    /// The word for it in configs, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Chat => "chat",
            Format::Messages => "messages",
            Format::Native => "native",
            Format::Responses => "responses",
        }
    }

    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}
