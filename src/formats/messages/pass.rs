//! What pass-through reads and touches: model and stream in requests, model and usage in replies.

use crate::formats::{
    Glance, OutputLimit, Peek, Watch, chat, no_answer, read_event, read_reply, read_request,
};
use crate::json::{DecodeResult, Fields, FromJson, JsonReader, Present, RawJson, from_json};
use crate::model::{ApiError, Text, Usage};

from_json! {
    struct Request<'a> {
        "model" => model: Option<RawJson<'a>>,
        "stream" => stream: Option<bool>,
        "max_tokens" => max_tokens: Option<RawJson<'a>>,
    }
}

pub(super) fn peek(body: &[u8]) -> Result<Peek<'_>, ApiError> {
    let request: Request<'_> = read_request(body)?;
    Ok(Peek {
        model: request
            .model
            .map(|raw| chat::named(body, raw))
            .transpose()?,
        stream: request.stream.unwrap_or(false),
        ask_usage: None,
        most: Some(OutputLimit::of(request.max_tokens, None)),
        thread: None,
        aside: None,
    })
}

from_json! {
    struct Message<'a> {
        "model" => model: Option<RawJson<'a>>,
        "content" => content: Option<Present>,
        "usage" => usage: Option<RawUsage>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct Event<'a> {
        "type" required => kind: Text<'a>,
        "message" => message: Option<Message<'a>>,
        "delta" => delta: Piece<'a>,
        "usage" => usage: Option<RawUsage>,
    }
}

/// What a block goes on with, read in passing: whatever else stands there is the client's to judge.
#[derive(Default)]
struct Piece<'a> {
    said: Option<RawJson<'a>>,
    thought: Option<RawJson<'a>>,
}

impl<'a> FromJson<'a> for Piece<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if reader.peek() != Some(b'{') {
            return reader.skip();
        }
        reader.object(|reader, key| match key {
            "text" | "partial_json" => self.said.decode(reader),
            "thinking" => self.thought.decode(reader),
            _ => reader.skip(),
        })
    }
}

from_json! {
    /// Input is counted without what the cache gave or took; counts may come in any of two events.
    pub(super) struct RawUsage {
        "input_tokens" => input_tokens: Option<u64>,
        "cache_read_input_tokens" => cache_read_input_tokens: Option<u64>,
        "cache_creation_input_tokens" => cache_creation_input_tokens: Option<u64>,
        "output_tokens" => output_tokens: Option<u64>,
        "output_tokens_details" => output_tokens_details: Option<OutputDetails>,
    }
}

from_json! {
    struct OutputDetails {
        "thinking_tokens" => thinking_tokens: Option<u64>,
    }
}

impl RawUsage {
    /// Where a tree has been read.
    pub(super) fn of(fields: &mut Fields<'_, '_>) -> Result<RawUsage, ApiError> {
        let details = fields.node("output_tokens_details");
        let details = details.map(|details| {
            details.fields(|mut fields| {
                let thinking_tokens = fields.u64("thinking_tokens")?;
                Ok(OutputDetails { thinking_tokens })
            })
        });
        Ok(RawUsage {
            output_tokens_details: details.transpose()?,
            input_tokens: fields.u64("input_tokens")?,
            cache_read_input_tokens: fields.u64("cache_read_input_tokens")?,
            cache_creation_input_tokens: fields.u64("cache_creation_input_tokens")?,
            output_tokens: fields.u64("output_tokens")?,
        })
    }

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

pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
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
        model: message.model.map(|raw| raw.range_in(body)),
        ..Glance::default()
    })
}

pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    let event: Event<'_> = read_event(data)?;
    match event.kind.as_ref() {
        "error" => {
            watch.api_error = Some(super::error::decode(200, data.as_bytes()));
            watch.ended = true;
        }
        "message_start" => watch.opened = true,
        "content_block_delta" | "content_block_stop" | "message_delta" => watch.begun = true,
        "message_stop" => (watch.begun, watch.ended, watch.closed) = (true, true, true),
        _ => {}
    }
    watch.unmetered.say(event.delta.said);
    watch.unmetered.think(event.delta.thought);
    let (model, start) = match event.message {
        Some(message) => (message.model, message.usage),
        None => (None, None),
    };
    if let Some(usage) = event.usage.or(start) {
        watch.meter(usage.merge(watch.usage));
    }
    Ok(Glance {
        model: model.map(|raw| raw.range_in(data.as_bytes())),
        ..Glance::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Heard;

    #[test]
    fn pieces_are_weighed_and_anything_else_passes() {
        let mut watch = Watch::default();
        for delta in [
            r#"{"type":"text_delta","text":"four"}"#,
            r#"{"type":"input_json_delta","partial_json":"{\"a\""}"#,
            r#"{"type":"thinking_delta","thinking":"hm"}"#,
            r#"{"type":"text_delta","text":7}"#,
            r#"{"stop_reason":"end_turn","more":[{"text":"no"}]}"#,
            r#"["text"]"#,
            r#""text""#,
            "null",
            "true",
            "1",
            "-1",
            "1.5",
        ] {
            let event = format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#);
            glance_event(&event, &mut watch).expect(delta);
        }
        let heard = Heard {
            said: 4 + 6,
            thought: 2,
        };
        assert_eq!(watch.unmetered, heard);
    }
}
