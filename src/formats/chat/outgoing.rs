//! Requests to an upstream of this format.

use serde::Serialize;

use super::paths::refuse;
use super::shape_out::{self, ResponseFormat};
use super::tools_out::{self, Choice, Declared};
use super::turns_out::{self, Message};
use crate::formats::written::written;
use crate::formats::{Capabilities, UpstreamTarget};
use crate::model::{
    ApiError, Depth, Effort, FieldLocation, Json, Losses, Output, Request, Sampling, Search,
    Setting, Text, Thinking,
};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Declared<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(flatten)]
    sampling: Settings<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modalities: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<Voice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    web_search_options: Option<SearchOptions<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

/// The format insists on both.
#[derive(Serialize)]
struct Voice {
    voice: &'static str,
    format: &'static str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Default, Serialize)]
struct Settings<'a> {
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

#[derive(Serialize)]
struct SearchOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    search_context_size: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_location: Option<Location<'a>>,
}

#[derive(Serialize)]
struct Location<'a> {
    r#type: &'static str,
    approximate: Approximate<'a>,
}

#[derive(Serialize)]
struct Approximate<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a str>,
}

pub(super) fn encode(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    if request.code_execution {
        let place = FieldLocation::Setting(Setting::CodeExecution);
        return Err(refuse(&place, "it runs no code"));
    }
    let capabilities = target.capabilities;
    let labels = &request.labels;
    let body = Body {
        model: target.model,
        messages: turns_out::encode(request, target, losses)?,
        tools: request
            .tools
            .iter()
            .map(|tool| tools_out::encode(tool, losses))
            .collect(),
        tool_choice: tools_out::encode_choice(request, losses),
        parallel_tool_calls: one_call_at_a_time(request, capabilities, losses),
        response_format: shape_out::encode(&request.output.format, losses),
        sampling: encode_sampling(&request.sampling, capabilities, losses),
        reasoning_effort: encode_thinking(request.thinking, capabilities, losses),
        verbosity: request.output.verbosity.as_deref(),
        modalities: encode_modalities(&request.output, losses),
        audio: request
            .output
            .audio
            .then(|| encode_voice(target.stream, losses)),
        web_search_options: request
            .search
            .as_ref()
            .map(|search| encode_search(search, losses)),
        service_tier: labels
            .service_tier
            .as_deref()
            .map(|tier| encode_tier(tier, losses)),
        metadata: labels.metadata.as_ref(),
        user: labels.user.as_deref(),
        prompt_cache_key: labels.cache_key.as_deref(),
        stream: target.stream.then_some(true),
        // Without it no tokens could be counted.
        stream_options: target.stream.then_some(StreamOptions {
            include_usage: true,
        }),
    };
    Ok(written(&body, request.size()))
}

