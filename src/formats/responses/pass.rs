//! What pass-through reads and touches: model and stream in requests, model and usage in replies.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::formats::{Glance, Peek, Watch, chat, no_answer, read_reply, read_request};
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
    })
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    usage: Option<RawUsage>,
    output: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    response: Option<Whole<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RawUsage {
    input_tokens: u64,
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl RawUsage {
    pub(super) fn read(&self) -> Usage {
        let input = self.input_tokens_details.as_ref();
        let output = self.output_tokens_details.as_ref();
        Usage {
            input: self.input_tokens,
            cached: input.and_then(|details| details.cached_tokens).unwrap_or(0),
            cache_written: input
                .and_then(|details| details.cache_write_tokens)
                .unwrap_or(0),
            output: self.output_tokens,
            thinking: output
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or(0),
        }
    }
}

pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, Fault> {
    let whole: Whole<'_> = read_reply(body)?;
    if whole.error.is_some() && whole.output.is_none() {
        return Err(chat::decode_error(200, body));
    }
    if whole.output.is_none() {
        return Err(no_answer());
    }
    watch.usage = whole.usage.as_ref().map(RawUsage::read);
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance {
        model: whole.model.map(|raw| range_of(body, raw)),
        usage_only: false,
    })
}

pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, Fault> {
    // A few proxies end the stream in the chat format's way.
    if data == "[DONE]" {
        return Ok(Glance::default());
    }
    let event: Event<'_> = read_reply(data.as_bytes())?;
    match event.r#type.as_ref() {
        "response.created" | "response.queued" | "response.in_progress" => {}
        // Something is announced, and nothing of it is there.
        "response.output_item.added"
        | "response.content_part.added"
        | "response.reasoning_summary_part.added" => {}
        "error" | "response.failed" => {
            watch.fault = Some(super::error::decode_in_stream(data));
            watch.ended = true;
        }
        "response.completed" | "response.incomplete" => {
            (watch.begun, watch.ended) = (true, true);
        }
        _ => watch.begun = true,
    }
    let Some(response) = event.response else {
        return Ok(Glance::default());
    };
    if let Some(usage) = &response.usage {
        watch.usage = Some(usage.read());
    }
    Ok(Glance {
        model: response.model.map(|raw| range_of(data.as_bytes(), raw)),
        usage_only: false,
    })
}
