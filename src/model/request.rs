//! A request: the conversation, the tools and the settings.

use super::{ImageOptions, Json, Media, Setting, Signature, Text};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request<'a> {
    /// System turns stay at the client's position; encoders move them where their format needs them.
    pub turns: Vec<Turn<'a>>,
    pub tools: Vec<Tool<'a>>,
    pub tool_choice: Option<ToolChoice<'a>>,
    /// `Some(false)`: at most one call at a time.
    pub parallel_tools: Option<bool>,
    pub thinking: Thinking,
    pub output: Output<'a>,
    pub sampling: Sampling<'a>,
    pub search: Option<Search<'a>>,
    pub code_execution: bool,
    pub labels: Labels<'a>,
    pub aliases: SettingAliases,
}

impl Request<'_> {
    /// Tells whether the model may use this hosted tool.
    pub const fn has(&self, tool: HostedTool) -> bool {
        match tool {
            HostedTool::Search => self.search.is_some(),
            HostedTool::CodeExecution => self.code_execution,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Turn<'a> {
    pub role: Role,
    pub parts: Vec<Part<'a>>,
    /// Index in the client's own list; `None`: it came from a field of its own (the system prompt).
    pub at: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    /// A system turn that the client called `developer`.
    Developer,
    User,
    Model,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Part<'a> {
    pub kind: PartKind<'a>,
    /// Index in the client's own list of parts; `None`: the content was a bare string.
    pub at: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PartKind<'a> {
    Text(Text<'a>),
    Media(Media<'a>),
    Reasoning {
        text: Text<'a>,
        signature: Option<Signature<'a>>,
    },
    Call(Call<'a>),
    Result(ToolResult<'a>),
    Refusal(Text<'a>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    pub id: Option<Text<'a>>,
    pub name: Text<'a>,
    pub arguments: Arguments<'a>,
    pub signature: Option<Signature<'a>>,
    pub kind: ToolKind,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    pub id: Option<Text<'a>>,
    pub name: Option<Text<'a>>,
    pub parts: Vec<Part<'a>>,
    pub failed: bool,
}

/// Arguments of a call: text in some formats, an object in others; converted when the target needs it.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments<'a> {
    Text(Text<'a>),
    Tree(Json<'a>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tool<'a> {
    pub name: Text<'a>,
    pub description: Option<Text<'a>>,
    /// Of a custom tool: the grammar of its input as `{"syntax", "definition"}`, if it has one.
    pub schema: Option<Json<'a>>,
    pub strict: Option<bool>,
    pub kind: ToolKind,
    /// The namespace, if the client declared the tool in one; the name begins with it.
    pub namespace: Option<Text<'a>>,
    pub at: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolKind {
    #[default]
    Function,
    /// Takes free text instead of JSON arguments.
    Custom,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice<'a> {
    Auto,
    None,
    Required,
    One(Text<'a>),
    /// A tool that the upstream runs.
    Hosted(HostedTool),
    Subset {
        names: Vec<Text<'a>>,
        required: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostedTool {
    Search,
    CodeExecution,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Thinking {
    pub depth: Option<Depth>,
    /// Whether the client wants to see the reasoning.
    pub show: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Depth {
    Off,
    /// The model decides, without a hint.
    Dynamic,
    Effort(Effort),
    /// Tokens.
    Budget(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    Minimal,
    Low,
    Medium,
    High,
    ExtraHigh,
    Max,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output<'a> {
    pub format: OutputFormat<'a>,
    pub images: bool,
    /// Options of the images.
    pub image_options: ImageOptions<'a>,
    /// The most images that may be made.
    pub image_limit: Option<u64>,
    pub audio: bool,
    pub verbosity: Option<Text<'a>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum OutputFormat<'a> {
    #[default]
    Text,
    Json,
    Schema {
        name: Option<Text<'a>>,
        description: Option<Text<'a>>,
        schema: Json<'a>,
        strict: Option<bool>,
    },
    /// One of the enum values of the schema, as bare text.
    Enum(Json<'a>),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling<'a> {
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u64>,
    pub seed: Option<i64>,
    pub stop: Vec<Text<'a>>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub choices: Option<u32>,
    pub logprobs: bool,
    pub top_logprobs: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Search<'a> {
    pub context_size: Option<Text<'a>>,
    pub city: Option<Text<'a>>,
    pub region: Option<Text<'a>>,
    pub country: Option<Text<'a>>,
    pub timezone: Option<Text<'a>>,
    pub allowed_domains: Vec<Text<'a>>,
}

/// The field that the client used for a setting with several names, if not the usual one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SettingAliases {
    pub max_tokens: Option<&'static str>,
    pub user: Option<&'static str>,
    pub shape: Option<&'static str>,
}

impl SettingAliases {
    pub const fn path(&self, setting: Setting) -> Option<&'static str> {
        match setting {
            Setting::MaxTokens => self.max_tokens,
            Setting::User => self.user,
            Setting::OutputFormat => self.shape,
            _ => None,
        }
    }
}

/// Fields about the request that are not for the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Labels<'a> {
    pub user: Option<Text<'a>>,
    pub cache_key: Option<Text<'a>>,
    pub service_tier: Option<Text<'a>>,
    pub metadata: Option<Json<'a>>,
}
