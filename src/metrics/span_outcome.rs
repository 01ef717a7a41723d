//! What became of spans.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanOutcome {
    /// The receiver has taken them.
    Exported,
    /// They could not be sent, or the receiver has rejected them.
    Failed,
    /// Too many were waiting.
    Dropped,
}

impl SpanOutcome {
    pub const ALL: [SpanOutcome; 3] = [
        SpanOutcome::Exported,
        SpanOutcome::Failed,
        SpanOutcome::Dropped,
    ];

    /// The value of the `outcome` label.
    pub(super) const fn name(self) -> &'static str {
        match self {
            SpanOutcome::Exported => "exported",
            SpanOutcome::Failed => "failed",
            SpanOutcome::Dropped => "dropped",
        }
    }
}
