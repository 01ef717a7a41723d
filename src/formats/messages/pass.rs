//! What pass-through reads and touches: model and stream in requests, model and usage in replies.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::formats::{Glance, Peek, Watch, chat, no_answer, read_event, read_reply, read_request};
use crate::json::range_of;
use crate::model::{Fault, Usage};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    stream: Option<bool>,
}

pub(super) fn peek(body: &[u8]) -> Result<Peek<'_>, Fault> {
    let request: Request<'_> = read_request(body)?;
    Ok(Peek {
        model: request
            .model
            .map(|raw| chat::named(body, raw))
            .transpose()?,
        stream: request.stream.unwrap_or(false),
        ask_usage: None,
        thread: None,
    })
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    content: Option<IgnoredAny>,
    usage: Option<RawUsage>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    usage: Option<RawUsage>,
}

/// Input is counted without what the cache gave or took; counts may come in any of two events.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RawUsage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl RawUsage {
    /// Counts that are present replace those that were known.
    pub(super) fn merge(&self, known: Option<Usage>) -> Usage {
        let known = known.unwrap_or_default();
        let known_uncached = known
            .input
            .saturating_sub(known.cached)
            .saturating_sub(known.cache_written);
        let uncached = self.input_tokens.unwrap_or(known_uncached);
        let cached = self.cache_read_input_tokens.unwrap_or(known.cached);
        let cache_written = self
            .cache_creation_input_tokens
            .unwrap_or(known.cache_written);
        let details = self.output_tokens_details.as_ref();
        Usage {
            input: uncached
                .saturating_add(cached)
                .saturating_add(cache_written),
            cached,
            cache_written,
            output: self.output_tokens.unwrap_or(known.output),
            thinking: details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(known.thinking),
            ..Usage::default()
        }
    }
}

pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, Fault> {
    let message: Message<'_> = read_reply(body)?;
    if message.error.is_some() {
        return Err(super::error::decode(200, body));
    }
    if message.content.is_none() {
        return Err(no_answer());
    }
    watch.usage = message.usage.map(|usage| usage.merge(None));
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance {
        model: message.model.map(|raw| range_of(body, raw)),
        usage_only: false,
    })
}

pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, Fault> {
    let event: Event<'_> = read_event(data)?;
    match event.r#type.as_ref() {
        "error" => {
            watch.fault = Some(super::error::decode(200, data.as_bytes()));
            watch.ended = true;
        }
        "message_start" => watch.opened = true,
        "content_block_delta" | "content_block_stop" | "message_delta" => watch.begun = true,
        "message_stop" => (watch.begun, watch.ended) = (true, true),
        _ => {}
    }
    let (model, start) = match event.message {
        Some(message) => (message.model, message.usage),
        None => (None, None),
    };
    if let Some(usage) = event.usage.or(start) {
        watch.usage = Some(usage.merge(watch.usage));
    }
    Ok(Glance {
        model: model.map(|raw| range_of(data.as_bytes(), raw)),
        usage_only: false,
    })
}
