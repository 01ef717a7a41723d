//! Passthrough: finds the model and the usage in bodies that are forwarded unchanged.

use super::Messages;
use super::error::THREAD;
use super::kept_ids::{PeekedContainer, find_kept_ids};
use super::stop_reason::decode_stop_reason;
use super::usage::RawMessagesUsage;
use crate::formats::images_only::images_only;
use crate::formats::{
    Capabilities, ContentTokens, ErrorCodec, KeptIds, Observation, OutputLimit, Passthrough,
    ResponseObserver, RoutingFields, decode_event_data, decode_model_name, decode_response_body,
    decode_unique_fields, decode_written_fields, missing_content, set_field,
};
use crate::json::{DecodeResult, Edit, FromJson, JsonReader, Present, RawJson, from_json};
use crate::model::{ApiError, Text, Usage};

impl Passthrough for Messages {
    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError> {
        let [model, stream, max_tokens, thread] =
            decode_unique_fields(body, [&["model"], &["stream"], &["max_tokens"], &[THREAD]])?;
        Ok(RoutingFields {
            model: decode_model_name(body, &model)?,
            stream: stream.flag()?.unwrap_or(false),
            output_limit: OutputLimit {
                may_be_written: max_tokens.written().is_some(),
                ..OutputLimit::of(max_tokens.count()?, None)
            },
            kept_conversation: thread.value().map(|_| THREAD),
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
        let [max_tokens] = decode_written_fields(body, may_be_written, [&["max_tokens"]])?;
        Ok(vec![set_field(body, &max_tokens, &limit.to_string())])
    }

    fn observe_response(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        let response: MessagesResponseFields<'_> = decode_response_body(body)?;
        if response.error.is_some() {
            return Err(Messages.decode_error(200, body));
        }
        if response.content.is_none() {
            return Err(missing_content());
        }
        note_stop(response.stop_reason, observer);
        observer.usage = response.usage.map(|usage| usage.merge(None));
        response.container.note(observer);
        observer.observe_kept_response(response.id);
        (observer.has_content, observer.ended) = (true, true);
        Ok(Observation::of_model(response.model, body))
    }

    fn observe_event(
        &self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        let event: MessagesEventFields<'_> = decode_event_data(data)?;
        match event.kind.as_ref() {
            "error" => {
                observer.api_error = Some(Messages.decode_error(200, data.as_bytes()));
                observer.ended = true;
            }
            "message_start" => observer.started = true,
            "content_block_delta" | "content_block_stop" | "message_delta" => {
                observer.has_content = true
            }
            "message_stop" => {
                (observer.has_content, observer.ended, observer.closed) = (true, true, true)
            }
            _ => {}
        }
        note_stop(event.delta.stop_reason, observer);
        event.delta.count(&mut observer.uncounted);
        event.content_block.count(&mut observer.uncounted);
        event.delta.container.note(observer);
        let (model, start) = match event.message {
            Some(message) => {
                message.container.note(observer);
                observer.observe_kept_response(message.id);
                (message.model, message.usage)
            }
            None => (None, None),
        };
        if let Some(usage) = event.usage.or(start) {
            observer.record_usage(usage.report(observer.usage));
        }
        Ok(Observation::of_model(model, data.as_bytes()))
    }

    /// The format has no word for images in a response.
    fn check_image_request(&self, _body: &[u8]) -> Result<(), ApiError> {
        Err(images_only(
            "model",
            "send the request to /v1/images/generations, or in another format",
        ))
    }

    fn reported_usage(&self, body: &[u8]) -> Option<Usage> {
        let response: CountedMessage = decode_response_body(body).ok()?;
        response.usage.map(|usage| usage.merge(None))
    }
}

from_json! {
    /// A response, or the `message` of `message_start`.
    struct MessagesResponseFields<'a> {
        "id" => id: Option<RawJson<'a>>,
        "model" => model: Option<RawJson<'a>>,
        "content" => content: Option<Present>,
        "container" => container: PeekedContainer<'a>,
        "stop_reason" => stop_reason: Option<RawJson<'a>>,
        "usage" => usage: Option<RawMessagesUsage>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct MessagesEventFields<'a> {
        "type" required => kind: Text<'a>,
        "message" => message: Option<MessagesResponseFields<'a>>,
        "delta" => delta: MessagesContentFields<'a>,
        /// Some blocks come whole, when they start.
        "content_block" => content_block: MessagesContentFields<'a>,
        "usage" => usage: Option<RawMessagesUsage>,
    }
}

/// The content of a `delta` or of a block. Any other value is skipped: it is the client's to judge.
#[derive(Default)]
struct MessagesContentFields<'a> {
    text: Option<RawJson<'a>>,
    reasoning: Option<RawJson<'a>>,
    signature: Option<RawJson<'a>>,
    input: Option<RawJson<'a>>,
    container: PeekedContainer<'a>,
    stop_reason: Option<RawJson<'a>>,
}

impl<'a> FromJson<'a> for MessagesContentFields<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if reader.peek() != Some(b'{') {
            return reader.skip();
        }
        reader.object(|reader, key| match key {
            // The last one is that of a compaction, and of the results of the upstream's own tools.
            "text" | "partial_json" | "content" => self.text.decode(reader),
            "thinking" => self.reasoning.decode(reader),
            "signature" | "data" => self.signature.decode(reader),
            "input" => self.input.decode(reader),
            "container" => self.container.decode(reader),
            "stop_reason" => self.stop_reason.decode(reader),
            _ => reader.skip(),
        })
    }
}

impl MessagesContentFields<'_> {
    fn count(&self, uncounted: &mut ContentTokens) {
        uncounted.add_text(self.text);
        uncounted.add_reasoning(self.reasoning);
        uncounted.add_signature(self.signature);
        // Mostly it is empty, and comes in deltas.
        uncounted.add_value(self.input.filter(|input| input.get() != "{}"));
    }
}

/// Notes why a message ended; it is null until then.
fn note_stop(reason: Option<RawJson<'_>>, observer: &mut ResponseObserver) {
    if let Some(reason) = reason.and_then(RawJson::text) {
        observer.observe_finish(&decode_stop_reason(Some(&reason), None, None));
    }
}

from_json! {
    /// A response of which only the counts are read.
    struct CountedMessage {
        "usage" => usage: Option<RawMessagesUsage>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_measured_and_anything_else_is_skipped() {
        let mut observer = ResponseObserver::default();
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
            Messages.observe_event(&event, &mut observer).expect(delta);
        }
        for block in [
            r#"{"type":"redacted_thinking","data":"abcde"}"#,
            r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#,
            r#"{"type":"tool_use","id":"t","name":"f","input":{"a":1}}"#,
        ] {
            let event =
                format!(r#"{{"type":"content_block_start","index":1,"content_block":{block}}}"#);
            Messages.observe_event(&event, &mut observer).expect(block);
        }
        let mut uncounted = ContentTokens::default();
        uncounted.add_plain_text("four");
        uncounted.add_plain_text("{\"a\"");
        uncounted.add_plain_text("{\"a\":1}");
        uncounted.add_plain_reasoning("hm");
        uncounted.add_plain_signature("abcde");
        assert_eq!(observer.uncounted, uncounted);
    }
}
