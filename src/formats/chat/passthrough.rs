//! Passthrough: what is decoded and edited in bodies that are forwarded unchanged.

use smallvec::SmallVec;

use super::Chat;
use super::delta_bytes::PeekedDelta;
use super::error::decode_error;
use super::finish_reason::{ChoiceSummary, decode_finish_reason};
use super::kept_audio::{PeekedMessage, find_kept_audio};
use super::unsupported::{limit_fields, remove_unsupported};
use super::usage::CompletionUsage;
use crate::formats::images_only::images_only;
use crate::formats::reported_usage::ReportedUsage;
use crate::formats::{
    Capabilities, KeptIds, Observation, OutputLimit, Passthrough, ResponseObserver, RoutingFields,
    decode_event_data, decode_model_name, decode_response_body, decode_unique_fields,
    decode_unique_members, decode_written_fields, missing_content, set_field,
};
use crate::json::{Edit, Present, RawJson, UniqueField, from_json};
use crate::model::{ApiError, Text, Usage};

impl Passthrough for Chat {
    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError> {
        let [model, stream, stream_options, newer_limit, limit, n] = decode_unique_fields(
            body,
            [
                &["model"],
                &["stream"],
                &["stream_options"],
                &["max_completion_tokens"],
                &["max_tokens"],
                &["n"],
            ],
        )?;
        let model = decode_model_name(body, &model)?;
        let stream = stream.flag()?.unwrap_or(false);
        let usage_edit = if stream {
            request_usage(body, &stream_options)?
        } else {
            None
        };
        // Upstreams differ in which of the two they heed.
        let (newer, older) = (newer_limit.count()?, limit.count()?);
        let zero_field = match (newer, older) {
            (Some(0), Some(1..)) => Some(newer_limit.name()),
            (Some(1..), Some(0)) => Some(limit.name()),
            _ => None,
        };
        Ok(RoutingFields {
            model,
            stream,
            include_usage_edit: usage_edit,
            output_limit: OutputLimit {
                zero_field,
                may_be_written: newer_limit.written().or(limit.written()).is_some(),
                ..OutputLimit::of(newer.max(older), n.count()?)
            },
            ..RoutingFields::default()
        })
    }

    fn kept_ids(&self, body: &[u8]) -> KeptIds {
        find_kept_audio(body)
    }

    /// Limits the output by the field that the upstream heeds; the other one must not say otherwise.
    fn limit_output(
        &self,
        body: &[u8],
        limit: u64,
        may_be_written: bool,
        capabilities: &Capabilities,
    ) -> Result<Vec<Edit>, ApiError> {
        let [heeded, other] = limit_fields(capabilities);
        let names: [&[&str]; 2] = [&[heeded], &[other]];
        let [heeded, other] = decode_written_fields(body, may_be_written, names)?;
        let limit = limit.to_string();
        let mut edits = vec![set_field(body, &heeded, &limit)];
        if other.value().is_some() {
            edits.push(set_field(body, &other, &limit));
        }
        edits.sort_by_key(|edit| edit.range.start);
        Ok(edits)
    }

