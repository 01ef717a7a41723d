//! The capabilities of an upstream's model, where models of one format differ.

use super::effort::NO_EFFORT;
use crate::model::{Effort, ImageSize};

/// What a model accepts; the defaults are those of most models of a format.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    pub messages_version: MessagesVersion,
    /// System turns may stand between others.
    pub messages_mid_system: bool,
    pub messages_thinking: ThinkingStyle,
    /// Temperature, top_p and top_k; absent: as the version says.
    pub messages_sampling: Option<bool>,
    /// The last turn may be one of the model.
    pub messages_prefill: bool,
    /// The version of the web search tool, if the model has it.
    pub messages_web_search: Option<&'static str>,
    /// Calls that are sent back need their signatures.
    pub native_requires_signature: bool,
    /// Absent: the model accepts both, and gets what the client sent.
    pub native_thinking: Option<ThinkingStyle>,
    /// The least and the largest thinking budget in tokens.
    pub native_thinking_range: Option<(u64, u64)>,
    /// Media inside tool results.
    pub native_function_response_parts: bool,
    /// Images in responses.
    pub native_image_output: bool,
    /// The sizes that images may have; empty: any.
    pub image_sizes: Vec<ImageSize>,
    /// `max_tokens` instead of the newer name.
    pub chat_old_max_field: bool,
    pub chat_developer_role: bool,
    /// Earlier reasoning must be sent back inside a tool loop.
    pub chat_returns_reasoning: bool,
    /// Reasoning comes in the text, between `<think>` and `</think>`.
    pub chat_think_tags: bool,
    /// The fields of a request that the upstream refuses; `messages.name` is one in every message.
    pub chat_unsupported: Vec<String>,
    /// Reasoning comes with encrypted content, which clients send back.
    pub responses_encrypted_reasoning: bool,
    /// The upstream itself stores responses for requests that continue from them.
    pub responses_keeps_state: bool,
    /// Temperature, top_p, stop and penalties, for chat and responses.
    pub sampling: bool,
    pub search: SearchUse,
    /// Parallel calls can be turned off.
    pub parallel_switch: bool,
    /// The efforts that the model accepts; `None`: all. `off_effort` is for an effort of none.
    pub efforts: Option<Vec<Effort>>,
    /// An effort of none turns reasoning off.
    pub off_effort: bool,
    /// What vectors are for where the client does not say it, for upstreams that want to know.
    pub embedding_input_type: &'static str,
}

/// The version of the Messages API that a model is used with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagesVersion {
    /// `2023-06-01`
    First,
    /// `2026-10-21`
    Second,
}

/// Whether a model accepts the search tool of its upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchUse {
    Always,
    /// Not together with tools of the client.
    Alone,
    Never,
}

/// How the amount of reasoning is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingStyle {
    /// By a named level: an effort, or a thinking level.
    Effort,
    /// By a budget of tokens.
    Budget,
}

/// The versions of the web search tool of messages models; the first is the default.
const WEB_SEARCHES: [&str; 3] = ["20250305", "20260209", "20260318"];

fn parse_web_search(value: &str) -> Result<Option<&'static str>, String> {
    if value == "none" {
        return Ok(None);
    }
    let known = WEB_SEARCHES.into_iter().find(|version| *version == value);
    let versions = WEB_SEARCHES.join(", ");
    known
        .map(Some)
        .ok_or_else(|| format!("messages_web_search is {versions} or none"))
}

/// What vectors may be for; the first is the default.
const INPUT_TYPES: [&str; 4] = [
    "search_document",
    "search_query",
    "classification",
    "clustering",
];

fn parse_input_type(value: &str) -> Result<&'static str, String> {
    let known = INPUT_TYPES.into_iter().find(|known| *known == value);
    known.ok_or_else(|| format!("embedding_input_type is one of {}", INPUT_TYPES.join(", ")))
}

/// Parses a range like `128-32768`.
fn parse_range(value: &str) -> Result<(u64, u64), String> {
    let parsed = value.split_once('-').and_then(|(fewest, most)| {
        let (fewest, most) = (fewest.trim().parse().ok()?, most.trim().parse().ok()?);
        (fewest <= most).then_some((fewest, most))
    });
    parsed.ok_or_else(|| "native_thinking_range is two numbers, like 128-32768".to_owned())
}

/// Parses sizes like `1024x1024,1536x1024`.
fn parse_sizes(value: &str) -> Result<Vec<ImageSize>, String> {
    let sizes = value.split(',').map(str::trim).map(ImageSize::of_pixels);
    let sizes: Option<Vec<_>> = sizes.collect();
    sizes.ok_or_else(|| "image_sizes is a list of sizes like 1024x1536".to_owned())
}

