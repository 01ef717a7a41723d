//! Sampling parameters, reasoning effort and the switch for parallel tool calls.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::reader::{integer_in, number_in, one_of};
use crate::formats::Capabilities;
use crate::json::{Fields, Path};
use crate::model::{
    ApiError, Depth, Effort, FieldLocation, Json, Losses, Request, Sampling, Setting,
    SettingAliases, Text, Thinking,
};

/// The range of `max_completion_tokens`.
const MAX_TOKENS_RANGE: RangeInclusive<u64> = 1..=u32::MAX as u64;
/// The largest number of stop sequences.
const MAX_STOPS: usize = 4;

/// Decodes the sampling parameters of a request.
pub(super) fn decode_sampling<'a>(
    fields: &mut Fields<'a, '_>,
    aliases: &mut SettingAliases,
) -> Result<Sampling<'a>, ApiError> {
    let mut max_tokens = integer_in(fields, "max_completion_tokens", MAX_TOKENS_RANGE)?;
    if max_tokens.is_none() {
        max_tokens = integer_in(fields, "max_tokens", MAX_TOKENS_RANGE)?;
        aliases.max_tokens = max_tokens.map(|_| "max_tokens");
    }
    let sampling = Sampling {
        max_tokens,
        temperature: number_in(fields, "temperature", 0.0..=2.0)?,
        top_p: number_in(fields, "top_p", 0.0..=1.0)?,
        top_k: None,
        choices: to_u32(integer_in(fields, "n", 1..=128)?),
        stop: decode_stop(fields)?,
        seed: fields.i64("seed")?,
        presence_penalty: number_in(fields, "presence_penalty", -2.0..=2.0)?,
        frequency_penalty: number_in(fields, "frequency_penalty", -2.0..=2.0)?,
        logprobs: fields.bool("logprobs")?.unwrap_or(false),
        top_logprobs: to_u32(integer_in(fields, "top_logprobs", 0..=20)?),
    };
    if !sampling.logprobs && sampling.top_logprobs.is_some_and(|top| top > 0) {
        return Err(Path::Key(&fields.path, "top_logprobs").wrong("`logprobs` to be true with it"));
    }
    Ok(sampling)
}

/// The sampling parameters of a request body.
#[derive(Default, Serialize)]
pub(super) struct ChatSampling<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [Text<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u32>,
}

/// Encodes the sampling parameters that the upstream accepts.
pub(super) fn encode_sampling<'a>(
    sampling: &'a Sampling<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> ChatSampling<'a> {
    let max_tokens = sampling
        .max_tokens
        .map(|tokens| clamp_to(tokens, MAX_TOKENS_RANGE, Setting::MaxTokens, losses));
    let choices = sampling
        .choices
        .map(|count| clamp_to(count, 1..=128, Setting::Choices, losses));
    if sampling.top_k.is_some() {
        losses.dropped(FieldLocation::Setting(Setting::TopK));
    }
    let mut encoded = ChatSampling {
        n: choices,
        seed: sampling.seed,
        logprobs: sampling.logprobs.then_some(true),
        top_logprobs: sampling.top_logprobs.filter(|_| sampling.logprobs),
        ..ChatSampling::default()
    };
    if capabilities.chat_old_max_field {
        encoded.max_tokens = max_tokens;
    } else {
        encoded.max_completion_tokens = max_tokens;
    }
    if !capabilities.sampling {
        for (is_set, setting) in [
            (sampling.temperature.is_some(), Setting::Temperature),
            (sampling.top_p.is_some(), Setting::TopP),
            (!sampling.stop.is_empty(), Setting::Stop),
            (
                sampling.presence_penalty.is_some(),
                Setting::PresencePenalty,
            ),
            (
                sampling.frequency_penalty.is_some(),
                Setting::FrequencyPenalty,
            ),
        ] {
            if is_set {
                losses.dropped(FieldLocation::Setting(setting));
            }
        }
        return encoded;
    }
    encoded.temperature = sampling.temperature;
    encoded.top_p = sampling.top_p;
    encoded.presence_penalty = sampling.presence_penalty;
    encoded.frequency_penalty = sampling.frequency_penalty;
    encoded.stop = &sampling.stop;
    if let Some(first) = sampling.stop.get(..MAX_STOPS)
        && sampling.stop.len() > MAX_STOPS
    {
        losses.approximated(FieldLocation::Setting(Setting::Stop));
        encoded.stop = first;
    }
    encoded
}

