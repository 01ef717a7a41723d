//! What a translation could not say, and where the client had written it.

use std::borrow::Cow;

/// One thing of the request that the other format cannot say, says differently, or insists on.
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

/// Where it stands in the client's body; the client's codec turns it into a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldLocation {
    /// A path already in the client's words.
    Path(Cow<'static, str>),
    Setting(Setting),
    Turn {
        turn: Option<u32>,
    },
    Part {
        turn: Option<u32>,
        part: Option<u32>,
    },
    /// Something inside of a tool's result.
    InToolResult {
        turn: Option<u32>,
        part: Option<u32>,
        inner: Option<u32>,
    },
    /// One field of it, while the rest stays.
    Field {
        of: Box<FieldLocation>,
        field: PartField,
    },
    Tool {
        tool: u32,
    },
    /// That a tool's arguments must keep to its schema.
    ToolStrict {
        tool: u32,
    },
}

/// What a part may say beside its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartField {
    /// How closely to look at an image.
    Detail,
    /// What a file is called that came as data.
    FileName,
    /// What a file is called that came as an address.
    UrlName,
    /// That a tool has failed.
    Failure,
    /// The proof of the thoughts that led to a call.
    CallSignature,
}

impl FieldLocation {
    pub fn field(&self, field: PartField) -> FieldLocation {
        FieldLocation::Field {
            of: Box::new(self.clone()),
            field,
        }
    }

    /// Inside of the result that stands here.
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

/// Settings that every format spells in its own way.
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
    /// What the shape is called, and what is said of it: no more than labels.
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

/// How images are to be made.
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

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(pub Vec<Loss>);

impl Losses {
    pub fn dropped(&mut self, location: FieldLocation) {
        self.note(Action::Dropped, location);
    }

    pub fn approximated(&mut self, location: FieldLocation) {
        self.note(Action::Approximated, location);
    }

    pub fn added(&mut self, location: FieldLocation) {
        self.note(Action::Added, location);
    }

    /// For what may not have been there in the first place.
    pub fn dropped_if_present(&mut self, location: Option<FieldLocation>) {
        if let Some(location) = location {
            self.dropped(location);
        }
    }

    fn note(&mut self, action: Action, location: FieldLocation) {
        let lost = Loss { action, location };
        if !self.0.contains(&lost) {
            self.0.push(lost);
        }
    }
}