/// Images are no official answer of this format, sound is.
fn encode_modalities(output: &Output<'_>, losses: &mut Losses) -> Option<Vec<&'static str>> {
    output.image_options.drop_all(losses);
    if !output.images && !output.audio {
        return None;
    }
    let mut modalities = vec!["text"];
    if output.images {
        losses.approximated(FieldLocation::Setting(Setting::Images));
        modalities.push("image");
    }
    if output.audio {
        modalities.push("audio");
    }
    Some(modalities)
}

/// Only raw samples come in pieces.
fn encode_voice(stream: bool, losses: &mut Losses) -> Voice {
    losses.added(FieldLocation::Setting(Setting::Audio));
    Voice {
        voice: "alloy",
        format: if stream { "pcm16" } else { "wav" },
    }
}

/// `Some(false)` or nothing: many calls at a time are what happens unasked.
fn one_call_at_a_time(
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

fn encode_sampling<'a>(
    sampling: &'a Sampling<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Settings<'a> {
    const MOST_STOPS: usize = 4;
    let max_tokens = sampling
        .max_tokens
        .map(|tokens| within(tokens, 1..=u64::from(u32::MAX), Setting::MaxTokens, losses));
    let choices = sampling
        .choices
        .map(|count| within(count, 1..=128, Setting::Choices, losses));
    if sampling.top_k.is_some() {
        losses.dropped(FieldLocation::Setting(Setting::TopK));
    }
    let mut settings = Settings {
        n: choices,
        seed: sampling.seed,
        logprobs: sampling.logprobs.then_some(true),
        top_logprobs: sampling.top_logprobs.filter(|_| sampling.logprobs),
        ..Settings::default()
    };
    if capabilities.chat_old_max_field {
        settings.max_tokens = max_tokens;
    } else {
        settings.max_completion_tokens = max_tokens;
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
        return settings;
    }
    settings.temperature = sampling.temperature;
    settings.top_p = sampling.top_p;
    settings.presence_penalty = sampling.presence_penalty;
    settings.frequency_penalty = sampling.frequency_penalty;
    settings.stop = &sampling.stop;
    if let Some(first) = sampling.stop.get(..MOST_STOPS)
        && sampling.stop.len() > MOST_STOPS
    {
        losses.approximated(FieldLocation::Setting(Setting::Stop));
        settings.stop = first;
    }
    settings
}

/// The nearest value that the format takes.
fn within<N: Ord + Copy>(
    number: N,
    range: std::ops::RangeInclusive<N>,
    setting: Setting,
    losses: &mut Losses,
) -> N {
    let taken = number.clamp(*range.start(), *range.end());
    if taken != number {
        losses.approximated(FieldLocation::Setting(setting));
    }
    taken
}

fn encode_thinking(
    thinking: Thinking,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<&'static str> {
    const THINKING: FieldLocation = FieldLocation::Setting(Setting::Thinking);
    let known = capabilities.efforts.as_deref();
    let wanted = match thinking.depth {
        None | Some(Depth::Dynamic) => None,
        Some(Depth::Off) if capabilities.off_effort => Some(Wanted::Off),
        Some(Depth::Off) => Some(Wanted::Effort(Effort::Minimal, false)),
        Some(Depth::Effort(effort)) => Some(Wanted::Effort(effort, true)),
        Some(Depth::Budget(tokens)) => Some(Wanted::Effort(effort_of(tokens), false)),
    };
    let word = match wanted {
        None => None,
        Some(Wanted::Off) => Some("none"),
        Some(Wanted::Effort(..)) if known == Some(&[]) => {
            losses.dropped(THINKING);
            return None;
        }
        Some(Wanted::Effort(effort, is_exact)) => {
            let nearest = capabilities.nearest(effort);
            if !is_exact || nearest != effort {
                losses.approximated(THINKING);
                return Some(word_of(nearest));
            }
            Some(word_of(nearest))
        }
    };
    // Whether thoughts are shown is not the client's to say here.
    if thinking.show == Some(true) {
        losses.dropped(THINKING);
    }
    word
}

enum Wanted {
    Off,
    /// Whether the client said it in these words.
    Effort(Effort, bool),
}

const fn effort_of(budget: u64) -> Effort {
    match budget {
        0..=1024 => Effort::Low,
        1025..=8192 => Effort::Medium,
        _ => Effort::High,
    }
}

const fn word_of(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::ExtraHigh => "xhigh",
        Effort::Max => "max",
    }
}

fn encode_search<'a>(search: &'a Search<'_>, losses: &mut Losses) -> SearchOptions<'a> {
    if !search.allowed_domains.is_empty() {
        losses.dropped(FieldLocation::Setting(Setting::Search));
    }
    let place = Approximate {
        city: search.city.as_deref(),
        country: search.country.as_deref(),
        region: search.region.as_deref(),
        timezone: search.timezone.as_deref(),
    };
    let is_told = [place.city, place.country, place.region, place.timezone]
        .iter()
        .any(Option::is_some);
    SearchOptions {
        search_context_size: search.context_size.as_deref(),
        user_location: is_told.then_some(Location {
            r#type: "approximate",
            approximate: place,
        }),
    }
}

/// The one tier that only responses has is a faster `fast`.
fn encode_tier<'a>(tier: &'a str, losses: &mut Losses) -> &'a str {
    if tier == "ultrafast" {
        losses.approximated(FieldLocation::Setting(Setting::ServiceTier));
        return "fast";
    }
    tier
}
