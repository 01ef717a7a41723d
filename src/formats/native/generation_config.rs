//! How the reply is to be made, as an upstream of this format takes it.

use serde::Serialize;

use super::image_config::{self, ImageConfig};
use super::schema_encoder::{self, Written, report};
use crate::formats::{Capabilities, ThinkingStyle};
use crate::model::{
    Depth, Detail, Effort, FieldLocation, Json, Losses, OutputFormat, Part, PartField, PartKind,
    Request, Sampling, Setting, Text, Thinking, Turn,
};

#[derive(Serialize, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [Text<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_count: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    response_logprobs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    response_modalities: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_config: Option<ImageConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_resolution: Option<&'static str>,
}

#[derive(Serialize, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
}

const MOST_STOPS: usize = 5;

/// `None`: the client asked for nothing in particular.
pub(super) fn write<'a>(
    request: &'a Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<GenerationConfig<'a>> {
    let mut config = write_sampling(&request.sampling, losses);
    write_shape(&request.output.format, &mut config, losses);
    if request.output.images || request.output.audio {
        config.response_modalities.push("TEXT");
    }
    if request.output.images {
        config.response_modalities.push("IMAGE");
    }
    if request.output.audio {
        config.response_modalities.push("AUDIO");
    }
    if request.output.verbosity.is_some() {
        losses.dropped(FieldLocation::Setting(Setting::Verbosity));
    }
    config.thinking_config = write_thinking(request.thinking, capabilities, losses);
    config.image_config = image_config::write(&request.output.image_options, losses);
    config.media_resolution = write_resolution(&request.turns, losses);
    (config != GenerationConfig::default()).then_some(config)
}

fn write_sampling<'a>(sampling: &'a Sampling<'_>, losses: &mut Losses) -> GenerationConfig<'a> {
    let stop = &sampling.stop[..];
    if stop.len() > MOST_STOPS {
        losses.approximated(FieldLocation::Setting(Setting::Stop));
    }
    // Here an answer is at least one token long.
    if sampling.max_tokens == Some(0) {
        losses.approximated(FieldLocation::Setting(Setting::MaxTokens));
    }
    let mut count = |number: Option<u64>, setting| {
        let number = number?;
        whole(i64::try_from(number).unwrap_or(i64::MAX), setting, losses).into()
    };
    let max_output_tokens: Option<i32> = count(sampling.max_tokens, Setting::MaxTokens);
    let top_k = count(sampling.top_k, Setting::TopK);
    // A limit of nothing, which only warms a cache elsewhere, is none here.
    let max_output_tokens = max_output_tokens.map(|limit| {
        if limit < 1 {
            losses.approximated(FieldLocation::Setting(Setting::MaxTokens));
        }
        limit.max(1)
    });
    GenerationConfig {
        max_output_tokens,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k,
        seed: sampling.seed.map(|seed| whole(seed, Setting::Seed, losses)),
        presence_penalty: sampling.presence_penalty,
        frequency_penalty: sampling.frequency_penalty,
        stop_sequences: &stop[..stop.len().min(MOST_STOPS)],
        candidate_count: sampling.choices,
        response_logprobs: sampling.logprobs,
        logprobs: sampling.top_logprobs.filter(|_| sampling.logprobs),
        ..GenerationConfig::default()
    }
}

/// Whole numbers have 32 bits here.
fn whole(number: i64, setting: Setting, losses: &mut Losses) -> i32 {
    i32::try_from(number).unwrap_or_else(|_| {
        losses.approximated(FieldLocation::Setting(setting));
        if number < 0 { i32::MIN } else { i32::MAX }
    })
}

fn write_shape<'a>(
    shape: &'a OutputFormat<'_>,
    config: &mut GenerationConfig<'a>,
    losses: &mut Losses,
) {
    const JSON: &str = "application/json";
    const ENUM: &str = "text/x.enum";
    let place = FieldLocation::Setting(Setting::OutputFormat);
    let (kind, schema) = match shape {
        OutputFormat::Text => return,
        OutputFormat::Json => (JSON, None),
        OutputFormat::Schema {
            name,
            description,
            schema,
            ..
        } => {
            if name.is_some() {
                losses.dropped(FieldLocation::Setting(Setting::OutputName));
            }
            if description.is_some() {
                losses.dropped(FieldLocation::Setting(Setting::OutputDescription));
            }
            (JSON, Some(schema))
        }
        OutputFormat::Enum(schema) => (ENUM, Some(schema)),
    };
    config.response_mime_type = Some(kind);
    match schema.map(schema_encoder::write) {
        None => {}
        Some(Written::Plain { schema, exact }) => {
            config.response_json_schema = Some(schema);
            report(exact, place, losses);
        }
        Some(Written::Dialect { schema, exact }) => {
            config.response_schema = Some(schema);
            report(exact, place, losses);
        }
    }
}