impl Default for Capabilities {
    fn default() -> Capabilities {
        Capabilities {
            messages_version: MessagesVersion::Second,
            messages_mid_system: false,
            messages_thinking: ThinkingStyle::Effort,
            messages_sampling: None,
            messages_prefill: true,
            messages_web_search: Some(WEB_SEARCHES[0]),
            native_requires_signature: false,
            native_thinking: None,
            native_thinking_range: None,
            native_function_response_parts: false,
            native_image_output: true,
            image_sizes: Vec::new(),
            chat_old_max_field: false,
            chat_developer_role: false,
            chat_returns_reasoning: false,
            chat_think_tags: false,
            chat_unsupported: Vec::new(),
            responses_encrypted_reasoning: true,
            responses_keeps_state: true,
            sampling: true,
            search: SearchUse::Always,
            parallel_switch: true,
            efforts: None,
            off_effort: true,
            embedding_input_type: INPUT_TYPES[0],
        }
    }
}

impl Capabilities {
    /// Sets one capability by its name in the config. `Err`: what the value may be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let switch = || match value {
            "true" | "on" | "yes" => Ok(true),
            "false" | "off" | "no" => Ok(false),
            _ => Err(format!("{name} is true or false")),
        };
        let one_of = |first: &str, second: &str| match value {
            _ if value == first => Ok(false),
            _ if value == second => Ok(true),
            _ => Err(format!("{name} is {first} or {second}")),
        };
        let style = |budget: bool| {
            if budget {
                ThinkingStyle::Budget
            } else {
                ThinkingStyle::Effort
            }
        };
        match name {
            "messages_version" => {
                let second = one_of("2023-06-01", "2026-10-21")?;
                self.messages_version = if second {
                    MessagesVersion::Second
                } else {
                    MessagesVersion::First
                };
            }
            "messages_mid_system" => self.messages_mid_system = switch()?,
            "messages_thinking" => self.messages_thinking = style(one_of("adaptive", "budget")?),
            "messages_sampling" => self.messages_sampling = Some(switch()?),
            "messages_prefill" => self.messages_prefill = switch()?,
            "messages_web_search" => self.messages_web_search = parse_web_search(value)?,
            "native_requires_signature" => self.native_requires_signature = switch()?,
            "native_thinking" => self.native_thinking = Some(style(one_of("level", "budget")?)),
            "native_thinking_range" => self.native_thinking_range = Some(parse_range(value)?),
            "native_function_response_parts" => {
                self.native_function_response_parts = switch()?;
            }
            "native_image_output" => self.native_image_output = switch()?,
            "image_sizes" => self.image_sizes = parse_sizes(value)?,
            "chat_max_field" => {
                self.chat_old_max_field = one_of("max_completion_tokens", "max_tokens")?;
            }
            "chat_system_role" => self.chat_developer_role = one_of("system", "developer")?,
            "chat_returns_reasoning" => self.chat_returns_reasoning = switch()?,
            "chat_think_tags" => self.chat_think_tags = switch()?,
            "chat_unsupported" => {
                let names = value
                    .split(',')
                    .map(str::trim)
                    .filter(|name| !name.is_empty());
                self.chat_unsupported = names.map(str::to_owned).collect();
            }
            "responses_keeps_state" => self.responses_keeps_state = switch()?,
            "responses_encrypted_reasoning" => {
                self.responses_encrypted_reasoning = switch()?;
            }
            "sampling" => self.sampling = switch()?,
            "search" => {
                self.search = match value {
                    "always" => SearchUse::Always,
                    "alone" => SearchUse::Alone,
                    "never" => SearchUse::Never,
                    _ => return Err("search is always, alone or never".to_owned()),
                };
            }
            "parallel_switch" => self.parallel_switch = switch()?,
            "efforts" => self.set_efforts(value)?,
            "embedding_input_type" => self.embedding_input_type = parse_input_type(value)?,
            _ => return Err(format!("{name} is not the name of a capability")),
        }
        Ok(())
    }

    fn set_efforts(&mut self, value: &str) -> Result<(), String> {
        let mut known = Vec::new();
        self.off_effort = false;
        for word in value.split(',').map(str::trim) {
            match Effort::from_name(word) {
                Some(effort) => known.push(effort),
                None if word == NO_EFFORT => self.off_effort = true,
                None => return Err(format!("efforts: {word} is not an effort")),
            }
        }
        known.sort_unstable();
        self.efforts = Some(known);
        Ok(())
    }

    /// Tells whether the upstream refuses a field of a chat request.
    pub(in crate::formats) fn refuses(&self, name: &str) -> bool {
        self.chat_unsupported.iter().any(|refused| refused == name)
    }

    /// Tells whether requests in the upstream's own format are changed: it refuses fields, or has another name for one.
    pub const fn changes_passthrough(&self) -> bool {
        self.chat_old_max_field || !self.chat_unsupported.is_empty()
    }

    /// Returns the effort if the model accepts it, else the nearest lower one, else the lowest.
    pub fn nearest_effort(&self, effort: Effort) -> Effort {
        let Some(known) = &self.efforts else {
            return effort;
        };
        let lower = known.iter().rev().find(|known| **known <= effort);
        lower.or(known.first()).copied().unwrap_or(effort)
    }
}
