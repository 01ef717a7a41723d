//! The roles of a message.

/// The `role` of a message; it decides which content parts the message may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageRole {
    Developer,
    System,
    User,
    Assistant,
    Tool,
    Function,
}

/// The names of the roles.
pub(super) const ROLES: [(&str, MessageRole); 6] = [
    ("developer", MessageRole::Developer),
    ("system", MessageRole::System),
    ("user", MessageRole::User),
    ("assistant", MessageRole::Assistant),
    ("tool", MessageRole::Tool),
    ("function", MessageRole::Function),
];

impl MessageRole {
    /// Whether messages of this role may hold images, audio and files. In tool results they are
    /// not official, but other formats accept them and clients send them.
    pub(super) const fn takes_media(self) -> bool {
        matches!(self, MessageRole::User | MessageRole::Tool)
    }
}
