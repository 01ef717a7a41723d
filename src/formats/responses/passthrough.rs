//! Passthrough: what the gateway decodes of bodies that it forwards as they are.

use std::borrow::Cow;

use super::Responses;
use super::error;
use super::item_bytes;
use super::kept_ids::find_kept_ids;
use super::output_ids::{OutputIds, decode_item};
use super::status::{OutputFlags, decode_finish};
use super::usage::{ReceivedUsage, decode_usage};
use crate::formats::images_only::images_only;
use crate::formats::reported_usage::ReportedUsage;
use crate::formats::{
    Capabilities, KeptIds, Observation, OutputLimit, Passthrough, ResponseObserver, RoutingFields,
    chat, decode_event_data, decode_model_name, decode_response_body, decode_unique_fields,
    decode_unique_members, decode_written_fields, missing_content, set_field,
};
use crate::json::{Edit, Present, RawJson, UniqueField, decode_json, from_json};
use crate::model::{ApiError, ConversationState, Format, Text, Usage};

impl Passthrough for Responses {
    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError> {
        let [
            model,
            stream,
            previous,
            store,
            max_output_tokens,
            background,
            input,
            conversation,
            ..,
        ] = decode_unique_fields(
            body,
            [
                &["model"],
                &["stream"],
                &["previous_response_id"],
                &["store"],
                &["max_output_tokens"],
                &["background"],
                &["input"],
                &["conversation"],
                // What it holds is paid for.
                &["prompt"],
            ],
        )?;
        let previous_response_id = match previous.value() {
            Some(id) => Some(id.text().ok_or_else(|| previous.wrong("a string"))?),
            None => None,
        };
        Ok(RoutingFields {
            model: decode_model_name(body, &model)?,
            stream: stream.flag()?.unwrap_or(false),
            output_limit: OutputLimit {
                may_be_written: max_output_tokens.written().is_some(),
                ..OutputLimit::of(max_output_tokens.count()?, None)
            },
            is_background: background.flag()?.unwrap_or(false),
            conversation: Some(ConversationState {
                previous_response_id: previous_response_id.map(Cow::into_owned),
                conversation_id: conversation_id(&conversation)?,
                // The format stores responses by default.
                store: store.flag()?.unwrap_or(true),
                input_range: input.value().map_or(0..0, |input| input.range_in(body)),
            }),
            ..RoutingFields::default()
        })
    }

    fn kept_ids(&self, body: &[u8]) -> KeptIds {
        find_kept_ids(body)
    }

    fn limit_output(
        &self,
        body: &[u8],
        limit: u64,
        may_be_written: bool,
        _capabilities: &Capabilities,
    ) -> Result<Vec<Edit>, ApiError> {
        let [max_output_tokens] =
            decode_written_fields(body, may_be_written, [&["max_output_tokens"]])?;
        let limit = limit.max(Format::Responses.min_output_tokens());
        let limit = limit.to_string();
        Ok(vec![set_field(body, &max_output_tokens, &limit)])
    }

    fn check_image_request(&self, body: &[u8]) -> Result<(), ApiError> {
        let [tools] = decode_unique_fields(body, [&["tools"]])?;
        let tools: Vec<TypedTool<'_>> = tools.decoded("a list of tools")?;
        let mut tools = tools.iter();
        match tools.any(|tool| tool.kind.as_deref() == Some("image_generation")) {
            true => Ok(()),
            false => Err(images_only(
                "tools",
                r#"add the tool {"type": "image_generation"}"#,
            )),
        }
    }

    fn observe_response(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        let response: PeekedResponseObject<'_> = decode_response_body(body)?;
        if response.error.is_some() && response.output.is_none() {
            return Err(chat::decode_error(200, body));
        }
        if response.output.is_none() {
            return Err(missing_content());
        }
        observer.usage = decode_usage(response.usage.as_ref(), response.tool_usage);
        note_finish(&response, observer);
        (observer.has_content, observer.ended) = (true, true);
        let created = response.created_at.map_or(0, |seconds| seconds as i64);
        observer.reply = response.id.map(|id| (id.into_owned(), created));
        response.output.unwrap_or_default().note(observer);
        Ok(Observation::of_model(response.model, body))
    }

