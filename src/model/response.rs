//! A whole reply.

use super::{Part, PartKind, Text};

#[derive(Debug, Clone, PartialEq)]
pub struct Response<'a> {
    pub id: Text<'a>,
    /// What the upstream called the model.
    pub model: Text<'a>,
    /// Unix seconds; 0 when the upstream did not say.
    pub created: i64,
    pub choices: Vec<Choice<'a>>,
    /// `None`: not known, and never invented.
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
    /// The context window, not the limit that was asked for, is full.
    ContextFull,
    Tools,
    /// Stopped by a filter, with its words where it gave any.
    Filtered(Option<Text<'a>>),
    /// The model declined in words; the words are a `Refusal` part.
    Refused,
    Paused,
    /// The model tried to call a tool and failed to write the call.
    MalformedCall,
    Other,
}

/// One convention for all formats: input includes cached, output includes thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub cached: u64,
    pub cache_written: u64,
    pub output: u64,
    pub thinking: u64,
    /// Of the input and of the output, what was sound.
    pub audio_input: u64,
    pub audio_output: u64,
    /// Of the input and of the output, what was images, where the upstream tells it apart.
    pub image_input: u64,
    pub image_output: u64,
}

impl Usage {
    /// Some upstreams write zeros for what they do not know, or not yet.
    pub fn is_blank(&self) -> bool {
        *self == Usage::default()
    }

    pub const fn has_audio(self) -> bool {
        self.audio_input > 0 || self.audio_output > 0
    }
}

/// A source for a stretch of the answer's text, in characters from the start of the choice's text.
/// A filter's words when it was the prompt that it did not let pass; the reason follows.
pub const PROMPT_BLOCKED: &str = "Prompt blocked: ";

impl Response<'_> {
    /// Why the prompt itself was not let pass, where that is all there is to say. Formats without
    /// a place for it have it as a refusal.
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

/// The reason in a filter's words, if they are about the prompt.
pub fn blocked_prompt(words: &str) -> Option<&str> {
    words.strip_prefix(PROMPT_BLOCKED)
}

#[derive(Debug, Clone, PartialEq, Eq)]
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
