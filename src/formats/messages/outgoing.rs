//! Requests to an upstream of this format.

use serde::Serialize;

use super::blocks_out::Content;
use super::drafts_out::Message;
use super::schema_out::{self, Format};
use super::thinking_out::{self, Thinking};
use super::tools_out::{self, Choice, Tool};
use super::turns_out;
use crate::formats::written::written;
use crate::formats::{MessagesVersion, UpstreamTarget};
use crate::model::{ApiError, FieldLocation, Labels, Losses, Request, Sampling, Setting};

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    prompt: Prompt<'a>,
    max_tokens: u64,
    #[serde(flatten)]
    dice: Dice,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

/// All that tokens are counted of.
#[derive(Serialize)]
pub(super) struct Prompt<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Config::is_empty")]
    output_config: Config<'a>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Config<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

impl Config<'_> {
    fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}

/// What the second version of the format took away.
#[derive(Serialize, Default)]
struct Dice {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u64>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

pub(super) fn encode(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    let (prompt, max_tokens) = prompt(request, target, losses)?;
    if request.sampling.max_tokens.is_none() {
        losses.added(FieldLocation::Setting(Setting::MaxTokens));
    }
    let thinks = prompt.thinking.is_some_and(|thinking| thinking.is_on());
    let body = Body {
        prompt,
        max_tokens,
        dice: dice(&request.sampling, target, thinks, losses),
        stop_sequences: stop(&request.sampling, losses),
        metadata: metadata(&request.labels, losses),
        service_tier: tier(&request.labels, losses),
        stream: target.stream,
    };
    drop_settings(&request.sampling, losses);
    Ok(written(&body, request.size()))
}

/// What the model is given to read, and the limit of an answer that leaves room for its thoughts.
pub(super) fn prompt<'a>(
    request: &'a Request<'_>,
    target: &UpstreamTarget<'a>,
    losses: &mut Losses,
) -> Result<(Prompt<'a>, u64), ApiError> {
    refuse_media(request)?;
    request.output.image_options.drop_all(losses);
    let conversation = turns_out::write(request, target.capabilities, losses)?;
    let (tools, tool_choice) = tools_out::write(request, target.capabilities, losses)?;
    let forced = tool_choice.as_ref().is_some_and(Choice::is_forced);
    let unproven = conversation.ends_in_unproven_loop;
    let plan = thinking_out::plan(request, target, forced, unproven, losses);
    let format = schema_out::write(&request.output.format, losses);
    if request.output.verbosity.is_some() {
        losses.dropped(FieldLocation::Setting(Setting::Verbosity));
    }
    let prompt = Prompt {
        model: target.model,
        system: conversation.system,
        tools,
        tool_choice,
        thinking: plan.thinking,
        output_config: Config {
            effort: plan.effort,
            format,
        },
        messages: conversation.messages,
    };
    Ok((prompt, plan.max_tokens))
}

/// An image or sound as an answer is content that nobody else can give.
fn refuse_media(request: &Request<'_>) -> Result<(), ApiError> {
    let (what, setting) = match &request.output {
        output if output.images => ("images", Setting::Images),
        output if output.audio => ("sound", Setting::Audio),
        _ => return Ok(()),
    };
    let message = format!("the upstream of this model cannot answer with {what}");
    Err(ApiError::invalid(message).at_location(FieldLocation::Setting(setting)))
}

fn dice(
    sampling: &Sampling<'_>,
    target: &UpstreamTarget<'_>,
    thinks: bool,
    losses: &mut Losses,
) -> Dice {
    let capabilities = target.capabilities;
    let allowed = capabilities
        .messages_sampling
        .unwrap_or(capabilities.messages_version == MessagesVersion::First);
    // While it thinks, a model takes neither a temperature nor a limit on the choice of words.
    let free = allowed && !thinks;
    let mut kept = |setting, present: bool, allowed: bool| {
        if present && !allowed {
            losses.dropped(FieldLocation::Setting(setting));
        }
        present && allowed
    };
    let temperature = kept(Setting::Temperature, sampling.temperature.is_some(), free);
    let top_p = kept(Setting::TopP, sampling.top_p.is_some(), allowed);
    let top_k = kept(Setting::TopK, sampling.top_k.is_some(), free);
    let warmest = sampling.temperature.filter(|_| temperature);
    if warmest.is_some_and(|warmth| warmth > 1.0) {
        losses.approximated(FieldLocation::Setting(Setting::Temperature));
    }
    Dice {
        temperature: warmest.map(|warmth| warmth.min(1.0)),
        top_p: sampling.top_p.filter(|_| top_p),
        top_k: sampling.top_k.filter(|_| top_k),
    }
}

/// Sequences of nothing but white space are refused.
fn stop<'a>(sampling: &'a Sampling<'_>, losses: &mut Losses) -> Vec<&'a str> {
    let stop = sampling.stop.iter().map(|text| &**text);
    let (kept, blank): (Vec<_>, Vec<_>) = stop.partition(|text| !text.trim().is_empty());
    if !blank.is_empty() {
        losses.dropped(FieldLocation::Setting(Setting::Stop));
    }
    kept
}

fn metadata<'a>(labels: &'a Labels<'_>, losses: &mut Losses) -> Option<Metadata<'a>> {
    for (setting, present) in [
        (Setting::Metadata, labels.metadata.is_some()),
        (Setting::CacheKey, labels.cache_key.is_some()),
    ] {
        if present {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
    let user_id = labels.user.as_deref()?;
    Some(Metadata { user_id })
}

fn tier(labels: &Labels<'_>, losses: &mut Losses) -> Option<&'static str> {
    Some(match labels.service_tier.as_deref()? {
        "auto" => "auto",
        "default" => "standard_only",
        _ => {
            losses.approximated(FieldLocation::Setting(Setting::ServiceTier));
            "auto"
        }
    })
}

/// Settings that the format has no word for.
fn drop_settings(sampling: &Sampling<'_>, losses: &mut Losses) {
    for (setting, present) in [
        (Setting::Seed, sampling.seed.is_some()),
        (
            Setting::PresencePenalty,
            sampling.presence_penalty.is_some(),
        ),
        (
            Setting::FrequencyPenalty,
            sampling.frequency_penalty.is_some(),
        ),
        (Setting::Choices, sampling.choices.is_some_and(|n| n > 1)),
        (Setting::Logprobs, sampling.logprobs),
    ] {
        if present {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
}
