//! The `thinking` setting and the effort, within the token limit of the whole response.

use serde::Serialize;

use crate::formats::{Capabilities, ThinkingStyle, UpstreamTarget};
use crate::json::{Fields, Path};
use crate::model::{ApiError, Depth, Effort, FieldLocation, Losses, Request, Setting, Thinking};

/// The format's lower limit of `budget_tokens`.
const MIN_BUDGET: u64 = 1024;
/// The lowest effort of the format.
const MIN_EFFORT: Effort = Effort::Low;
/// The tokens that must remain for the answer beside a thinking budget.
const MIN_ANSWER: u64 = 1024;
/// The `max_tokens` that is sent if neither the client nor the configuration sets one.
const DEFAULT_MAX_TOKENS: u64 = 4096;
/// The `budget_tokens` that is sent if the model shall decide itself but needs a number.
const DEFAULT_BUDGET: u64 = 8192;

/// Decodes `thinking`.
pub(super) fn decode_thinking(
    fields: &mut Fields<'_, '_>,
    losses: &mut Losses,
) -> Result<Thinking, ApiError> {
    let Some(node) = fields.node("thinking") else {
        return Ok(Thinking::default());
    };
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        let kind = fields.need("type", kind)?;
        let thinking = match kind.as_ref() {
            "adaptive" => Thinking {
                depth: Some(Depth::Dynamic),
                show: Some(decode_display(&mut fields)?),
            },
            "enabled" => Thinking {
                depth: Some(Depth::Budget(decode_budget(&mut fields)?)),
                show: Some(decode_display(&mut fields)?),
            },
            "disabled" => Thinking {
                depth: Some(Depth::Off),
                show: None,
            },
            "between_tools" => {
                losses.approximated(FieldLocation::Path(fields.path.to_string().into()));
                Thinking::default()
            }
            other => {
                let path = Path::Key(&fields.path, "type");
                let known = "adaptive, enabled, between_tools or disabled";
                return Err(path.wrong_text(known, other));
            }
        };
        fields.finish(losses);
        Ok(thinking)
    })
}

fn decode_budget(fields: &mut Fields<'_, '_>) -> Result<u64, ApiError> {
    let budget = fields.u64("budget_tokens")?;
    let budget = fields.need("budget_tokens", budget)?;
    if budget < MIN_BUDGET {
        let path = Path::Key(&fields.path, "budget_tokens");
        return Err(path.wrong(&format!(
            "an integer of at least {MIN_BUDGET}, got {budget}"
        )));
    }
    Ok(budget)
}

/// Decodes `display`; reasoning is shown by default.
fn decode_display(fields: &mut Fields<'_, '_>) -> Result<bool, ApiError> {
    match fields.text("display")?.as_deref() {
        None | Some("summarized") => Ok(true),
        Some("omitted") => Ok(false),
        Some(_) => Err(Path::Key(&fields.path, "display").wrong("summarized or omitted")),
    }
}

fn encode_display(request: &Request<'_>) -> Option<&'static str> {
    request
        .thinking
        .show
        .map(|show| if show { "summarized" } else { "omitted" })
}

/// Decodes `output_config.effort`.
pub(super) fn decode_effort(fields: &mut Fields<'_, '_>) -> Result<Option<Effort>, ApiError> {
    let Some(word) = fields.text("effort")? else {
        return Ok(None);
    };
    let effort = Effort::from_name(&word).filter(|effort| *effort >= MIN_EFFORT);
    let path = Path::Key(&fields.path, "effort");
    let wrong = || path.wrong_text("low, medium, high, xhigh or max", &word);
    effort.map(Some).ok_or_else(wrong)
}

/// The `thinking` of a request to an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Clone, Copy)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum MessagesThinking {
    Adaptive {
        display: Option<&'static str>,
    },
    Enabled {
        budget_tokens: u64,
        display: Option<&'static str>,
    },
    Disabled,
}

impl MessagesThinking {
    pub(super) const fn is_on(self) -> bool {
        !matches!(self, MessagesThinking::Disabled)
    }
}

