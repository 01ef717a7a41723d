//! What pass-through reads and touches: model and stream in requests, model and usage in replies.

use std::borrow::Cow;

use super::error;
use super::events::{Body, Sequence};
use super::reply::Reply;
use crate::formats::told::Told;
use crate::formats::{
    Glance, OutputLimit, Passed, Peek, Watch, chat, no_answer, read_event, read_reply, read_request,
};
use crate::json::{Present, RawJson, from_json};
use crate::model::{ApiError, ConversationState, Text, Usage};
use crate::sse::SseWriter;

from_json! {
    struct Request<'a> {
        "model" => model: Option<RawJson<'a>>,
        "stream" => stream: Option<bool>,
        "previous_response_id" => previous_response_id: Option<Text<'a>>,
        "store" => store: Option<bool>,
        "max_output_tokens" => max_output_tokens: Option<RawJson<'a>>,
        "input" => input: Option<RawJson<'a>>,
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
        most: Some(OutputLimit::of(request.max_output_tokens, None)),
        aside: None,
        thread: Some(ConversationState {
            previous_response_id: request.previous_response_id.map(Cow::into_owned),
            // Unless told otherwise, the format keeps what is said.
            store: request.store.unwrap_or(true),
            input_range: request.input.map_or(0..0, |input| input.range_in(body)),
        }),
    })
}

from_json! {
    struct Whole<'a> {
        "id" => id: Option<Text<'a>>,
        "created_at" => created_at: Option<f64>,
        "model" => model: Option<RawJson<'a>>,
        "usage" => usage: Option<RawUsage>,
        "output" => output: Option<Present>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct Event<'a> {
        "type" required => kind: Text<'a>,
        "sequence_number" => sequence_number: Option<u64>,
        "delta" => delta: Option<RawJson<'a>>,
        "response" => response: Option<Whole<'a>>,
    }
}

from_json! {
    pub(super) struct RawUsage {
        "input_tokens" => input_tokens: Told,
        "output_tokens" => output_tokens: Told,
        "input_tokens_details" => input_tokens_details: Option<InputDetails>,
        "output_tokens_details" => output_tokens_details: Option<OutputDetails>,
    }
}

from_json! {
    struct InputDetails {
        "cached_tokens" => cached_tokens: Option<Told>,
        "cache_write_tokens" => cache_write_tokens: Option<Told>,
    }
}

from_json! {
    struct OutputDetails {
        "reasoning_tokens" => reasoning_tokens: Option<Told>,
    }
}

impl RawUsage {
    pub(super) fn read(&self) -> Usage {
        let input = self.input_tokens_details.as_ref();
        let output = self.output_tokens_details.as_ref();
        Usage {
            input: self.input_tokens.0,
            cached: input
                .and_then(|details| details.cached_tokens)
                .unwrap_or_default()
                .0,
            cache_written: input
                .and_then(|details| details.cache_write_tokens)
                .unwrap_or_default()
                .0,
            output: self.output_tokens.0,
            thinking: output
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or_default()
                .0,
            ..Usage::default()
        }
    }
}

pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
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
        model: whole.model.map(|raw| raw.range_in(body)),
        ..Glance::default()
    })
}

pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    // A few proxies end the stream in the chat format's way.
    if data == "[DONE]" {
        return Ok(Glance::default());
    }
    let event: Event<'_> = read_event(data)?;
    let number = event.sequence_number.unwrap_or(watch.next_event);
    watch.next_event = number.saturating_add(1);
    match event.kind.as_ref() {
        "response.created" | "response.queued" | "response.in_progress" => {}
        // Something is announced, and nothing of it is there.
        "response.output_item.added"
        | "response.content_part.added"
        | "response.reasoning_summary_part.added" => {}
        "error" | "response.failed" => {
            watch.api_error = Some(error::decode_in_stream(data));
            watch.ended = true;
        }
        "response.completed" | "response.incomplete" => {
            (watch.begun, watch.ended, watch.closed) = (true, true, true);
        }
        _ => watch.begun = true,
    }
    match event.kind.starts_with("response.reasoning") {
        true => watch.unmetered.think(event.delta),
        false => watch.unmetered.say(event.delta),
    }
    let Some(response) = event.response else {
        return Ok(Glance::default());
    };
    if let Some(usage) = &response.usage {
        watch.meter(usage.read());
    }
    if let Some(id) = response.id
        && watch.reply.is_none()
    {
        let created = response.created_at.map_or(0, |seconds| seconds as i64);
        watch.reply = Some((id.into_owned(), created));
    }
    Ok(Glance {
        model: response.model.map(|raw| raw.range_in(data.as_bytes())),
        ..Glance::default()
    })
}

/// Goes on with the upstream's numbers and ends the reply that it began.
pub(super) fn cut(api_error: &ApiError, passed: &Passed<'_>, out: &mut SseWriter) {
    let Passed { watch, model } = passed;
    let mut sequence = Sequence::from(watch.next_event);
    error::encode_in_stream(api_error, sequence.next(), out);
    // Before that there is nothing to end.
    let Some((id, created)) = &watch.reply else {
        return;
    };
    let response = Reply {
        usage: watch.usage.map(Into::into),
        ..Reply::failed(id, *created, model, api_error)
    };
    let body = Body::Response {
        response: &response,
    };
    sequence.send("response.failed", body, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse::SseFrames;
    use serde_json::{Value, json};

    fn cut_after(events: &[Value]) -> Vec<Value> {
        let mut watch = Watch::default();
        for event in events {
            glance_event(&event.to_string(), &mut watch).expect("an event");
        }
        let (mut out, mut said) = (SseWriter::default(), Vec::new());
        let passed = Passed {
            watch: &watch,
            model: "mine",
        };
        cut(&ApiError::bad_gateway("Gone."), &passed, &mut out);
        SseFrames::default().push(&out.take(), |frame| {
            let data = frame.data.expect("a payload");
            said.push(serde_json::from_str(&data).expect("JSON"));
        });
        said
    }

    #[test]
    fn a_stream_that_is_cut_goes_on_counting_and_ends_its_reply() {
        let response = json!({"id": "resp_1", "created_at": 7, "model": "theirs"});
        let said = cut_after(&[
            json!({"type": "response.created", "sequence_number": 0, "response": response}),
            json!({"type": "response.output_text.delta", "sequence_number": 4, "delta": "a"}),
        ]);
        let numbers: Vec<_> = said.iter().map(|event| &event["sequence_number"]).collect();
        assert_eq!(numbers, [5, 6]);
        assert_eq!(said[0]["type"], "error");
        assert_eq!(said[1]["type"], "response.failed");
        let failed = &said[1]["response"];
        assert_eq!(failed["id"], "resp_1");
        assert_eq!(failed["created_at"], 7);
        assert_eq!(failed["model"], "mine");
        assert_eq!(failed["status"], "failed");
        assert_eq!(failed["error"]["message"], "Gone.");
        assert_eq!(cut_after(&[]).len(), 1);
    }

    #[test]
    fn an_upstream_may_count_as_high_as_it_likes() {
        let response = json!({"id": "resp_1", "created_at": 7});
        let said = cut_after(&[
            json!({"type": "response.created", "sequence_number": u64::MAX, "response": response}),
        ]);
        let numbers: Vec<_> = said.iter().map(|event| &event["sequence_number"]).collect();
        assert_eq!(numbers, [u64::MAX, u64::MAX]);
    }
}
