//! Passthrough: what is decoded and edited in bodies that are forwarded unchanged.

use super::error::decode_error;
use super::usage::CompletionUsage;
use crate::formats::few::Few;
use crate::formats::{
    Glance, Heard, Named, OutputLimit, Peek, Watch, no_answer, read_event, read_reply, read_request,
};
use crate::json::{Edit, Present, RawJson, decode_json, from_json};
use crate::model::ApiError;

from_json! {
    /// The fields of a request that routing and metering need.
    struct PeekedRequest<'a> {
        "model" => model: Option<RawJson<'a>>,
        "stream" => stream: Option<bool>,
        /// `null` too is edited in place: a second key would be a duplicate.
        "stream_options" => stream_options: RawJson<'a>,
        "max_completion_tokens" => max_completion_tokens: Option<RawJson<'a>>,
        "max_tokens" => max_tokens: Option<RawJson<'a>>,
        "n" => n: Option<RawJson<'a>>,
    }
}

from_json! {
    struct PeekedStreamOptions<'a> {
        "include_usage" => include_usage: RawJson<'a>,
    }
}

/// Decodes the fields of a request that routing and metering need.
pub(super) fn peek(body: &[u8]) -> Result<Peek<'_>, ApiError> {
    let request: PeekedRequest<'_> = read_request(body)?;
    let model = request
        .model
        .map(|raw| decode_model_name(body, raw))
        .transpose()?;
    let stream = request.stream.unwrap_or(false);
    let usage_edit = if stream {
        request_usage(body, request.stream_options)?
    } else {
        None
    };
    let longest = request.max_completion_tokens.or(request.max_tokens);
    Ok(Peek {
        model,
        stream,
        ask_usage: usage_edit,
        most: Some(OutputLimit::of(longest, request.n)),
        thread: None,
        aside: None,
    })
}

/// Decodes the `model` of a body and notes its position.
pub(in crate::formats) fn decode_model_name<'a>(
    body: &[u8],
    raw: RawJson<'a>,
) -> Result<Named<'a>, ApiError> {
    let name = raw.text();
    Ok(Named {
        name: name.ok_or_else(|| ApiError::invalid("model: expected a string").at("model"))?,
        range: raw.range_in(body),
    })
}

/// The edit that sets `include_usage`, without which a stream reports no token counts. `None`: the client
/// has set it.
fn request_usage(body: &[u8], options: RawJson<'_>) -> Result<Option<Edit>, ApiError> {
    let Some(options) = options.written() else {
        let first = 1 + body.iter().position(|byte| *byte == b'{').unwrap_or(0);
        let with = br#""stream_options":{"include_usage":true},"#.to_vec();
        return Ok(Some(Edit {
            range: first..first,
            with,
        }));
    };
    let range = options.range_in(body);
    if options.get() == "null" {
        let with = br#"{"include_usage":true}"#.to_vec();
        return Ok(Some(Edit { range, with }));
    }
    let wrong = || ApiError::invalid("stream_options: expected an object").at("stream_options");
    let inner: PeekedStreamOptions<'_> = decode_json(options.get()).map_err(|_| wrong())?;
    Ok(match inner.include_usage.written() {
        Some(value) if value.get() == "true" => None,
        Some(value) => Some(Edit {
            range: value.range_in(body),
            with: b"true".to_vec(),
        }),
        None => {
            let empty = options.get()[1..].trim_start().starts_with('}');
            let comma = if empty { "" } else { "," };
            Some(Edit {
                range: range.start + 1..range.start + 1,
                with: format!(r#""include_usage":true{comma}"#).into_bytes(),
            })
        }
    })
}

from_json! {
    /// The fields of a response or a chunk that metering needs.
    struct PeekedChunk<'a> {
        "model" => model: Option<RawJson<'a>>,
        "choices" => choices: Option<Few<PeekedChoice<'a>>>,
        "usage" => usage: Option<CompletionUsage>,
        /// Groq reports the usage of streams here.
        "x_groq" => x_groq: Option<PeekedGroqUsage>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct PeekedChoice<'a> {
        "index" => index: Option<u32>,
        "delta" => delta: Option<PeekedDelta<'a>>,
        "finish_reason" => finish_reason: Option<RawJson<'a>>,
    }
}

from_json! {
    struct PeekedDelta<'a> {
        "content" => content: Option<RawJson<'a>>,
        "tool_calls" => tool_calls: Option<RawJson<'a>>,
        "reasoning" => reasoning: Option<RawJson<'a>>,
        "reasoning_content" => reasoning_content: Option<RawJson<'a>>,
        "reasoning_details" => reasoning_details: Option<Present>,
        "refusal" => refusal: Option<RawJson<'a>>,
        "audio" => audio: Option<Present>,
    }
}

from_json! {
    struct PeekedCall<'a> {
        "function" => function: Option<PeekedFunction<'a>>,
    }
}

from_json! {
    struct PeekedFunction<'a> {
        "name" => name: Option<RawJson<'a>>,
        "arguments" => arguments: Option<RawJson<'a>>,
    }
}

