//! Passthrough: the output limit of a request, and the usage and the end of a response that pass
//! unchanged.

use std::ops::Range;

use smallvec::SmallVec;

use super::finish_reason::decode_finish_reason;
use super::stream::DONE;
use super::usage::UpstreamUsage;
use super::{Native, error, field_names, validation};
use crate::formats::content_tokens::string_length;
use crate::formats::images_only::images_only;
use crate::formats::reported_usage::CountedOutput;
use crate::formats::{
    Capabilities, ContentTokens, ErrorCodec, ModelField, Observation, OutputLimit, Passthrough,
    RequestHead, ResponseObserver, RoutingFields, decode_event_data, decode_model_name,
    decode_response_body, decode_unique_fields, decode_unique_members, decode_written_fields,
    missing_content, set_field,
};
use crate::json::{Edit, Present, RawJson, UNSPECIFIED, decode_json, from_json, set_member};
use crate::model::{ApiError, Text, Usage};

impl Passthrough for Native {
    /// Decodes what routing needs of a request. Whether to stream stands in the path, and so does the model: one
    /// in the body must be the same.
    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError> {
        let [model, config, ..] = decode_unique_fields(
            body,
            [
                &["model"],
                field_names::GENERATION_CONFIG,
                // What it holds is paid for.
                field_names::CACHED_CONTENT,
            ],
        )?;
        let model = decode_model_name(body, &model)?;
        let [output, choices] = decode_unique_members(
            &config,
            [field_names::MAX_OUTPUT_TOKENS, field_names::CANDIDATE_COUNT],
        )?;
        Ok(RoutingFields {
            model: model.map(without_resource_prefix),
            output_limit: OutputLimit {
                may_be_written: config.written().is_some(),
                ..OutputLimit::of(output.count_or_text()?, choices.count_or_text()?)
            },
            ..RoutingFields::default()
        })
    }

    /// Limits the output, in the `generationConfig` of the client or in one of our own.
    fn limit_output(
        &self,
        body: &[u8],
        limit: u64,
        may_be_written: bool,
        _capabilities: &Capabilities,
    ) -> Result<Vec<Edit>, ApiError> {
        let names = [field_names::GENERATION_CONFIG];
        let [config] = decode_written_fields(body, may_be_written, names)?;
        let Some(written) = config.value() else {
            let config_with_limit = format!(r#"{{"maxOutputTokens":{limit}}}"#);
            return Ok(vec![set_field(body, &config, &config_with_limit)]);
        };
        let [output] = decode_unique_members(&config, [field_names::MAX_OUTPUT_TOKENS])?;
        let object = written.range_in(body).start;
        let range = output.written().map(|value| value.range_in(body));
        let limit = limit.to_string();
        Ok(vec![set_member(body, object, output.name(), range, &limit)])
    }

    /// Refuses a request for text alone. Without modalities, the model answers with images: clients rely
    /// on it.
    fn check_image_request(&self, body: &[u8]) -> Result<(), ApiError> {
        let [config] = decode_unique_fields(body, [field_names::GENERATION_CONFIG])?;
        let [modalities] = decode_unique_members(&config, [field_names::RESPONSE_MODALITIES])?;
        let modalities: Vec<Text<'_>> = modalities.decoded("a list of strings")?;
        let is_set =
            |modality: &&Text<'_>| !modality.is_empty() && !modality.ends_with(UNSPECIFIED);
        let mut modalities = modalities.iter().filter(is_set).peekable();
        let asks_for_images = modalities.peek().is_none()
            || modalities.any(|modality| modality.eq_ignore_ascii_case("IMAGE"));
        match asks_for_images {
            true => Ok(()),
            false => Err(images_only(
                "generationConfig.responseModalities",
                "add IMAGE to the list, or leave it out",
            )),
        }
    }

    fn observe_response(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        if error::is_error_list(body) {
            return Err(Native.decode_error(200, body));
        }
        let response: ObservedResponse<'_> = decode_response_body(body)?;
        if response.error.is_some() {
            return Err(Native.decode_error(200, body));
        }
        let candidates = response.candidates.as_ref();
        let is_empty = candidates.is_none_or(|candidates| candidates.is_empty());
        if is_empty && response.prompt_feedback.is_none() {
            return Err(missing_content());
        }
        record(&response, observer);
        (observer.has_content, observer.ended) = (true, true);
        Ok(Observation::default())
    }

    fn observe_event(
        &self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        if data == DONE {
            return Ok(Observation {
                is_foreign: true,
                ..Observation::default()
            });
        }
        let response: ObservedResponse<'_> = decode_event_data(data)?;
        if response.error.is_some() {
            observer.api_error = Some(Native.decode_error(200, data.as_bytes()));
            observer.ended = true;
        }
        record(&response, observer);
        Ok(Observation::default())
    }

    fn check_passthrough(
        &self,
        head: &RequestHead<'_>,
        body: &[u8],
        strict: bool,
    ) -> Result<Vec<Range<usize>>, ApiError> {
        match strict {
            true => validation::validate(body, head.text_only),
            false => validation::find_vendor_prefixes(body),
        }
    }

    fn reported_usage(&self, body: &[u8]) -> Option<Usage> {
        // Some upstreams send all chunks of a stream in a list.
        let chunks: Vec<CountedNativeResponse<'_>> = match body.trim_ascii_start().first() {
            Some(b'[') => decode_json(str::from_utf8(body).ok()?).ok()?,
            _ => vec![decode_response_body(body).ok()?],
        };
        let counts = chunks
            .iter()
            .filter_map(|chunk| chunk.usage_metadata.as_ref());
        counts.fold(None, |known, usage| Some(usage.report(known).after(known)))
    }
}