    fn observe_event(
        &self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        // Some proxies end the stream as the chat format does.
        if data == "[DONE]" {
            return Ok(Observation::default());
        }
        let event: PeekedResponsesEvent<'_> = decode_event_data(data)?;
        let number = event.sequence_number.unwrap_or(observer.next_event);
        observer.next_event = number.saturating_add(1);
        let mut is_end = false;
        match event.kind.as_ref() {
            "response.created" | "response.queued" | "response.in_progress" => {}
            // These announce content that is still to come.
            "response.output_item.added" => {
                decode_item(event.item).note(observer);
                observer.before_item = observer.uncounted;
            }
            // Some upstreams send an item whole, without deltas.
            "response.output_item.done" => {
                observer.has_content = true;
                let (before, item) = (observer.before_item, event.item.map_or("", RawJson::get));
                // Mostly the same ids came when the item was announced.
                if item.contains("container_id") {
                    decode_item(event.item).note(observer);
                }
                item_bytes::add_item(item, before, &mut observer.uncounted);
                observer.before_item = observer.uncounted;
            }
            "response.content_part.added" | "response.reasoning_summary_part.added" => {}
            "error" | "response.failed" => {
                observer.api_error = Some(error::decode_in_stream(data));
                observer.ended = true;
            }
            "response.completed" | "response.incomplete" => {
                is_end = !observer.closed;
                (observer.has_content, observer.ended, observer.closed) = (true, true, true);
            }
            _ => observer.has_content = true,
        }
        match event.kind.as_ref() {
            kind if kind.starts_with("response.reasoning") => {
                observer.uncounted.add_reasoning(event.delta);
            }
            "response.audio.delta" | "response.output_audio.delta" => {
                observer.uncounted.add_audio(event.delta);
            }
            _ => observer.uncounted.add_text(event.delta),
        }
        if event.partial_image.is_some() {
            observer.uncounted.add_image();
        }
        let Some(response) = event.response else {
            return Ok(Observation::default());
        };
        if let Some(usage) = decode_usage(response.usage.as_ref(), response.tool_usage) {
            observer.record_usage(ReportedUsage::of_whole(usage));
        }
        // What follows the end says nothing new.
        if is_end {
            note_finish(&response, observer);
            response.output.unwrap_or_default().note_missing(observer);
        }
        if let Some(id) = response.id
            && observer.reply.is_none()
        {
            let created = response.created_at.map_or(0, |seconds| seconds as i64);
            observer.reply = Some((id.into_owned(), created));
        }
        Ok(Observation::of_model(response.model, data.as_bytes()))
    }

    fn reported_usage(&self, body: &[u8]) -> Option<Usage> {
        let response: CountedResponse<'_> = decode_response_body(body).ok()?;
        decode_usage(response.usage.as_ref(), response.tool_usage)
    }
}

/// Decodes `conversation`: an id, or an object with one.
fn conversation_id(field: &UniqueField<'_>) -> Result<Option<String>, ApiError> {
    let Some(value) = field.value() else {
        return Ok(None);
    };
    let id = match value.text() {
        Some(id) => Some(id),
        None => {
            let [id] = decode_unique_members(field, [&["id"]])?;
            id.value().and_then(RawJson::text)
        }
    };
    let id = id.ok_or_else(|| field.wrong("the id of a conversation"))?;
    Ok(Some(id.into_owned()))
}

from_json! {
    struct TypedTool<'a> {
        "type" => kind: Option<Text<'a>>,
    }
}