/// The settings that decide how much a model thinks and answers.
pub(super) struct ThinkingPlan {
    pub(super) thinking: Option<MessagesThinking>,
    pub(super) effort: Option<&'static str>,
    pub(super) max_tokens: u64,
}

/// Encodes `thinking`, the effort and `max_tokens`. `forced`: the model must call a tool.
/// `unsigned`: the request ends with tool results, and the turn with their calls has lost its
/// signed reasoning.
pub(super) fn encode_thinking(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    forced: bool,
    unsigned: bool,
    losses: &mut Losses,
) -> ThinkingPlan {
    let known_limit = request.sampling.max_tokens.or(target.max_output_tokens);
    let (mut thinking, effort) = match target.capabilities.messages_thinking {
        ThinkingStyle::Effort => encode_as_effort(request, target.capabilities, losses),
        ThinkingStyle::Budget => (encode_as_budget(request, known_limit, losses), None),
    };
    let refused = match thinking {
        Some(MessagesThinking::Adaptive { .. }) => forced,
        Some(MessagesThinking::Enabled { .. }) => forced || unsigned,
        Some(MessagesThinking::Disabled) | None => false,
    };
    if refused {
        losses.dropped(FieldLocation::Setting(Setting::Thinking));
        // Models that always think refuse `disabled`, so they get no `thinking` at all.
        thinking = target
            .capabilities
            .off_effort
            .then_some(MessagesThinking::Disabled);
    }
    let needed = match thinking {
        Some(MessagesThinking::Enabled { budget_tokens, .. }) => {
            budget_tokens.saturating_add(DEFAULT_MAX_TOKENS)
        }
        _ => DEFAULT_MAX_TOKENS,
    };
    ThinkingPlan {
        thinking,
        effort,
        max_tokens: known_limit.unwrap_or(needed),
    }
}

/// Encodes the reasoning depth for models that take an effort.
fn encode_as_effort(
    request: &Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> (Option<MessagesThinking>, Option<&'static str>) {
    let adaptive = Some(MessagesThinking::Adaptive {
        display: encode_display(request),
    });
    let requested = match request.thinking.depth {
        // A client that wants to see reasoning needs a model that reasons.
        None if request.thinking.show == Some(true) => return (adaptive, None),
        None => return (None, None),
        Some(Depth::Dynamic) => return (adaptive, None),
        Some(Depth::Off) if capabilities.off_effort => {
            return (Some(MessagesThinking::Disabled), None);
        }
        Some(Depth::Off) => {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
            MIN_EFFORT
        }
        Some(Depth::Effort(effort)) => effort.max(MIN_EFFORT),
        Some(Depth::Budget(tokens)) => {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
            Effort::of_budget(tokens)
        }
    };
    let supported = capabilities.nearest_effort(requested);
    if supported != requested {
        losses.approximated(FieldLocation::Setting(Setting::Thinking));
    }
    (adaptive, Some(supported.max(MIN_EFFORT).name()))
}

/// Encodes the reasoning depth for models that take a token budget.
fn encode_as_budget(
    request: &Request<'_>,
    limit: Option<u64>,
    losses: &mut Losses,
) -> Option<MessagesThinking> {
    let location = || FieldLocation::Setting(Setting::Thinking);
    let requested = match request.thinking.depth {
        None if request.thinking.show == Some(true) => {
            losses.dropped(location());
            return None;
        }
        None => return None,
        Some(Depth::Off) => return Some(MessagesThinking::Disabled),
        Some(Depth::Effort(effort)) => effort.budget().max(MIN_BUDGET),
        Some(Depth::Budget(tokens)) => tokens,
        Some(Depth::Dynamic) => {
            losses.approximated(location());
            DEFAULT_BUDGET
        }
    };
    let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(MIN_ANSWER));
    if room < MIN_BUDGET {
        losses.dropped(location());
        return Some(MessagesThinking::Disabled);
    }
    let budget_tokens = requested.clamp(MIN_BUDGET, room);
    if budget_tokens != requested {
        losses.approximated(location());
    }
    Some(MessagesThinking::Enabled {
        budget_tokens,
        display: encode_display(request),
    })
}