fn write_thinking(
    thinking: Thinking,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<ThinkingConfig> {
    let mut config = ThinkingConfig {
        include_thoughts: thinking.show == Some(true),
        ..ThinkingConfig::default()
    };
    let asked = thinking.depth.unwrap_or(Depth::Dynamic);
    let depth = possible(asked, capabilities);
    let style = capabilities.native_thinking;
    let exact = match (depth, style) {
        (Depth::Dynamic, _) => true,
        (Depth::Off, _) => {
            let (budget, exact) = in_range(0, capabilities);
            config = ThinkingConfig {
                thinking_budget: Some(budget),
                ..ThinkingConfig::default()
            };
            exact
        }
        (Depth::Effort(effort), Some(ThinkingStyle::Budget)) => {
            let (budget, exact) = in_range(budget_of(effort), capabilities);
            config.thinking_budget = Some(budget);
            exact
        }
        (Depth::Effort(effort), _) => {
            config.thinking_level = Some(level_of(effort));
            effort <= Effort::High
        }
        (Depth::Budget(tokens), Some(ThinkingStyle::Words)) => {
            let effort = capabilities.nearest(effort_of(tokens));
            config.thinking_level = Some(level_of(effort));
            false
        }
        (Depth::Budget(tokens), _) => {
            let (budget, exact) = in_range(tokens, capabilities);
            config.thinking_budget = Some(budget);
            exact
        }
    };
    if !exact || depth != asked {
        losses.approximated(FieldLocation::Setting(Setting::Thinking));
    }
    (config != ThinkingConfig::default()).then_some(config)
}

/// What the model can be told of the depth that was asked for.
fn possible(asked: Depth, capabilities: &Capabilities) -> Depth {
    match asked {
        Depth::Effort(effort) => Depth::Effort(capabilities.nearest(effort)),
        Depth::Off if !capabilities.off_effort => {
            Depth::Effort(capabilities.nearest(Effort::Minimal))
        }
        other => other,
    }
}

/// The nearest budget that the model takes, and whether it is the one that was asked for.
fn in_range(tokens: u64, capabilities: &Capabilities) -> (u64, bool) {
    let (fewest, most) = capabilities.native_thinking_range.unwrap_or((0, u64::MAX));
    let budget = tokens.clamp(fewest, most);
    (budget, budget == tokens)
}

const fn level_of(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::ExtraHigh | Effort::Max => "HIGH",
    }
}

const fn budget_of(effort: Effort) -> u64 {
    match effort {
        Effort::Minimal => 512,
        Effort::Low => 1024,
        Effort::Medium => 8192,
        Effort::High => 24576,
        Effort::ExtraHigh | Effort::Max => 32768,
    }
}

const fn effort_of(tokens: u64) -> Effort {
    match tokens {
        0..=1024 => Effort::Low,
        1025..=8192 => Effort::Medium,
        _ => Effort::High,
    }
}

/// One for the whole request: what each image asks for counts only where all ask for the same.
fn write_resolution(turns: &[Turn<'_>], losses: &mut Losses) -> Option<&'static str> {
    let mut pictures = Vec::new();
    for turn in turns {
        for part in &turn.parts {
            pictures.extend(pictures_of(turn, part));
        }
    }
    let (first, _) = pictures.first()?;
    let agreed = pictures.iter().all(|(detail, _)| detail == first);
    let resolution = match first {
        Some(Detail::Low) if agreed => Some("MEDIA_RESOLUTION_LOW"),
        Some(Detail::High) if agreed => Some("MEDIA_RESOLUTION_HIGH"),
        _ => None,
    };
    for (detail, place) in pictures {
        match detail {
            None | Some(Detail::Auto) => {}
            Some(_) if resolution.is_some() => losses.approximated(place.field(PartField::Detail)),
            Some(_) => losses.dropped(place.field(PartField::Detail)),
        }
    }
    resolution
}

/// How closely each image is to be looked at, and where it stands.
fn pictures_of<'a>(
    turn: &Turn<'_>,
    part: &'a Part<'_>,
) -> impl Iterator<Item = (Option<Detail>, FieldLocation)> + use<'a> {
    let place = FieldLocation::Part {
        turn: turn.at,
        part: part.at,
    };
    let (inside, returned) = match &part.kind {
        PartKind::Result(result) => (&result.parts[..], true),
        _ => (std::slice::from_ref(part), false),
    };
    inside.iter().filter_map(move |part| match &part.kind {
        PartKind::Media(media) if media.mime.is_empty() || media.mime.starts_with("image/") => {
            let place = match returned {
                true => place.in_tool_result(part.at),
                false => place.clone(),
            };
            Some((media.detail, place))
        }
        _ => None,
    })
}
