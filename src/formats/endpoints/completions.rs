//! OpenAI Completions, `POST /v1/completions`: text that continues a prompt.

use std::sync::LazyLock;

use super::endpoint_fields::index_fields;
use crate::formats::chat::request_usage;
use crate::formats::dearer_setting::DEARER_FIELDS;
use crate::formats::normalized_text::longest;
use crate::formats::token_input::{TokenInput, count_unknown_inputs};
use crate::formats::{
    InputSummary, OutputLimit, RoutingFields, decode_model_name, decode_unique_fields,
    decode_written_fields, set_field,
};
use crate::json::{Edit, FieldIndex, RawJson};
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
    let [model, stream, stream_options, limit, n, best_of, prompt, _] = decode_unique_fields(
        body,
        [
            &["model"],
            &["stream"],
            &["stream_options"],
            &["max_tokens"],
            &["n"],
            &["best_of"],
            &["prompt"],
            &["suffix"],
        ],
    )?;
    let stream = stream.flag()?.unwrap_or(false);
    let include_usage_edit = match stream {
        true => request_usage(body, &stream_options)?,
        false => None,
    };
    let answers = n.count()?.max(best_of.count()?).unwrap_or(1).max(1);
    let prompt = prompt.value().map(RawJson::get).unwrap_or_default();
    let prompts = TokenInput::count(prompt).most_inputs(prompt).max(1) + unknown_prompts(body);
    let choices = answers.saturating_mul(prompts);
    Ok(RoutingFields {
        stream,
        include_usage_edit,
        output_limit: OutputLimit {
            may_be_written: limit.written().is_some(),
            ..OutputLimit::of(limit.count()?, Some(choices))
        },
        ..RoutingFields::of_model(decode_model_name(body, &model)?)
    })
}

/// Summarizes the prompts, with each of which the suffix is read.
pub(super) fn summarize_input(body: &[u8]) -> InputSummary {
    let Ok([prompt, suffix]) = decode_unique_fields(body, [&["prompt"], &["suffix"]]) else {
        return InputSummary::unreadable();
    };
    let [prompt, suffix] =
        [prompt, suffix].map(|field| field.value().map(RawJson::get).unwrap_or_default());
    let summary = TokenInput::count(prompt).summary(prompt);
    let inputs = summary.inputs + unknown_prompts(body);
    InputSummary {
        inputs,
        repeated_bytes: longest(suffix).saturating_mul(inputs.saturating_sub(1)),
        ..summary
    }
}

/// Counts what may be further prompts, such as `prompt_embeds`. The endpoint has many settings that are lists.
fn unknown_prompts(body: &[u8]) -> u64 {
    count_unknown_inputs(body, &FIELDS, |key| {
        let key = key.to_ascii_lowercase();
        ["prompt", "input", "text", "quer"]
            .iter()
            .any(|word| key.contains(word))
    })
}

/// Limits the output.
pub(super) fn limit_output(
    body: &[u8],
    limit: u64,
    may_be_written: bool,
) -> Result<Vec<Edit>, ApiError> {
    let [field] = decode_written_fields(body, may_be_written, [&["max_tokens"]])?;
    Ok(vec![set_field(body, &field, &limit.to_string())])
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
            (
                r#""prompt":[{"prompt_string":"a"},{}],"max_tokens":7"#,
                Some(7),
                2,
                0,
            ),
            (r#""prompt":["a",{},{}],"n":2"#, None, 6, 0),
            (r#""prompt":"a","prompt_embeds":["x","y"]"#, None, 3, 0),
            (r#""prompt":"a","stop_token_ids":[1,2]"#, None, 1, 0),
        ] {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            let routing = decode_routing_fields(body.as_bytes()).expect(fields);
            let limit = routing.output_limit;
            assert_eq!((limit.output, limit.choices), (output, choices), "{fields}");
            let summary = summarize_input(body.as_bytes());
            assert_eq!(summary.token_ids, token_ids, "{fields}");
        }
        let suffixed = br#"{"model":"m","prompt":["a","b","c"],"suffix":"0123456789"}"#;
        assert_eq!(summarize_input(suffixed).repeated_bytes, 24);
        for body in [
            r#"{"model":"m","max_tokens":1,"max_tokens":9}"#,
            r#"{"model":"m","Prompt":"a"}"#,
            r#"{"model":"m","n":"2"}"#,
        ] {
            assert!(decode_routing_fields(body.as_bytes()).is_err(), "{body}");
        }
    }
}
