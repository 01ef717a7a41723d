//! Losses of a translation: what was dropped, approximated or added, and its location in the client's request.

use std::borrow::Cow;

/// One difference between the client's request and the translated one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub action: Action,
    pub location: FieldLocation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Dropped,
    Approximated,
    Added,
}

impl Action {
    /// Returns the word for people and programs.
    pub const fn word(self) -> &'static str {
        match self {
            Action::Dropped => "dropped",
            Action::Approximated => "adjusted",
            Action::Added => "added",
        }
    }
}

/// A location in the client's body; the client's codec turns it into a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldLocation {
    /// A path in the client's format.
    Path(Cow<'static, str>),
    Setting(Setting),
    /// All turns: there may be none.
    Turns,
    Turn {
        turn: Option<u32>,
    },
    Part {
        turn: Option<u32>,
        part: Option<u32>,
    },
    /// A part inside of a tool result.
    InToolResult {
        turn: Option<u32>,
        part: Option<u32>,
        inner: Option<u32>,
    },
    /// One field of a part, while the rest stays.
    Field {
        of: Box<FieldLocation>,
        field: PartField,
    },
    Tool {
        tool: u32,
    },
    /// The `strict` flag of a tool.
    ToolStrict {
        tool: u32,
    },
}

impl FieldLocation {
    /// The turn at this index, or else all of them.
    pub fn turn_or_all(turn: Option<u32>) -> FieldLocation {
        match turn {
            Some(_) => FieldLocation::Turn { turn },
            None => FieldLocation::Turns,
        }
    }
}

/// A field of a part beside its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartField {
    /// The `detail` of an image.
    Detail,
    /// The name of a file that came as data.
    FileName,
    /// The name of a file that came as a URL.
    UrlName,
    /// The error flag of a tool result.
    Failure,
    /// The signature of the reasoning that led to a call.
    CallSignature,
}

impl FieldLocation {
    pub fn field(&self, field: PartField) -> FieldLocation {
        FieldLocation::Field {
            of: Box::new(self.clone()),
            field,
        }
    }

    /// The location of a part inside of the tool result here.
    pub const fn in_tool_result(&self, inner: Option<u32>) -> FieldLocation {
        let (turn, part) = match self {
            FieldLocation::Part { turn, part } | FieldLocation::InToolResult { turn, part, .. } => {
                (*turn, *part)
            }
            _ => (None, None),
        };
        FieldLocation::InToolResult { turn, part, inner }
    }
}

/// Settings whose field depends on the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    MaxTokens,
    Temperature,
    TopP,
    TopK,
    Seed,
    Stop,
    PresencePenalty,
    FrequencyPenalty,
    Choices,
    Logprobs,
    Thinking,
    ToolChoice,
    ParallelTools,
    OutputFormat,
    /// Labels of the output format.
    OutputName,
    OutputDescription,
    Verbosity,
    Search,
    CodeExecution,
    User,
    CacheKey,
    ServiceTier,
    Metadata,
    Images,
    Image(ImageSetting),
    Audio,
}

/// Settings of image generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSetting {
    Size,
    Quality,
    FileFormat,
    Compression,
    Background,
    Moderation,
    Mask,
    PartialImages,
}

/// The losses of a request or a response, each once, and no more of them than a header can name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(pub Vec<Loss>);

impl Losses {
    /// How many losses are recorded. A body may lose something at every element, and those who read
    /// the list want the first ones.
    const LIMIT: usize = 500;

    /// How many bytes their paths may have together: each may repeat the client's names.
    const MAX_BYTES: usize = 64 << 10;

    pub fn dropped(&mut self, location: FieldLocation) {
        self.note(Action::Dropped, location);
    }

    pub fn approximated(&mut self, location: FieldLocation) {
        self.note(Action::Approximated, location);
    }

    pub fn added(&mut self, location: FieldLocation) {
        self.note(Action::Added, location);
    }

    /// Reports a loss, if there is a location.
    pub fn dropped_if_present(&mut self, location: Option<FieldLocation>) {
        if let Some(location) = location {
            self.dropped(location);
        }
    }

    /// Tells whether one more is recorded: its path need not be written otherwise.
    pub fn has_room(&self) -> bool {
        let paths = self.0.iter().map(|loss| match &loss.location {
            FieldLocation::Path(path) => path.len(),
            _ => 0,
        });
        self.0.len() < Losses::LIMIT && paths.sum::<usize>() < Losses::MAX_BYTES
    }

    fn note(&mut self, action: Action, location: FieldLocation) {
        if !self.has_room() {
            return;
        }
        let loss = Loss { action, location };
        if !self.0.contains(&loss) {
            self.0.push(loss);
        }
    }
}
