//! The names of the formats.

/// One of the four formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireFormat {
    Chat,
    Messages,
    Native,
    Responses,
}

impl WireFormat {
    pub const ALL: [WireFormat; 4] = [
        WireFormat::Chat,
        WireFormat::Messages,
        WireFormat::Native,
        WireFormat::Responses,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            WireFormat::Chat => "chat",
            WireFormat::Messages => "messages",
            WireFormat::Native => "native",
            WireFormat::Responses => "responses",
        }
    }

    pub fn from_name(name: &str) -> Option<WireFormat> {
        WireFormat::ALL
            .into_iter()
            .find(|format| format.name() == name)
    }

    /// The signature with which an upstream of the format signs its reasoning.
    pub const fn signature(self) -> &'static str {
        match self {
            WireFormat::Chat => "",
            WireFormat::Messages => "c2NvcmUgc2lnbmF0dXJlIG9mIG1lc3NhZ2Vz",
            WireFormat::Native => "c2NvcmUgc2lnbmF0dXJlIG9mIG5hdGl2ZQ==",
            WireFormat::Responses => "c2NvcmUgc2lnbmF0dXJlIG9mIHJlc3BvbnNlcw==",
        }
    }
}
