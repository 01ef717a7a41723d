//! Requests to an upstream of this format.

use serde::Serialize;

use super::settings_out::{self, Reasoning, TextSettings};
use super::tools_out::{self, Choice, Tool};
use super::turns_out::{self, Conversation, Item};
use crate::formats::UpstreamTarget;
use crate::formats::written::written;
use crate::model::{ApiError, FieldLocation, Json, Losses, Request, Sampling, Setting, Text};

#[derive(Serialize)]
struct Body<'r> {
    #[serde(flatten)]
    prompt: Prompt<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    /// Written always: the upstream would keep the conversation otherwise.
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'r Json<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

/// All that tokens are counted of.
#[derive(Serialize)]
pub(super) struct Prompt<'r> {
    model: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Text<'r>>,
    input: Vec<Item<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextSettings<'r>>,
}

const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";
const LOGPROBS: &str = "message.output_text.logprobs";

pub(super) fn encode(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    if request.output.audio {
        let message = "the upstream of this model cannot answer with sound";
        return Err(ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Audio)));
    }
    let (prompt, sealed) = prompt(request, target, losses)?;
    let sampling = &request.sampling;
    report_unknown(sampling, losses);
    let takes_sampling = target.capabilities.sampling;
    let mut sampled = |value: Option<f64>, setting| {
        if value.is_some() && !takes_sampling {
            losses.dropped(FieldLocation::Setting(setting));
        }
        value.filter(|_| takes_sampling)
    };
    let temperature = sampled(sampling.temperature, Setting::Temperature);
    let top_p = sampled(sampling.top_p, Setting::TopP);
    let labels = &request.labels;
    let body = Body {
        prompt,
        max_output_tokens: max_tokens(sampling, losses),
        temperature,
        top_p,
        top_logprobs: sampling.top_logprobs.filter(|_| sampling.logprobs),
        include: included(request, target, sealed),
        store: false,
        metadata: labels.metadata.as_ref(),
        user: labels.user.as_deref(),
        prompt_cache_key: labels.cache_key.as_deref(),
        service_tier: labels.service_tier.as_deref(),
        stream: target.stream.then_some(true),
    };
    Ok(written(&body, request.size()))
}

/// What the model is given to read, and whether there are sealed thoughts in it.
pub(super) fn prompt<'r>(
    request: &'r Request<'_>,
    target: &UpstreamTarget<'r>,
    losses: &mut Losses,
) -> Result<(Prompt<'r>, bool), ApiError> {
    let Conversation {
        instructions,
        input,
        sealed,
    } = turns_out::write(&request.turns, losses)?;
    let prompt = Prompt {
        model: target.model,
        instructions,
        input,
        tools: tools_out::write(request, losses),
        tool_choice: tools_out::choose(request, losses),
        parallel_tool_calls: one_at_a_time(request, target, losses),
        reasoning: settings_out::reasoning(&request.thinking, target.capabilities, losses),
        text: settings_out::text(&request.output, losses),
    };
    Ok((prompt, sealed))
}

/// What this format has no word for.
fn report_unknown(sampling: &Sampling<'_>, losses: &mut Losses) {
    let lost = [
        (sampling.top_k.is_some(), Setting::TopK),
        (sampling.seed.is_some(), Setting::Seed),
        (!sampling.stop.is_empty(), Setting::Stop),
        (
            sampling.presence_penalty.is_some(),
            Setting::PresencePenalty,
        ),
        (
            sampling.frequency_penalty.is_some(),
            Setting::FrequencyPenalty,
        ),
        (
            sampling.choices.is_some_and(|choices| choices > 1),
            Setting::Choices,
        ),
    ];
    for (written, setting) in lost {
        if written {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
}

/// The smallest limit that the format takes.
const LEAST_TOKENS: u64 = 16;

fn max_tokens(sampling: &Sampling<'_>, losses: &mut Losses) -> Option<u64> {
    let tokens = sampling.max_tokens?;
    if tokens < LEAST_TOKENS {
        losses.approximated(FieldLocation::Setting(Setting::MaxTokens));
    }
    Some(tokens.max(LEAST_TOKENS))
}

/// Calls come in parallel unless that is turned off.
fn one_at_a_time(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Option<bool> {
    let off = request.parallel_tools.filter(|parallel| !parallel)?;
    if !target.capabilities.parallel_switch {
        losses.dropped(FieldLocation::Setting(Setting::ParallelTools));
        return None;
    }
    Some(off)
}

/// Nothing is stored, so thoughts can only go on if their ciphertext comes with the reply.
fn included(request: &Request<'_>, target: &UpstreamTarget<'_>, sealed: bool) -> Vec<&'static str> {
    let capabilities = target.capabilities;
    let mut include = Vec::new();
    if capabilities.responses_encrypted_reasoning
        && settings_out::may_think(&request.thinking, capabilities, sealed)
    {
        include.push(ENCRYPTED_REASONING);
    }
    if request.sampling.logprobs {
        include.push(LOGPROBS);
    }
    include
}

#[cfg(test)]
#[path = "tests/outgoing.rs"]
mod tests;
