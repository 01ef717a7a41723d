//! A response of a model.

use super::{Part, PartKind, Text};

#[derive(Debug, Clone, PartialEq)]
pub struct Response<'a> {
    pub id: Text<'a>,
    /// The upstream's name of the model.
    pub model: Text<'a>,
    /// Unix seconds; 0 where the upstream sends none.
    pub created: i64,
    pub choices: Vec<Choice<'a>>,
    /// `None`: not known.
    pub usage: Option<Usage>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Choice<'a> {
    pub parts: Vec<Part<'a>>,
    pub citations: Vec<Citation<'a>>,
    pub logprobs: Vec<Logprob<'a>>,
    pub finish: Finish<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish<'a> {
    Stop,
    StopSequence(Option<Text<'a>>),
    Length,
    /// The context window is full, before `max_tokens` is reached.
    ContextFull,
    Tools,
    /// Stopped by a content filter, with its message.
    Filtered(Option<Text<'a>>),
    /// The model refused; its text is a `Refusal` part.
    Refused,
    Paused,
    /// The model wrote a malformed tool call.
    MalformedCall,
    Other,
}

impl Finish<'_> {
    /// The word for it that is the same for all formats, as the conventions of OpenTelemetry have it.
    pub const fn name(&self) -> &'static str {
        match self {
            Finish::Stop | Finish::StopSequence(_) => "stop",
            Finish::Length | Finish::ContextFull => "length",
            Finish::Tools => "tool_call",
            Finish::Filtered(_) | Finish::Refused => "content_filter",
            Finish::Paused => "pause",
            Finish::MalformedCall => "error",
            Finish::Other => "other",
        }
    }
}

/// Token usage, with one convention for all formats: input includes cached, output includes reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub cached: u64,
    pub cache_written: u64,
    pub output: u64,
    pub thinking: u64,
    /// Audio tokens of the input, and of the output below.
    pub audio_input: u64,
    pub audio_output: u64,
    /// Image tokens of the input, and of the output below, where the upstream reports them.
    pub image_input: u64,
    pub image_output: u64,
    /// What of the counts above was used to compact the conversation, which is counted apart.
    pub compaction: CompactionUsage,
}

/// The tokens that an upstream has used to compact a conversation: input beside the cache, from it and written to it, and output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionUsage {
    pub uncached: u64,
    pub cached: u64,
    pub cache_written: u64,
    pub output: u64,
}

impl CompactionUsage {
    pub const fn plus(self, other: CompactionUsage) -> CompactionUsage {
        CompactionUsage {
            uncached: self.uncached.saturating_add(other.uncached),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            output: self.output.saturating_add(other.output),
        }
    }
}

impl Usage {
    /// Tells whether all counts are zero; some upstreams send zeros for unknown usage.
    pub fn is_blank(&self) -> bool {
        *self == Usage::default()
    }

    /// Adds the usage of another response.
    pub const fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            output: self.output.saturating_add(other.output),
            thinking: self.thinking.saturating_add(other.thinking),
            audio_input: self.audio_input.saturating_add(other.audio_input),
            audio_output: self.audio_output.saturating_add(other.audio_output),
            image_input: self.image_input.saturating_add(other.image_input),
            image_output: self.image_output.saturating_add(other.image_output),
            compaction: self.compaction.plus(other.compaction),
        }
    }

    pub const fn has_audio(self) -> bool {
        self.audio_input > 0 || self.audio_output > 0
    }
}

/// The start of a filter's message when the prompt was blocked; the reason follows.
pub const PROMPT_BLOCKED: &str = "Prompt blocked: ";

impl Response<'_> {
    /// The reason why the prompt was blocked, where the response says nothing else. Formats without a field for
    /// it send it as a refusal.
    pub fn blocked_prompt(&self) -> Option<&str> {
        let [choice] = &*self.choices else {
            return None;
        };
        let Finish::Filtered(words) = &choice.finish else {
            return None;
        };
        match (words, &*choice.parts) {
            (Some(words), []) => blocked_prompt(words),
            (None, [part]) => match &part.kind {
                PartKind::Refusal(words) => blocked_prompt(words),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The reason in a filter's message, if it is about the prompt.
pub fn blocked_prompt(words: &str) -> Option<&str> {
    words.strip_prefix(PROMPT_BLOCKED)
}

/// A source for a range of the text of a choice, in characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Citation<'a> {
    pub url: Text<'a>,
    pub title: Option<Text<'a>>,
    pub start: u64,
    pub end: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Logprob<'a> {
    pub token: Text<'a>,
    pub logprob: f64,
    pub top: Vec<(Text<'a>, f64)>,
}