    fn check_image_request(&self, body: &[u8]) -> Result<(), ApiError> {
        let [modalities] = decode_unique_fields(body, [&["modalities"]])?;
        let modalities: Vec<Text<'_>> = modalities.decoded("a list of strings")?;
        match modalities.iter().any(|modality| modality == "image") {
            true => Ok(()),
            false => Err(images_only("modalities", r#"set it to ["text", "image"]"#)),
        }
    }

    fn observe_response(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        let chunk: PeekedChunk<'_> = decode_response_body(body)?;
        if chunk.error.is_some() {
            return Err(decode_error(200, body));
        }
        if chunk
            .choices
            .as_ref()
            .is_none_or(|choices| choices.is_empty())
        {
            return Err(missing_content());
        }
        note_usage(&chunk, observer);
        for choice in chunk.choices.iter().flatten() {
            if let Some(id) = choice.message.audio_id.and_then(RawJson::text) {
                observer.observe_resource(&id);
            }
            note_finish(choice.finish_reason, observer);
        }
        (observer.has_content, observer.ended) = (true, true);
        Ok(Observation::of_model(chunk.model, body))
    }

    fn observe_event(
        &self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        if data == "[DONE]" {
            if observer.appeared == 0 && observer.api_error.is_none() {
                return Err(missing_content());
            }
            (observer.ended, observer.closed) = (true, true);
            return Ok(Observation::default());
        }
        let chunk: PeekedChunk<'_> = decode_event_data(data)?;
        for choice in chunk.choices.iter().flatten() {
            if let Some(delta) = &choice.delta {
                delta.count(&mut observer.uncounted);
                if let Some(id) = delta.audio_id() {
                    observer.observe_resource(&id);
                }
            }
            observer.uncounted.add_text(choice.text);
        }
        note_usage(&chunk, observer);
        let observation = Observation::of_model(chunk.model, data.as_bytes());
        if chunk.error.is_some() {
            observer.api_error = Some(decode_error(200, data.as_bytes()));
            observer.ended = true;
            return Ok(observation);
        }
        let choices = chunk.choices.unwrap_or_default();
        for choice in choices.iter() {
            let delta = choice.delta.as_ref();
            observer.has_content |= delta.is_some_and(PeekedDelta::holds_content)
                || choice.text.is_some_and(|text| text.get() != "\"\"");
            // One backend sends an empty reason in every chunk, the last included.
            let finish = choice.finish_reason.filter(|reason| reason.get() != "\"\"");
            let index = choice.index.unwrap_or(0);
            note_finish(finish.filter(|_| observer.is_open(index)), observer);
            observer.observe_choice(index, finish.is_some());
        }
        Ok(Observation {
            usage_only: choices.is_empty() && chunk.usage.is_some(),
            ..observation
        })
    }

    fn remove_unsupported(
        &self,
        body: &str,
        capabilities: &Capabilities,
        report: &mut dyn FnMut(String),
    ) -> Option<Vec<u8>> {
        remove_unsupported(body, capabilities, report)
    }

    fn reported_usage(&self, body: &[u8]) -> Option<Usage> {
        let chunk: CountedCompletion = decode_response_body(body).ok()?;
        chunk.usage.as_ref().map(CompletionUsage::to_usage)
    }
}

/// The edit that sets `include_usage`, without which a stream reports no token counts. `None`: the client
/// has set it.
pub(in crate::formats) fn request_usage(
    body: &[u8],
    stream_options: &UniqueField<'_>,
) -> Result<Option<Edit>, ApiError> {
    let Some(options) = stream_options.written() else {
        let first = 1 + body.iter().position(|byte| *byte == b'{').unwrap_or(0);
        let with = br#""stream_options":{"include_usage":true},"#.to_vec();
        return Ok(Some(Edit {
            range: first..first,
            with,
        }));
    };
    let range = options.range_in(body);
    // `null` too is edited in place: a second key would be a duplicate.
    if options.get() == "null" {
        let with = br#"{"include_usage":true}"#.to_vec();
        return Ok(Some(Edit { range, with }));
    }
    let [include_usage] = decode_unique_members(stream_options, [&["include_usage"]])?;
    Ok(match include_usage.written() {
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
        "choices" => choices: Option<SmallVec<[PeekedChoice<'a>; 1]>>,
        "usage" => usage: Option<CompletionUsage>,
        /// Groq reports the usage of streams here.
        "x_groq" => x_groq: Option<PeekedGroqUsage>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct PeekedChoice<'a> {
        "index" => index: Option<u32>,
        "message" => message: PeekedMessage<'a>,
        "delta" => delta: Option<PeekedDelta<'a>>,
        /// In place of a delta, in OpenAI Completions.
        "text" => text: Option<RawJson<'a>>,
        "finish_reason" => finish_reason: Option<RawJson<'a>>,
        /// Moonshot reports the usage of streams here.
        "usage" => usage: Option<Box<CompletionUsage>>,
    }
}

from_json! {
    struct PeekedGroqUsage {
        "usage" => usage: Option<CompletionUsage>,
    }
}

fn note_usage(chunk: &PeekedChunk<'_>, observer: &mut ResponseObserver) {
    let groq_usage = || chunk.x_groq.as_ref().and_then(|groq| groq.usage.as_ref());
    let choices = || chunk.choices.iter().flatten();
    let choice_usage = || choices().find_map(|choice| choice.usage.as_deref());
    let usage = chunk.usage.as_ref().or_else(groq_usage);
    if let Some(usage) = usage.or_else(choice_usage) {
        observer.record_usage(ReportedUsage::of_whole(usage.to_usage()));
    }
}

/// Notes why a choice ended; one that failed has an error in place of a reason.
fn note_finish(reason: Option<RawJson<'_>>, observer: &mut ResponseObserver) {
    let reason = reason.and_then(RawJson::text);
    let finish = decode_finish_reason(reason.as_deref(), ChoiceSummary::default());
    if let Ok(Some(finish)) = finish {
        observer.observe_finish(&finish);
    }
}

from_json! {
    /// A response of which only the counts are read.
    struct CountedCompletion {
        "usage" => usage: Option<CompletionUsage>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::replace;

    #[test]
    fn a_chunk_with_an_error_is_metered_and_its_model_is_found() {
        let chunk = r#"{"model":"m","error":{"message":"no"},"usage":{"prompt_tokens":4}}"#;
        let mut observer = ResponseObserver::default();
        let observation = Chat.observe_event(chunk, &mut observer).expect("a chunk");
        assert_eq!(&chunk[observation.model.expect("a name")], "\"m\"");
        assert_eq!(observer.usage.map(|usage| usage.input), Some(4));
        assert!(observer.api_error.is_some() && observer.ended);
    }

    #[test]
    fn usage_in_a_choice_counts_where_there_is_none_beside_it() {
        let inside =
            r#""choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":4}}]"#;
        let beside = format!(r#"{{{inside},"usage":{{"prompt_tokens":5}}}}"#);
        for (chunk, input) in [(format!("{{{inside}}}"), 4), (beside, 5)] {
            let mut observer = ResponseObserver::default();
            Chat.observe_event(&chunk, &mut observer).expect("a chunk");
            assert_eq!(observer.usage.map(|usage| usage.input), Some(input));
        }
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
            let edit = Chat
                .decode_routing_fields(body.as_bytes())
                .expect(body)
                .include_usage_edit
                .expect(body);
            assert_eq!(replace(body.as_bytes(), &[edit]), want);
        }
        for body in [
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            r#"{"stream":false}"#,
            r#"{"stream":null,"stream_options":null}"#,
        ] {
            assert_eq!(
                Chat.decode_routing_fields(body.as_bytes())
                    .expect(body)
                    .include_usage_edit,
                None
            );
        }
    }

    #[test]
    fn a_stream_without_a_choice_is_an_error() {
        let mut observer = ResponseObserver::default();
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":1}}"#;
        Chat.observe_event(usage, &mut observer).expect("a chunk");
        assert!(Chat.observe_event("[DONE]", &mut observer).is_err());
    }

    fn ended(events: &[&str]) -> bool {
        let mut observer = ResponseObserver::default();
        for event in events {
            Chat.observe_event(event, &mut observer).expect("from_json");
        }
        observer.ended
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