impl PeekedDelta<'_> {
    fn holds_content(&self) -> bool {
        self.content.is_some_and(|content| content.get() != "\"\"")
            || self.tool_calls.is_some()
            || self.reasoning.is_some()
            || self.reasoning_content.is_some()
            || self.reasoning_details.is_some()
            || self.refusal.is_some()
            || self.audio.is_some()
    }

    fn count(&self, heard: &mut Heard) {
        heard.say(self.content);
        heard.say(self.refusal);
        // Backends that send both fields send the same text in each.
        heard.think(self.reasoning_content.or(self.reasoning));
        let calls = self.tool_calls.map(RawJson::get);
        // Anything else passes through uncounted.
        let calls = calls.and_then(|calls| decode_json(calls).ok());
        let calls: Few<PeekedCall<'_>> = calls.unwrap_or_default();
        for function in calls.iter().filter_map(|call| call.function.as_ref()) {
            heard.say(function.name);
            heard.say(function.arguments);
        }
    }
}

from_json! {
    struct PeekedGroqUsage {
        "usage" => usage: Option<CompletionUsage>,
    }
}

/// Meters a JSON response that passes through.
pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
    let chunk: PeekedChunk<'_> = read_reply(body)?;
    if chunk.error.is_some() && chunk.choices.is_none() {
        return Err(decode_error(200, body));
    }
    if chunk.choices.is_none() {
        return Err(no_answer());
    }
    note_usage(&chunk, watch);
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance {
        model: chunk.model.map(|raw| raw.range_in(body)),
        ..Glance::default()
    })
}

/// Meters one event of a stream that passes through.
pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    if data == "[DONE]" {
        if watch.appeared == 0 && watch.api_error.is_none() {
            return Err(no_answer());
        }
        (watch.ended, watch.closed) = (true, true);
        return Ok(Glance::default());
    }
    let chunk: PeekedChunk<'_> = read_event(data)?;
    let choices = chunk.choices.iter().flat_map(Few::iter);
    for delta in choices.filter_map(|choice| choice.delta.as_ref()) {
        delta.count(&mut watch.unmetered);
    }
    note_usage(&chunk, watch);
    let model = chunk.model.map(|raw| raw.range_in(data.as_bytes()));
    if chunk.error.is_some() {
        watch.api_error = Some(decode_error(200, data.as_bytes()));
        watch.ended = true;
        return Ok(Glance {
            model,
            ..Glance::default()
        });
    }
    let choices = chunk.choices.unwrap_or_default();
    for choice in choices.iter() {
        watch.begun |= choice
            .delta
            .as_ref()
            .is_some_and(PeekedDelta::holds_content);
        // One backend sends an empty reason in every chunk, the last included.
        let finish = choice.finish_reason.filter(|reason| reason.get() != "\"\"");
        watch.choice(choice.index.unwrap_or(0), finish.is_some());
    }
    Ok(Glance {
        model,
        usage_only: choices.is_empty() && chunk.usage.is_some(),
        ..Glance::default()
    })
}

fn note_usage(chunk: &PeekedChunk<'_>, watch: &mut Watch) {
    let groq_usage = chunk.x_groq.as_ref().and_then(|groq| groq.usage.as_ref());
    if let Some(usage) = chunk.usage.as_ref().or(groq_usage) {
        watch.meter(usage.to_usage());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::replace;

    #[test]
    fn a_chunk_with_an_error_is_metered_and_its_model_is_found() {
        let chunk = r#"{"model":"m","error":{"message":"no"},"usage":{"prompt_tokens":4}}"#;
        let mut watch = Watch::default();
        let glance = glance_event(chunk, &mut watch).expect("a chunk");
        assert_eq!(&chunk[glance.model.expect("a name")], "\"m\"");
        assert_eq!(watch.usage.map(|usage| usage.input), Some(4));
        assert!(watch.api_error.is_some() && watch.ended);
    }

    #[test]
    fn every_stream_request_gets_include_usage_once() {
        for (body, want) in [
            (
                r#"{"stream":true}"#,
                r#"{"stream_options":{"include_usage":true},"stream":true}"#,
            ),
            (
                r#"{"stream":true,"stream_options":null}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"stream":true,"stream_options":{ }}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true }}"#,
            ),
            (
                r#"{"stream":true,"stream_options":{"x":1}}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true,"x":1}}"#,
            ),
            (
                r#"{"stream":true,"stream_options":{"include_usage":null}}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"stream":true,"stream_options":{"include_usage":false}}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
        ] {
            let edit = peek(body.as_bytes()).expect(body).ask_usage.expect(body);
            assert_eq!(replace(body.as_bytes(), &[edit]), want);
        }
        for body in [
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            r#"{"stream":false}"#,
            r#"{"stream":null,"stream_options":null}"#,
        ] {
            assert_eq!(peek(body.as_bytes()).expect(body).ask_usage, None);
        }
    }

    #[test]
    fn a_stream_without_a_choice_is_an_error() {
        let mut watch = Watch::default();
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":1}}"#;
        glance_event(usage, &mut watch).expect("a chunk");
        assert!(glance_event("[DONE]", &mut watch).is_err());
    }

    fn ended(events: &[&str]) -> bool {
        let mut watch = Watch::default();
        for event in events {
            glance_event(event, &mut watch).expect("from_json");
        }
        watch.ended
    }

    #[test]
    fn a_stream_has_ended_when_every_choice_has() {
        let first = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
        let second = r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}"#;
        let first_done = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let second_done = r#"{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}"#;
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
        assert!(!ended(&[first, second, first_done]));
        assert!(ended(&[first, second, first_done, second_done, usage]));
        assert!(ended(&[first, first_done]));
        assert!(ended(&[first, "[DONE]"]));
    }

    #[test]
    fn an_empty_finish_reason_does_not_end_a_choice() {
        let chunk = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#;
        assert!(!ended(&[chunk]));
        assert!(ended(&[chunk, "[DONE]"]));
    }
}