from_json! {
    struct PeekedResponseObject<'a> {
        "id" => id: Option<Text<'a>>,
        "created_at" => created_at: Option<f64>,
        "model" => model: Option<RawJson<'a>>,
        "usage" => usage: Option<ReceivedUsage>,
        "tool_usage" => tool_usage: Option<RawJson<'a>>,
        "output" => output: Option<OutputIds<'a>>,
        "error" => error: Option<Present>,
        "status" => status: Option<RawJson<'a>>,
        "incomplete_details" => incomplete_details: Option<RawJson<'a>>,
    }
}

from_json! {
    struct PeekedIncompleteDetails<'a> {
        "reason" => reason: Option<Text<'a>>,
    }
}

/// Notes why a response ended.
fn note_finish(response: &PeekedResponseObject<'_>, observer: &mut ResponseObserver) {
    let details = response.incomplete_details.map(RawJson::get);
    let details: Option<PeekedIncompleteDetails<'_>> =
        details.and_then(|details| decode_json(details).ok());
    let reason = details.and_then(|details| details.reason);
    let status = response.status.and_then(RawJson::text);
    let flags = OutputFlags::default();
    let finish = decode_finish(status.as_deref(), reason.as_deref(), flags, "");
    if let Ok(finish) = finish {
        observer.observe_finish(&finish);
    }
}

from_json! {
    struct PeekedResponsesEvent<'a> {
        "type" required => kind: Text<'a>,
        "sequence_number" => sequence_number: Option<u64>,
        "delta" => delta: Option<RawJson<'a>>,
        "partial_image_b64" => partial_image: Option<Present>,
        "item" => item: Option<RawJson<'a>>,
        "response" => response: Option<PeekedResponseObject<'a>>,
    }
}

from_json! {
    /// A response of which only the counts are read.
    struct CountedResponse<'a> {
        "usage" => usage: Option<ReceivedUsage>,
        "tool_usage" => tool_usage: Option<RawJson<'a>>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{ErrorCodec as _, InterruptedStream};
    use crate::sse::{SseFrames, SseWriter};
    use serde_json::{Value, json};

    fn error_after(events: &[Value]) -> Vec<Value> {
        let mut observer = ResponseObserver::default();
        for event in events {
            Responses
                .observe_event(&event.to_string(), &mut observer)
                .expect("an event");
        }
        let (mut out, mut sent) = (SseWriter::default(), Vec::new());
        let passed = InterruptedStream {
            observer: &observer,
            model: "mine",
        };
        Responses.encode_stream_error(&ApiError::bad_gateway("Gone."), &passed, &mut out);
        SseFrames::default().push(&out.take(), |frame| {
            let data = frame.data.expect("a payload");
            sent.push(serde_json::from_str(&data).expect("JSON"));
        });
        sent
    }

    #[test]
    fn an_error_continues_the_numbers_and_ends_the_response() {
        let response = json!({"id": "resp_1", "created_at": 7, "model": "theirs"});
        let sent = error_after(&[
            json!({"type": "response.created", "sequence_number": 0, "response": response}),
            json!({"type": "response.output_text.delta", "sequence_number": 4, "delta": "a"}),
        ]);
        let numbers: Vec<_> = sent.iter().map(|event| &event["sequence_number"]).collect();
        assert_eq!(numbers, [5, 6]);
        assert_eq!(sent[0]["type"], "error");
        assert_eq!(sent[1]["type"], "response.failed");
        let failed = &sent[1]["response"];
        assert_eq!(failed["id"], "resp_1");
        assert_eq!(failed["created_at"], 7);
        assert_eq!(failed["model"], "mine");
        assert_eq!(failed["status"], "failed");
        assert_eq!(failed["error"]["message"], "Gone.");
        assert_eq!(error_after(&[]).len(), 1);
    }

    #[test]
    fn sequence_numbers_saturate() {
        let response = json!({"id": "resp_1", "created_at": 7});
        let sent = error_after(&[
            json!({"type": "response.created", "sequence_number": u64::MAX, "response": response}),
        ]);
        let numbers: Vec<_> = sent.iter().map(|event| &event["sequence_number"]).collect();
        assert_eq!(numbers, [u64::MAX, u64::MAX]);
    }
}
