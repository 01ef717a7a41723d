//! A reply, or a piece of one, as upstreams of this format and of its dialects write it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::usage::RawUsage;
use crate::formats::few::Few;
use crate::model::{Fault, Finish, Json, Logprob, PROMPT_BLOCKED, Text, Usage};

/// A whole reply and a piece of a stream differ only in the key of what is said. What is rare
/// stands in a box: a piece is small and is moved often while it is read.
#[derive(Deserialize)]
pub(super) struct Reply<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Words<'a>>,
    created: Option<f64>,
    #[serde(borrow)]
    pub(super) choices: Option<Few<Choice<'a>>>,
    usage: Option<RawUsage>,
    #[serde(borrow)]
    x_groq: Option<Box<Groq<'a>>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    /// What one dialect's filters made of the prompt.
    #[serde(borrow)]
    prompt_filter_results: Option<&'a RawValue>,
}

/// One dialect tells the usage and the failure of a stream here.
#[derive(Deserialize)]
struct Groq<'a> {
    usage: Option<RawUsage>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) message: Option<Box<Said<'a>>>,
    #[serde(borrow)]
    pub(super) delta: Option<Said<'a>>,
    #[serde(borrow)]
    logprobs: Option<Box<Logprobs<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A message or a delta of one.
#[derive(Default, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<Vec<ReasoningDetail<'a>>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Few<ToolCall<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<Box<Called<'a>>>,
    #[serde(borrow)]
    pub(super) annotations: Option<Vec<Annotation<'a>>>,
    #[serde(borrow)]
    pub(super) images: Option<Vec<Image<'a>>>,
    #[serde(borrow)]
    pub(super) audio: Option<Box<Audio<'a>>>,
}

/// Sound, and the words that are spoken in it.
#[derive(Deserialize)]
pub(super) struct Audio<'a> {
    #[serde(borrow)]
    pub(super) data: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) transcript: Option<Words<'a>>,
}

/// A string that stays borrowed inside of options and lists.
#[derive(Deserialize)]
pub(super) struct Words<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A string, or a list of parts in one dialect.
pub(super) enum Content<'a> {
    Text(Text<'a>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Deserialize)]
pub(super) struct ContentPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) image_url: Option<Address<'a>>,
}

#[derive(Deserialize)]
pub(super) struct ReasoningDetail<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) summary: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) data: Option<Words<'a>>,
    /// The call that the data belong to.
    #[serde(borrow)]
    pub(super) id: Option<Words<'a>>,
}

#[derive(Deserialize)]
pub(super) struct ToolCall<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) id: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<Called<'a>>,
    #[serde(borrow)]
    pub(super) custom: Option<Box<Called<'a>>>,
}

#[derive(Default, Deserialize)]
pub(super) struct Called<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Words<'a>>,
    /// A string, or the object itself in careless dialects.
    #[serde(borrow, default, alias = "input", deserialize_with = "tree")]
    pub(super) arguments: Option<Json<'a>>,
}

fn tree<'de: 'a, 'a, D: Deserializer<'de>>(value: D) -> Result<Option<Json<'a>>, D::Error> {
    Option::<Json<'de>>::deserialize(value)
}

#[derive(Deserialize)]
pub(super) struct Annotation<'a> {
    #[serde(borrow)]
    pub(super) url_citation: Option<UrlCitation<'a>>,
}

#[derive(Deserialize)]
pub(super) struct UrlCitation<'a> {
    #[serde(borrow)]
    pub(super) url: Option<Words<'a>>,
    #[serde(borrow)]
    pub(super) title: Option<Words<'a>>,
    pub(super) start_index: Option<u64>,
    pub(super) end_index: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Image<'a> {
    #[serde(borrow)]
    pub(super) image_url: Option<Address<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Address<'a> {
    #[serde(borrow)]
    pub(super) url: Words<'a>,
}

#[derive(Deserialize)]
struct Logprobs<'a> {
    #[serde(borrow)]
    content: Option<Vec<Token<'a>>>,
}

