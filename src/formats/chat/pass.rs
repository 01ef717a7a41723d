//! What pass-through reads and touches: model, stream and usage in requests, the same in replies.

use super::usage::RawUsage;
use crate::formats::few::Few;
use crate::formats::{
    Glance, Heard, Named, OutputLimit, Peek, Watch, no_answer, read_event, read_reply, read_request,
};
use crate::json::{Edit, Present, RawJson, decode_json, from_json};
use crate::model::ApiError;

from_json! {
    struct Request<'a> {
        "model" => model: Option<RawJson<'a>>,
        "stream" => stream: Option<bool>,
        /// `null` too must be changed where it stands: a second key would lose against it.
        "stream_options" => stream_options: RawJson<'a>,
        "max_completion_tokens" => max_completion_tokens: Option<RawJson<'a>>,
        "max_tokens" => max_tokens: Option<RawJson<'a>>,
        "n" => n: Option<RawJson<'a>>,
    }
}

from_json! {
    struct StreamOptions<'a> {
        "include_usage" => include_usage: RawJson<'a>,
    }
}

pub(super) fn peek(body: &[u8]) -> Result<Peek<'_>, ApiError> {
    let request: Request<'_> = read_request(body)?;
    let model = request.model.map(|raw| named(body, raw)).transpose()?;
    let stream = request.stream.unwrap_or(false);
    let ask_usage = if stream {
        ask_usage(body, request.stream_options)?
    } else {
        None
    };
    let longest = request.max_completion_tokens.or(request.max_tokens);
    Ok(Peek {
        model,
        stream,
        ask_usage,
        most: Some(OutputLimit::of(longest, request.n)),
        thread: None,
        aside: None,
    })
}

pub(in crate::formats) fn named<'a>(body: &[u8], raw: RawJson<'a>) -> Result<Named<'a>, ApiError> {
    let name = raw.text();
    Ok(Named {
        name: name.ok_or_else(|| ApiError::invalid("model: expected a string").at("model"))?,
        range: raw.range_in(body),
    })
}

/// Without `include_usage` no tokens can be counted, so every stream asks for it.
fn ask_usage(body: &[u8], options: RawJson<'_>) -> Result<Option<Edit>, ApiError> {
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
    let inner: StreamOptions<'_> = decode_json(options.get()).map_err(|_| wrong())?;
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
    struct Piece<'a> {
        "model" => model: Option<RawJson<'a>>,
        "choices" => choices: Option<Few<PieceChoice<'a>>>,
        "usage" => usage: Option<RawUsage>,
        /// One compatible backend reports the usage of streams here.
        "x_groq" => x_groq: Option<Groq>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct PieceChoice<'a> {
        "index" => index: Option<u32>,
        "delta" => delta: Option<Delta<'a>>,
        "finish_reason" => finish_reason: Option<RawJson<'a>>,
    }
}

from_json! {
    struct Delta<'a> {
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
    struct CallPiece<'a> {
        "function" => function: Option<Function<'a>>,
    }
}

from_json! {
    struct Function<'a> {
        "name" => name: Option<RawJson<'a>>,
        "arguments" => arguments: Option<RawJson<'a>>,
    }
}

impl Delta<'_> {
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
        // Backends that know both names say the same under each.
        heard.think(self.reasoning_content.or(self.reasoning));
        let calls = self.tool_calls.map(RawJson::get);
        // Whatever else stands there is the client's to judge.
        let calls = calls.and_then(|calls| decode_json(calls).ok());
        let calls: Few<CallPiece<'_>> = calls.unwrap_or_default();
        for function in calls.iter().filter_map(|call| call.function.as_ref()) {
            heard.say(function.name);
            heard.say(function.arguments);
        }
    }
}

from_json! {
    struct Groq {
        "usage" => usage: Option<RawUsage>,
    }
}

pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
    let piece: Piece<'_> = read_reply(body)?;
    if piece.error.is_some() && piece.choices.is_none() {
        return Err(super::error::decode(200, body));
    }
    if piece.choices.is_none() {
        return Err(no_answer());
    }
    note_usage(&piece, watch);
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance {
        model: piece.model.map(|raw| raw.range_in(body)),
        ..Glance::default()
    })
}

pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    if data == "[DONE]" {
        if watch.appeared == 0 && watch.api_error.is_none() {
            return Err(no_answer());
        }
        (watch.ended, watch.closed) = (true, true);
        return Ok(Glance::default());
    }
    let piece: Piece<'_> = read_event(data)?;
    let said = piece.choices.iter().flat_map(Few::iter);
    for delta in said.filter_map(|choice| choice.delta.as_ref()) {
        delta.count(&mut watch.unmetered);
    }
    note_usage(&piece, watch);
    let model = piece.model.map(|raw| raw.range_in(data.as_bytes()));
    if piece.error.is_some() {
        watch.api_error = Some(super::error::decode(200, data.as_bytes()));
        watch.ended = true;
        return Ok(Glance {
            model,
            ..Glance::default()
        });
    }
    let choices = piece.choices.unwrap_or_default();
    for choice in choices.iter() {
        watch.begun |= choice.delta.as_ref().is_some_and(Delta::holds_content);
        // One backend has an empty reason on every piece, the last included.
        let finish = choice.finish_reason.filter(|reason| reason.get() != "\"\"");
        watch.choice(choice.index.unwrap_or(0), finish.is_some());
    }
    Ok(Glance {
        model,
        usage_only: choices.is_empty() && piece.usage.is_some(),
        ..Glance::default()
    })
}

fn note_usage(piece: &Piece<'_>, watch: &mut Watch) {
    let beside = piece.x_groq.as_ref().and_then(|groq| groq.usage.as_ref());
    if let Some(usage) = piece.usage.as_ref().or(beside) {
        watch.meter(usage.read());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::replace;

    #[test]
    fn a_piece_that_tells_of_an_error_is_metered_and_named_too() {
        let piece = r#"{"model":"m","error":{"message":"no"},"usage":{"prompt_tokens":4}}"#;
        let mut watch = Watch::default();
        let glance = glance_event(piece, &mut watch).expect("a piece");
        assert_eq!(&piece[glance.model.expect("a name")], "\"m\"");
        assert_eq!(watch.usage.map(|usage| usage.input), Some(4));
        assert!(watch.api_error.is_some() && watch.ended);
    }

    #[test]
    fn every_stream_is_made_to_tell_its_usage_once() {
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
        for told in [
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            r#"{"stream":false}"#,
            r#"{"stream":null,"stream_options":null}"#,
        ] {
            assert_eq!(peek(told.as_bytes()).expect(told).ask_usage, None);
        }
    }

    #[test]
    fn a_stream_without_a_choice_is_no_answer() {
        let mut watch = Watch::default();
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":1}}"#;
        glance_event(usage, &mut watch).expect("a piece");
        assert!(glance_event("[DONE]", &mut watch).is_err());
    }

    fn ended(events: &[&str]) -> bool {
        let mut watch = Watch::default();
        for event in events {
            glance_event(event, &mut watch).expect("readable");
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
    fn an_empty_reason_ends_nothing() {
        let piece = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#;
        assert!(!ended(&[piece]));
        assert!(ended(&[piece, "[DONE]"]));
    }
}
