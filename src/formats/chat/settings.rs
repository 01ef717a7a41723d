//! Sampling parameters, reasoning effort and the switch for parallel tool calls.

use serde::Serialize;

use super::unsupported::{OLDER_LIMIT, limit_fields};
use crate::formats::Capabilities;
use crate::formats::effort::{NO_EFFORT, decode_effort};
use crate::formats::settings::{SAMPLING, TOP_LOGPROBS, decode_count_in, report_set};
use crate::json::{Fields, Path};
use crate::model::{
    ApiError, Depth, Effort, FieldLocation, Format, Json, Losses, Request, Sampling, Setting,
    SettingAliases, Text, Thinking,
};

/// The older name of `max_completion_tokens`.
const OLDER_MAX_TOKENS: &str = "max_tokens";
/// The largest number of stop sequences.
const MAX_STOPS: usize = 4;
/// What models refuse that take no sampling parameters.
const REFUSED_BY_REASONING_MODELS: [Setting; 5] = [
    Setting::Temperature,
    Setting::TopP,
    Setting::Stop,
    Setting::PresencePenalty,
    Setting::FrequencyPenalty,
];

/// Decodes the sampling parameters of a request.
pub(super) fn decode_sampling<'a>(
    fields: &mut Fields<'a, '_>,
    aliases: &mut SettingAliases,
) -> Result<Sampling<'a>, ApiError> {
    let rule = |setting| Format::Chat.setting(setting);
    let mut max_tokens = rule(Setting::MaxTokens).decode_count(fields)?;
    if max_tokens.is_none() {
        max_tokens = rule(Setting::MaxTokens).decode_count_at(fields, OLDER_MAX_TOKENS)?;
        aliases.max_tokens = max_tokens.map(|_| OLDER_MAX_TOKENS);
    }
    let sampling = Sampling {
        max_tokens,
        temperature: rule(Setting::Temperature).decode_number(fields)?,
        top_p: rule(Setting::TopP).decode_number(fields)?,
        top_k: None,
        choices: to_u32(rule(Setting::Choices).decode_count(fields)?),
        stop: decode_stop(fields)?,
        seed: fields.i64("seed")?,
        presence_penalty: rule(Setting::PresencePenalty).decode_number(fields)?,
        frequency_penalty: rule(Setting::FrequencyPenalty).decode_number(fields)?,
        logprobs: fields.bool("logprobs")?.unwrap_or(false),
        top_logprobs: to_u32(decode_count_in(fields, "top_logprobs", TOP_LOGPROBS)?),
    };
    if !sampling.logprobs && sampling.top_logprobs.is_some_and(|top| top > 0) {
        return Err(Path::Key(&fields.path, "top_logprobs").wrong("`logprobs` to be true with it"));
    }
    Ok(sampling)
}

/// The sampling parameters of a request body.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub(super) struct ChatSampling<'a> {
    max_completion_tokens: Option<u64>,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    n: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [Text<'a>],
    seed: Option<i64>,
    presence_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    logprobs: Option<bool>,
    top_logprobs: Option<u32>,
}

/// Encodes the sampling parameters that the upstream accepts.
pub(super) fn encode_sampling<'a>(
    request: &'a Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> ChatSampling<'a> {
    let sampling = &request.sampling;
    let mut fit = |setting, count: Option<u64>| {
        count.map(|count| Format::Chat.fit_count(setting, count, losses))
    };
    let max_tokens = fit(Setting::MaxTokens, sampling.max_tokens);
    let choices = fit(Setting::Choices, sampling.choices.map(u64::from));
    Format::Chat.report_dropped(&SAMPLING, request, losses);
    let mut encoded = ChatSampling {
        n: choices,
        seed: sampling.seed,
        logprobs: sampling.logprobs.then_some(true),
        top_logprobs: sampling.top_logprobs.filter(|_| sampling.logprobs),
        ..ChatSampling::default()
    };
    match limit_fields(capabilities) {
        [OLDER_LIMIT, _] => encoded.max_tokens = max_tokens,
        _ => encoded.max_completion_tokens = max_tokens,
    }
    if !capabilities.sampling {
        report_set(REFUSED_BY_REASONING_MODELS, request, losses);
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

/// Narrows a number whose range has been checked.
fn to_u32(value: Option<u64>) -> Option<u32> {
    value.and_then(|value| u32::try_from(value).ok())
}

/// Decodes `reasoning_effort`.
pub(super) fn decode_reasoning_effort(fields: &mut Fields<'_, '_>) -> Result<Thinking, ApiError> {
    let depth = fields.node("reasoning_effort").map(decode_effort);
    let depth = depth.transpose()?;
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
            return Some(NO_EFFORT);
        }
        Some(Depth::Off) => (Effort::Minimal, false),
        Some(Depth::Effort(effort)) => (effort, true),
        Some(Depth::Budget(tokens)) => (Effort::of_budget(tokens), false),
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
    Some(nearest.name())
}

/// Reports that the client wants to see the reasoning: the format has no field for that.
fn report_shown_reasoning(thinking: Thinking, losses: &mut Losses) {
    if thinking.show == Some(true) {
        losses.dropped(FieldLocation::Setting(Setting::Thinking));
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
