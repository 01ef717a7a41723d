//! Requests to an upstream of this format.

use serde::Serialize;

use super::contents::{self, Content, SystemText};
use super::generation_config::{self, GenerationConfig};
use super::tools_out::{self, ToolConfig, ToolEntry};
use crate::formats::UpstreamTarget;
use crate::formats::written::written;
use crate::model::{ApiError, FieldLocation, Labels, Losses, PartField, Request, Setting};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemInstruction<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'static str>,
}

impl Body<'_> {
    /// Whether there is nothing but the conversation.
    pub(super) fn is_bare(&self) -> bool {
        self.system_instruction.is_none()
            && self.tools.is_empty()
            && self.tool_config.is_none()
            && self.generation_config.is_none()
            && self.service_tier.is_none()
    }
}

#[derive(Serialize)]
struct SystemInstruction<'a> {
    parts: Vec<SystemText<'a>>,
}

pub(super) fn encode(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    let body = body(request, target, losses)?;
    Ok(written(&body, request.size()))
}

pub(super) fn body<'a>(
    request: &'a Request<'_>,
    target: &UpstreamTarget<'a>,
    losses: &mut Losses,
) -> Result<Body<'a>, ApiError> {
    if request.output.images && !target.capabilities.native_image_output {
        let message = "the upstream of this model cannot answer with images";
        return Err(ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Images)));
    }
    let conversation = contents::write(&request.turns, target.capabilities, losses)?;
    let (tools, tool_config) = tools_out::write(request, target.brand, losses);
    let system = conversation.system;
    Ok(Body {
        system_instruction: (!system.is_empty()).then_some(SystemInstruction { parts: system }),
        contents: conversation.contents,
        tools,
        tool_config,
        generation_config: generation_config::write(request, target.capabilities, losses),
        service_tier: write_labels(&request.labels, losses),
    })
}

/// The service tier; nothing else that a request says of itself has a place here.
fn write_labels(labels: &Labels<'_>, losses: &mut Losses) -> Option<&'static str> {
    for (given, setting) in [
        (labels.user.is_some(), Setting::User),
        (labels.cache_key.is_some(), Setting::CacheKey),
        (labels.metadata.is_some(), Setting::Metadata),
    ] {
        if given {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
    match labels.service_tier.as_deref()? {
        "auto" => None,
        "default" => Some("standard"),
        "flex" => Some("flex"),
        "priority" => Some("priority"),
        _ => {
            losses.dropped(FieldLocation::Setting(Setting::ServiceTier));
            None
        }
    }
}

pub(super) fn path_of(place: &FieldLocation) -> String {
    let content = |turn: Option<u32>| match turn {
        Some(turn) => format!("contents[{turn}]"),
        None => "systemInstruction".to_owned(),
    };
    match place {
        FieldLocation::Path(path) => path.clone().into_owned(),
        FieldLocation::Setting(setting) => setting_path(*setting).to_owned(),
        FieldLocation::Turn { turn } => content(*turn),
        FieldLocation::Part { turn, part: None } => content(*turn),
        FieldLocation::Part {
            turn,
            part: Some(part),
        } => format!("{}.parts[{part}]", content(*turn)),
        FieldLocation::InToolResult { turn, part, inner } => {
            let result = path_of(&FieldLocation::Part {
                turn: *turn,
                part: *part,
            });
            match inner {
                Some(inner) => format!("{result}.functionResponse.parts[{inner}]"),
                None => result,
            }
        }
        FieldLocation::Field { of, field } => path_of(of) + field_of(*field),
        // No client of this format can say the latter.
        FieldLocation::Tool { tool } | FieldLocation::ToolStrict { tool } => {
            let (tool, declaration) = (tool >> 16, tool & 0xffff);
            format!("tools[{tool}].functionDeclarations[{declaration}]")
        }
    }
}

const fn field_of(field: PartField) -> &'static str {
    match field {
        PartField::FileName => ".inlineData.displayName",
        PartField::UrlName => ".fileData.displayName",
        PartField::Failure => ".functionResponse.response.error",
        PartField::CallSignature => ".thoughtSignature",
        // No client of this format can say it.
        PartField::Detail => "",
    }
}

/// Those that the format itself lacks get a word all the same: it may have to be said of others.
const fn setting_path(setting: Setting) -> &'static str {
    match setting {
        Setting::MaxTokens => "generationConfig.maxOutputTokens",
        Setting::Temperature => "generationConfig.temperature",
        Setting::TopP => "generationConfig.topP",
        Setting::TopK => "generationConfig.topK",
        Setting::Seed => "generationConfig.seed",
        Setting::Stop => "generationConfig.stopSequences",
        Setting::PresencePenalty => "generationConfig.presencePenalty",
        Setting::FrequencyPenalty => "generationConfig.frequencyPenalty",
        Setting::Choices => "generationConfig.candidateCount",
        Setting::Logprobs => "generationConfig.responseLogprobs",
        Setting::Thinking => "generationConfig.thinkingConfig",
        Setting::ToolChoice => "toolConfig.functionCallingConfig",
        Setting::ParallelTools => "toolConfig",
        // A shape has no labels here.
        Setting::OutputFormat | Setting::OutputName | Setting::OutputDescription => {
            "generationConfig.responseSchema"
        }
        Setting::Image(_) => "generationConfig.imageConfig",
        Setting::Images | Setting::Audio => "generationConfig.responseModalities",
        Setting::Verbosity => "generationConfig",
        Setting::Search => "tools.googleSearch",
        Setting::CodeExecution => "tools.codeExecution",
        Setting::ServiceTier => "serviceTier",
        Setting::User => "user",
        Setting::CacheKey => "cachedContent",
        Setting::Metadata => "labels",
    }
}
