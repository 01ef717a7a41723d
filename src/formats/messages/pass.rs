//! What pass-through reads and touches: model and stream in requests, model and usage in replies.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::formats::{
    Glance, Most, Peek, Watch, chat, no_answer, read_event, read_reply, read_request,
};
use crate::json::range_of;
use crate::model::{Fault, Usage};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    stream: Option<bool>,
    #[serde(borrow)]
    max_tokens: Option<&'a RawValue>,
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
        most: Some(Most::of(request.max_tokens, None)),
        thread: None,
        aside: None,
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
    #[serde(borrow, default)]
    delta: Piece<'a>,
    usage: Option<RawUsage>,
}

/// What a block goes on with, read in passing: whatever else stands there is the client's to judge.
#[derive(Default)]
struct Piece<'a> {
    said: Option<&'a RawValue>,
    thought: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum PieceField {
    Text,
    PartialJson,
    Thinking,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Piece<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Piece<'a>, D::Error> {
        deserializer.deserialize_any(PieceVisitor)
    }
}

struct PieceVisitor;

impl<'de> Visitor<'de> for PieceVisitor {
    type Value = Piece<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a piece of a block")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<Piece<'de>, M::Error> {
        let mut piece = Piece::default();
        while let Some(field) = fields.next_key()? {
            match field {
                PieceField::Text | PieceField::PartialJson => piece.said = fields.next_value()?,
                PieceField::Thinking => piece.thought = fields.next_value()?,
                PieceField::Other => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(piece)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Piece<'de>, S::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Piece::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Piece<'de>, E> {
        Ok(Piece::default())
    }

    fn visit_unit<E>(self) -> Result<Piece<'de>, E> {
        Ok(Piece::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Piece<'de>, E> {
        Ok(Piece::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Piece<'de>, E> {
        Ok(Piece::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Piece<'de>, E> {
        Ok(Piece::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Piece<'de>, E> {
        Ok(Piece::default())
    }
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
        model: model.map(|raw| range_of(data.as_bytes(), raw)),
        usage_only: false,
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