/// Decodes `stop`: one string or an array of at most four.
fn decode_stop<'a>(fields: &mut Fields<'a, '_>) -> Result<Vec<Text<'a>>, ApiError> {
    let Some(node) = fields.node("stop") else {
        return Ok(Vec::new());
    };
    if let Json::Str(stop) = node.value {
        return Ok(vec![stop]);
    }
    let path = node.path;
    let mut stops = Vec::new();
    node.each(|_, stop| {
        stops.push(stop.text()?);
        Ok(())
    })?;
    if stops.len() > MAX_STOPS {
        return Err(path.wrong("at most 4 sequences"));
    }
    Ok(stops)
}

/// Moves a number to the nearest value that the format accepts.
fn clamp_to<N: Ord + Copy>(
    number: N,
    range: RangeInclusive<N>,
    setting: Setting,
    losses: &mut Losses,
) -> N {
    let clamped = number.clamp(*range.start(), *range.end());
    if clamped != number {
        losses.approximated(FieldLocation::Setting(setting));
    }
    clamped
}

/// Narrows a number whose range has been checked.
fn to_u32(value: Option<u64>) -> Option<u32> {
    value.and_then(|value| u32::try_from(value).ok())
}

/// The values of `reasoning_effort`.
const EFFORTS: [(&str, Depth); 7] = [
    ("none", Depth::Off),
    ("minimal", Depth::Effort(Effort::Minimal)),
    ("low", Depth::Effort(Effort::Low)),
    ("medium", Depth::Effort(Effort::Medium)),
    ("high", Depth::Effort(Effort::High)),
    ("xhigh", Depth::Effort(Effort::ExtraHigh)),
    ("max", Depth::Effort(Effort::Max)),
];

/// Decodes `reasoning_effort`.
pub(super) fn decode_reasoning_effort(fields: &mut Fields<'_, '_>) -> Result<Thinking, ApiError> {
    let depth = match fields.node("reasoning_effort") {
        Some(node) => Some(one_of(node, &EFFORTS)?),
        None => None,
    };
    Ok(Thinking { depth, show: None })
}

/// Encodes `reasoning_effort` with the nearest effort that the model knows.
pub(super) fn encode_reasoning_effort(
    thinking: Thinking,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<&'static str> {
    const LOCATION: FieldLocation = FieldLocation::Setting(Setting::Thinking);
    let (effort, is_exact) = match thinking.depth {
        None | Some(Depth::Dynamic) => {
            report_shown_reasoning(thinking, losses);
            return None;
        }
        Some(Depth::Off) if capabilities.off_effort => {
            report_shown_reasoning(thinking, losses);
            return Some("none");
        }
        Some(Depth::Off) => (Effort::Minimal, false),
        Some(Depth::Effort(effort)) => (effort, true),
        Some(Depth::Budget(tokens)) => (effort_of_budget(tokens), false),
    };
    if capabilities.efforts.as_deref() == Some(&[]) {
        losses.dropped(LOCATION);
        return None;
    }
    let nearest = capabilities.nearest_effort(effort);
    if is_exact && nearest == effort {
        report_shown_reasoning(thinking, losses);
    } else {
        losses.approximated(LOCATION);
    }
    Some(effort_name(nearest))
}

/// Reports that the client wants to see the reasoning: the format has no field for that.
fn report_shown_reasoning(thinking: Thinking, losses: &mut Losses) {
    if thinking.show == Some(true) {
        losses.dropped(FieldLocation::Setting(Setting::Thinking));
    }
}

/// The effort that stands for a budget of thinking tokens.
const fn effort_of_budget(budget: u64) -> Effort {
    match budget {
        0..=1024 => Effort::Low,
        1025..=8192 => Effort::Medium,
        _ => Effort::High,
    }
}

/// The name of an effort in a request body.
const fn effort_name(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::ExtraHigh => "xhigh",
        Effort::Max => "max",
    }
}

/// Encodes `parallel_tool_calls` where it is off; `true` is the default of every upstream.
pub(super) fn encode_parallel_tool_calls(
    request: &Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<bool> {
    if request.parallel_tools != Some(false) || request.tools.is_empty() {
        return None;
    }
    if !capabilities.parallel_switch {
        losses.dropped(FieldLocation::Setting(Setting::ParallelTools));
        return None;
    }
    Some(false)
}