#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow)]
    token: Words<'a>,
    logprob: Option<f64>,
    #[serde(borrow)]
    top_logprobs: Option<Vec<Token<'a>>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Content<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string or a list of parts")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Text::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Text::Owned(text.to_owned())))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Content<'de>, S::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl<'a> Reply<'a> {
    pub(super) fn created(&self) -> i64 {
        self.created.map_or(0, |seconds| seconds as i64)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        let beside = self.x_groq.as_ref().and_then(|groq| groq.usage.as_ref());
        self.usage.as_ref().or(beside).map(RawUsage::read)
    }

    /// Whether a filter did not let the prompt pass.
    pub(super) fn is_prompt_blocked(&self) -> bool {
        let Some(results) = self.prompt_filter_results else {
            return false;
        };
        let results: Value = serde_json::from_str(results.get()).unwrap_or_default();
        let of_prompts = results.as_array().into_iter().flatten();
        let filters = of_prompts.filter_map(|prompt| prompt["content_filter_results"].as_object());
        filters
            .flat_map(serde_json::Map::values)
            .any(|filter| filter["filtered"] == true)
    }

    /// A failure told inside of a reply that began well.
    pub(super) fn fault(&self) -> Option<Fault> {
        let beside = self.x_groq.as_ref().and_then(|groq| groq.error);
        self.error.or(beside).map(fault_of)
    }
}

impl<'a> Choice<'a> {
    pub(super) fn logprobs(&mut self) -> impl Iterator<Item = Logprob<'a>> + use<'a> {
        let tokens = self.logprobs.take().and_then(|logprobs| logprobs.content);
        tokens.into_iter().flatten().map(|token| {
            let top = token.top_logprobs.unwrap_or_default();
            Logprob {
                token: token.token.0,
                logprob: token.logprob.unwrap_or_default(),
                top: top
                    .into_iter()
                    .map(|other| (other.token.0, other.logprob.unwrap_or_default()))
                    .collect(),
            }
        })
    }

    /// Whether it ended in a way that no dialect is known for.
    pub(super) fn is_oddly_finished(&self) -> bool {
        let word = self.finish_reason.as_ref().map_or("", |word| &*word.0);
        !matches!(
            word,
            "" | "stop"
                | "eos"
                | "length"
                | "model_length"
                | "tool_calls"
                | "function_call"
                | "content_filter"
                | "error"
        )
    }

    /// The reason that the wire gives; what was said has the last word.
    pub(super) fn finish(&self, said: Summary) -> Result<Option<Finish<'static>>, Fault> {
        let word = self.finish_reason.as_ref().map(|word| &*word.0);
        match (word, self.error) {
            (Some("error"), None) => Err(Fault::bad_gateway("the upstream failed to answer")),
            (_, Some(error)) => Err(fault_of(error)),
            (None | Some(""), None) => Ok(None),
            (Some("length" | "model_length"), None) => Ok(Some(Finish::Length)),
            (Some("content_filter"), None) => Ok(Some(Finish::Filtered(said.filter_words()))),
            (Some("tool_calls" | "function_call"), None) => Ok(Some(Finish::Tools)),
            (Some(_), None) => Ok(Some(said.finish())),
        }
    }
}

/// What a choice holds, as far as its finish depends on it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Summary {
    pub(super) has_calls: bool,
    pub(super) has_refusal: bool,
    /// A filter did not let the prompt pass.
    pub(super) is_prompt_blocked: bool,
}

impl Summary {
    fn filter_words(self) -> Option<Text<'static>> {
        let is_silent = !self.has_calls && !self.has_refusal;
        (is_silent && self.is_prompt_blocked).then(|| format!("{PROMPT_BLOCKED}SAFETY").into())
    }

    /// How a choice ended that did not say so, or said only that it did.
    pub(super) const fn finish(self) -> Finish<'static> {
        match self {
            Summary {
                has_calls: true, ..
            } => Finish::Tools,
            Summary {
                has_refusal: true, ..
            } => Finish::Refused,
            _ => Finish::Stop,
        }
    }
}

fn fault_of(error: &RawValue) -> Fault {
    super::error::decode(200, format!(r#"{{"error":{}}}"#, error.get()).as_bytes())
}
