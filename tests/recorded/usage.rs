//! Token counts found by field names alone, to compare the decoders with.

use omniglot::model::{Format, Usage};
use serde_json::Value;

/// Input and output tokens of one JSON reply or one event of a stream, where it tells any.
fn reported_usage(format: Format, body: &Value) -> Option<(Option<u64>, Option<u64>)> {
    let usage = match format {
        // One backend tells it twice, in a field of its own first.
        Format::Chat if body["x_groq"]["usage"].is_object() => &body["x_groq"]["usage"],
        Format::Chat => &body["usage"],
        Format::Native => &body["usageMetadata"],
        Format::Messages if body["message"]["usage"].is_object() => &body["message"]["usage"],
        Format::Messages => &body["usage"],
        Format::Responses if body["response"]["usage"].is_object() => &body["response"]["usage"],
        Format::Responses | Format::Images => &body["usage"],
    };
    usage.as_object()?;
    let sum = |keys: &[&str]| {
        let counts: Vec<u64> = keys.iter().filter_map(|key| usage[key].as_u64()).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    };
    Some(match format {
        Format::Chat => {
            let input = sum(&["prompt_tokens"]);
            let output = sum(&["completion_tokens"]);
            // Some backends count thoughts beside the answer, and tell so or not: the total does.
            let thoughts = usage["completion_tokens_details"]["reasoning_tokens"].as_u64();
            let rest = sum(&["total_tokens"]).and_then(|total: u64| total.checked_sub(input?));
            let beside = rest.and_then(|rest| rest.checked_sub(output?));
            let is_thinking = beside > Some(0) && [None, Some(0), beside].contains(&thoughts);
            (input, rest.filter(|_| is_thinking).or(output))
        }
        Format::Native => (
            sum(&["promptTokenCount", "toolUsePromptTokenCount"]),
            sum(&["candidatesTokenCount", "thoughtsTokenCount"]),
        ),
        Format::Messages => (
            sum(&[
                "input_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
            ]),
            sum(&["output_tokens"]),
        ),
        Format::Responses | Format::Images => (sum(&["input_tokens"]), sum(&["output_tokens"])),
    })
}

/// The last counts that were told.
pub fn counted<'v>(
    format: Format,
    bodies: impl IntoIterator<Item = &'v Value>,
) -> Option<(u64, u64)> {
    let mut last = None;
    for (input, output) in bodies
        .into_iter()
        .filter_map(|body| reported_usage(format, body))
    {
        let (before_in, before_out) = last.unwrap_or_default();
        last = Some((input.unwrap_or(before_in), output.unwrap_or(before_out)));
    }
    last
}

pub fn pair(usage: Option<Usage>) -> Option<(u64, u64)> {
    usage.map(|usage| (usage.input, usage.output))
}
