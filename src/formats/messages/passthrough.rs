//! Passthrough: finds the model and the usage in bodies that are forwarded unchanged.

use super::usage::RawMessagesUsage;
use crate::formats::{
    Glance, OutputLimit, Peek, Watch, chat, no_answer, read_event, read_reply, read_request,
};
use crate::json::{DecodeResult, FromJson, JsonReader, Present, RawJson, from_json};
use crate::model::{ApiError, Text};

from_json! {
    struct MessagesRequestFields<'a> {
        "model" => model: Option<RawJson<'a>>,
        "stream" => stream: Option<bool>,
        "max_tokens" => max_tokens: Option<RawJson<'a>>,
    }
}

/// Reads the fields of a request that routing needs.
pub(super) fn peek(body: &[u8]) -> Result<Peek<'_>, ApiError> {
    let request: MessagesRequestFields<'_> = read_request(body)?;
    Ok(Peek {
        model: request
            .model
            .map(|raw| chat::decode_model_name(body, raw))
            .transpose()?,
        stream: request.stream.unwrap_or(false),
        ask_usage: None,
        most: Some(OutputLimit::of(request.max_tokens, None)),
        thread: None,
        aside: None,
    })
}

from_json! {
    /// A response, or the `message` of `message_start`.
    struct MessagesResponseFields<'a> {
        "model" => model: Option<RawJson<'a>>,
        "content" => content: Option<Present>,
        "usage" => usage: Option<RawMessagesUsage>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct MessagesEventFields<'a> {
        "type" required => kind: Text<'a>,
        "message" => message: Option<MessagesResponseFields<'a>>,
        "delta" => delta: MessagesDeltaText<'a>,
        "usage" => usage: Option<RawMessagesUsage>,
    }
}

/// The text of a `delta`. Any other value is skipped: it is the client's to judge.
#[derive(Default)]
struct MessagesDeltaText<'a> {
    text: Option<RawJson<'a>>,
    reasoning: Option<RawJson<'a>>,
}

impl<'a> FromJson<'a> for MessagesDeltaText<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if reader.peek() != Some(b'{') {
            return reader.skip();
        }
        reader.object(|reader, key| match key {
            "text" | "partial_json" => self.text.decode(reader),
            "thinking" => self.reasoning.decode(reader),
            _ => reader.skip(),
        })
    }
}

/// Observes a JSON response.
pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
    let response: MessagesResponseFields<'_> = read_reply(body)?;
    if response.error.is_some() {
        return Err(super::error::decode(200, body));
    }
    if response.content.is_none() {
        return Err(no_answer());
    }
    watch.usage = response.usage.map(|usage| usage.merge(None));
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance {
        model: response.model.map(|raw| raw.range_in(body)),
        ..Glance::default()
    })
}

/// Observes one event of a stream.
pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    let event: MessagesEventFields<'_> = read_event(data)?;
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
    watch.unmetered.say(event.delta.text);
    watch.unmetered.think(event.delta.reasoning);
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
    fn deltas_are_measured_and_anything_else_is_skipped() {
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
