//! How much to think, within the limit of the whole answer.

use serde::Serialize;

use crate::formats::{Capabilities, ThinkingStyle, UpstreamTarget};
use crate::model::{Depth, Effort, FieldLocation, Losses, Request, Setting};

/// What is sent where neither the client nor the configuration sets a limit.
const USUAL_LIMIT: u64 = 4096;
/// What must remain for the answer beside a budget for thoughts.
const LEAST_ANSWER: u64 = 1024;
/// The wire's own lower limit of a budget.
const LEAST_BUDGET: u64 = 1024;
/// For a model that is to decide itself but must be given a number.
const USUAL_BUDGET: u64 = 8192;

#[derive(Serialize, Clone, Copy)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Enabled {
        budget_tokens: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Disabled,
}

impl Thinking {
    pub(super) const fn is_on(self) -> bool {
        !matches!(self, Thinking::Disabled)
    }
}

pub(super) struct Plan {
    pub(super) thinking: Option<Thinking>,
    pub(super) effort: Option<&'static str>,
    pub(super) max_tokens: u64,
}

/// `forced`: the model must call a tool. `unproven`: the turn that called the tools whose results
/// come now has lost its thoughts.
pub(super) fn plan(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    forced: bool,
    unproven: bool,
    losses: &mut Losses,
) -> Plan {
    let known_limit = request.sampling.max_tokens.or(target.max_output_tokens);
    let (mut thinking, effort) = match target.capabilities.messages_thinking {
        ThinkingStyle::Words => in_words(request, target.capabilities, losses),
        ThinkingStyle::Budget => (in_tokens(request, known_limit, losses), None),
    };
    let refused = match thinking {
        Some(Thinking::Adaptive { .. }) => forced,
        Some(Thinking::Enabled { .. }) => forced || unproven,
        Some(Thinking::Disabled) | None => false,
    };
    if refused {
        losses.dropped(FieldLocation::Setting(Setting::Thinking));
        // A model that cannot but think is told nothing.
        thinking = target.capabilities.off_effort.then_some(Thinking::Disabled);
    }
    let needed = match thinking {
        Some(Thinking::Enabled { budget_tokens, .. }) => budget_tokens.saturating_add(USUAL_LIMIT),
        _ => USUAL_LIMIT,
    };
    Plan {
        thinking,
        effort,
        max_tokens: known_limit.unwrap_or(needed),
    }
}

fn display(request: &Request<'_>) -> Option<&'static str> {
    request
        .thinking
        .show
        .map(|show| if show { "summarized" } else { "omitted" })
}

fn in_words(
    request: &Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> (Option<Thinking>, Option<&'static str>) {
    let adaptive = Some(Thinking::Adaptive {
        display: display(request),
    });
    let wanted = match request.thinking.depth {
        // To show thoughts is to have some.
        None if request.thinking.show == Some(true) => return (adaptive, None),
        None => return (None, None),
        Some(Depth::Dynamic) => return (adaptive, None),
        Some(Depth::Off) if capabilities.off_effort => return (Some(Thinking::Disabled), None),
        Some(Depth::Off) => {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
            Effort::Low
        }
        // The least that the format has a word for.
        Some(Depth::Effort(Effort::Minimal)) => Effort::Low,
        Some(Depth::Effort(effort)) => effort,
        Some(Depth::Budget(tokens)) => {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
            effort_of(tokens)
        }
    };
    let taken = capabilities.nearest(wanted);
    if taken != wanted {
        losses.approximated(FieldLocation::Setting(Setting::Thinking));
    }
    (adaptive, Some(word(taken)))
}

const fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::ExtraHigh => "xhigh",
        Effort::Max => "max",
    }
}

const fn effort_of(tokens: u64) -> Effort {
    match tokens {
        0..=1024 => Effort::Low,
        1025..=8192 => Effort::Medium,
        _ => Effort::High,
    }
}

const fn budget_of(effort: Effort) -> u64 {
    match effort {
        Effort::Minimal | Effort::Low => 1024,
        Effort::Medium => 8192,
        Effort::High => 24_576,
        Effort::ExtraHigh | Effort::Max => 32_768,
    }
}

fn in_tokens(request: &Request<'_>, limit: Option<u64>, losses: &mut Losses) -> Option<Thinking> {
    let place = || FieldLocation::Setting(Setting::Thinking);
    let wanted = match request.thinking.depth {
        None if request.thinking.show == Some(true) => {
            losses.dropped(place());
            return None;
        }
        None => return None,
        Some(Depth::Off) => return Some(Thinking::Disabled),
        Some(Depth::Effort(effort)) => budget_of(effort),
        Some(Depth::Budget(tokens)) => tokens,
        Some(Depth::Dynamic) => {
            losses.approximated(place());
            USUAL_BUDGET
        }
    };
    let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(LEAST_ANSWER));
    if room < LEAST_BUDGET {
        losses.dropped(place());
        return Some(Thinking::Disabled);
    }
    let budget_tokens = wanted.clamp(LEAST_BUDGET, room);
    if budget_tokens != wanted {
        losses.approximated(place());
    }
    Some(Thinking::Enabled {
        budget_tokens,
        display: display(request),
    })
}
