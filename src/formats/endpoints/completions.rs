//! OpenAI Completions, `POST /v1/completions`: text that continues a prompt.

use std::sync::LazyLock;

use smallvec::SmallVec;

use super::endpoint_fields::index_fields;
use crate::formats::chat::{CompletionUsage, decode_error, request_usage};
use crate::formats::dearer_setting::DEARER_FIELDS;
use crate::formats::token_input::TokenInput;
use crate::formats::{
    InputSummary, Observation, OutputLimit, ResponseObserver, RoutingFields, decode_event_data,
    decode_model_name, decode_unique_fields, missing_content, set_field,
};
use crate::json::{Edit, FieldIndex, Present, RawJson, from_json};
use crate::model::ApiError;

pub(super) static FIELDS: LazyLock<FieldIndex> = LazyLock::new(|| {
    const NAMES: &[&str] = &[
        "model",
        "prompt",
        "best_of",
        "echo",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_tokens",
        "n",
        "presence_penalty",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "suffix",
        "temperature",
        "top_p",
        "user",
        "service_tier",
        "speed",
        "inference_geo",
    ];
    index_fields(NAMES, DEARER_FIELDS)
});

/// Decodes the fields of a request that routing and metering need. Each prompt of a list is answered, and of the
/// best of several answers all are paid for.
pub(super) fn decode_routing_fields(body: &[u8]) -> Result<RoutingFields<'_>, ApiError> {
    let [model, stream, stream_options, limit, n, best_of, prompt] = decode_unique_fields(
        body,
        [
            &["model"],
            &["stream"],
            &["stream_options"],
            &["max_tokens"],
            &["n"],
            &["best_of"],
            &["prompt"],
        ],
    )?;
    let stream = stream.flag()?.unwrap_or(false);
    let include_usage_edit = match stream {
        true => request_usage(body, &stream_options)?,
        false => None,
    };
    let answers = n.count()?.max(best_of.count()?).unwrap_or(1).max(1);
    let prompt = prompt.value().map(RawJson::get).unwrap_or_default();
    let prompts = TokenInput::count(prompt).inputs.max(1) as u64;
    let choices = answers.saturating_mul(prompts);
    Ok(RoutingFields {
        stream,
        include_usage_edit,
        output_limit: OutputLimit::of(limit.count()?, Some(choices)),
        ..RoutingFields::of_model(decode_model_name(body, &model)?)
    })
}

/// Summarizes the prompts.
pub(super) fn summarize_input(body: &[u8]) -> InputSummary {
    let prompt = decode_unique_fields(body, [&["prompt"]]);
    let prompt = prompt.ok().and_then(|[prompt]| prompt.value());
    let written = prompt.map(RawJson::get).unwrap_or_default();
    TokenInput::count(written).summary(written)
}

/// Limits the output.
pub(super) fn limit_output(body: &[u8], limit: u64) -> Result<Vec<Edit>, ApiError> {
    let [field] = decode_unique_fields(body, [&["max_tokens"]])?;
    Ok(vec![set_field(body, &field, &limit.to_string())])
}

from_json! {
    struct CompletionChunk<'a> {
        "model" => model: Option<RawJson<'a>>,
        "choices" => choices: Option<SmallVec<[PromptChoice<'a>; 1]>>,
        "usage" => usage: Option<CompletionUsage>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct PromptChoice<'a> {
        "index" => index: Option<u32>,
        "text" => text: Option<RawJson<'a>>,
        "finish_reason" => finish_reason: Option<RawJson<'a>>,
    }
}

/// Observes one event of a stream.
pub(super) fn observe_event(
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
    let chunk: CompletionChunk<'_> = decode_event_data(data)?;
    let choices = chunk.choices.unwrap_or_default();
    for choice in &choices {
        observer.uncounted.add_text(choice.text);
    }
    if let Some(usage) = &chunk.usage {
        observer.record_usage(usage.to_usage());
    }
    if chunk.error.is_some() {
        observer.api_error = Some(decode_error(200, data.as_bytes()));
        observer.ended = true;
    } else {
        for choice in &choices {
            observer.has_content |= choice.text.is_some_and(|text| text.get() != "\"\"");
            let finish = choice.finish_reason.filter(|reason| reason.get() != "\"\"");
            observer.observe_choice(choice.index.unwrap_or(0), finish.is_some());
        }
    }
    Ok(Observation {
        usage_only: choices.is_empty() && chunk.usage.is_some(),
        ..Observation::of_model(chunk.model, data.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prompt_and_every_answer_that_is_paid_for_is_counted() {
        for (fields, output, choices, token_ids) in [
            (r#""prompt":"a""#, None, 1, 0),
            (r#""prompt":["a","b"],"max_tokens":7"#, Some(7), 2, 0),
            (r#""prompt":[1,2],"n":2,"best_of":3"#, None, 3, 2),
            (r#""prompt":[[1,2],[3]],"n":4"#, None, 8, 3),
            (r#""n":2"#, None, 2, 0),
        ] {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            let routing = decode_routing_fields(body.as_bytes()).expect(fields);
            let limit = routing.output_limit;
            assert_eq!((limit.output, limit.choices), (output, choices), "{fields}");
            let summary = summarize_input(body.as_bytes());
            assert_eq!(summary.token_ids, token_ids, "{fields}");
        }
        for body in [
            r#"{"model":"m","max_tokens":1,"max_tokens":9}"#,
            r#"{"model":"m","Prompt":"a"}"#,
            r#"{"model":"m","n":"2"}"#,
        ] {
            assert!(decode_routing_fields(body.as_bytes()).is_err(), "{body}");
        }
    }
}