fn without_resource_prefix(mut model: ModelField<'_>) -> ModelField<'_> {
    if let Some(name) = model.name.strip_prefix("models/") {
        model.name = name.to_owned().into();
    }
    model
}

from_json! {
    struct ObservedResponse<'a> {
        "candidates" => candidates: Option<SmallVec<[ObservedCandidate<'a>; 1]>>,
        "promptFeedback" => prompt_feedback: Option<ObservedPromptFeedback>,
        "usageMetadata" => usage_metadata: Option<UpstreamUsage<'a>>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct ObservedCandidate<'a> {
        "index" => index: Option<u32>,
        "content" => content: Option<RawJson<'a>>,
        "finishReason" => finish_reason: Option<RawJson<'a>>,
    }
}

from_json! {
    struct ObservedContent<'a> {
        "parts" => parts: Option<SmallVec<[ObservedPart<'a>; 1]>>,
    }
}

from_json! {
    struct ObservedPart<'a> {
        "text" => text: Option<RawJson<'a>>,
        "thought" => thought: Option<RawJson<'a>>,
        "thoughtSignature" => signature: Option<RawJson<'a>>,
        "functionCall" => function_call: Option<RawJson<'a>>,
        "executableCode" => executable_code: Option<RawJson<'a>>,
        "codeExecutionResult" => code_execution_result: Option<RawJson<'a>>,
        "inlineData" => inline_data: Option<RawJson<'a>>,
    }
}

from_json! {
    struct ObservedData<'a> {
        "mimeType" => mime_type: Option<Text<'a>>,
        "data" => data: Option<RawJson<'a>>,
    }
}

impl ObservedCandidate<'_> {
    /// Counts the content, for responses without usage.
    fn count(&self, uncounted: &mut ContentTokens) {
        let content = self.content.map(RawJson::get);
        // Content that cannot be decoded counts nothing, but passes.
        let content = content.and_then(|content| decode_json(content).ok());
        let parts = content.and_then(|content: ObservedContent<'_>| content.parts);
        for part in parts.iter().flatten() {
            match part.thought.map(RawJson::get) {
                Some("true") => uncounted.add_reasoning(part.text),
                _ => uncounted.add_text(part.text),
            }
            uncounted.add_signature(part.signature);
            uncounted.add_value(part.function_call);
            uncounted.add_value(part.executable_code);
            uncounted.add_value(part.code_execution_result);
            let data = part.inline_data.map(RawJson::get);
            let data: Option<ObservedData<'_>> = data.and_then(|data| decode_json(data).ok());
            if let Some(ObservedData { mime_type, data }) = data {
                let mime_type = mime_type.unwrap_or_default();
                uncounted.add_media(&mime_type, string_length(data));
            }
        }
    }
}

from_json! {
    struct ObservedPromptFeedback {
        "blockReason" => block_reason: Option<Present>,
    }
}

/// Records the usage, the content and the end that a response or a chunk holds.
fn record(response: &ObservedResponse<'_>, observer: &mut ResponseObserver) {
    let usage = response.usage_metadata.as_ref();
    let counted = usage.map(UpstreamUsage::counted_output);
    if counted != Some(CountedOutput::Everything) {
        let candidates = response.candidates.iter().flatten();
        candidates.for_each(|candidate| candidate.count(&mut observer.uncounted));
    }
    if let Some(usage) = usage {
        observer.record_usage(usage.report(observer.usage));
    }
    for candidate in response.candidates.iter().flatten() {
        observer.has_content |= candidate.content.is_some();
        let index = candidate.index.unwrap_or(0);
        let reason = candidate.finish_reason.and_then(RawJson::text);
        let reason = reason.filter(|reason| !reason.is_empty());
        let is_complete = reason.is_some();
        // Some upstreams name it in every chunk.
        if let Some(reason) = reason.filter(|_| observer.is_open(index)) {
            observer.observe_finish(&decode_finish_reason(&reason, None, false));
        }
        observer.observe_choice(index, is_complete);
    }
    observer.ended |= response
        .prompt_feedback
        .as_ref()
        .is_some_and(|feedback| feedback.block_reason.is_some());
    observer.has_content |= observer.ended && observer.api_error.is_none();
}

from_json! {
    /// A response of which only the counts are read.
    struct CountedNativeResponse<'a> {
        "usageMetadata" => usage_metadata: Option<UpstreamUsage<'a>>,
    }
}
