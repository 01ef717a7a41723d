//! `generationConfig.thinkingConfig`: how much the model thinks and whether it shows its thoughts.

use serde::Serialize;

use super::enum_values::THINKING_LEVELS;
use super::field_names;
use crate::formats::{Capabilities, ThinkingStyle};
use crate::json::{Fields, Node};
use crate::model::{ApiError, Depth, Effort, FieldLocation, Losses, Setting, Thinking};

/// Decodes `thinkingConfig`.
pub(super) fn decode_thinking_config(
    mut fields: Fields<'_, '_>,
    losses: &mut Losses,
) -> Result<Thinking, ApiError> {
    let show = field_names::take(&mut fields, field_names::INCLUDE_THOUGHTS);
    let show = show.map(Node::bool).transpose()?;
    let budget = field_names::take(&mut fields, field_names::THINKING_BUDGET);
    let budget = budget.map(Node::i64).transpose()?;
    let level = field_names::take_enum(&mut fields, field_names::THINKING_LEVEL, THINKING_LEVELS);
    fields.finish(losses);
    let depth = match (budget, level) {
        (Some(-1), _) => Some(Depth::Dynamic),
        (Some(0), _) => Some(Depth::Off),
        (Some(tokens), _) => Some(Depth::Budget(tokens.unsigned_abs())),
        (None, Some("MINIMAL")) => Some(Depth::Effort(Effort::Minimal)),
        (None, Some("LOW")) => Some(Depth::Effort(Effort::Low)),
        (None, Some("MEDIUM")) => Some(Depth::Effort(Effort::Medium)),
        (None, Some(_)) => Some(Depth::Effort(Effort::High)),
        (None, None) => None,
    };
    Ok(Thinking { depth, show })
}

/// The `thinkingConfig` of a request to an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    thinking_budget: Option<u64>,
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
}

/// Encodes the depth of thinking that is nearest to the requested one among those the model takes.
pub(super) fn encode_thinking_config(
    thinking: Thinking,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<ThinkingConfig> {
    let mut config = ThinkingConfig {
        include_thoughts: thinking.show == Some(true),
        ..ThinkingConfig::default()
    };
    let requested = thinking.depth.unwrap_or(Depth::Dynamic);
    let depth = supported_depth(requested, capabilities);
    let style = capabilities.native_thinking;
    let exact = match (depth, style) {
        (Depth::Dynamic, _) => true,
        (Depth::Off, _) => {
            let (budget, exact) = clamp_budget(0, capabilities);
            config = ThinkingConfig {
                thinking_budget: Some(budget),
                ..ThinkingConfig::default()
            };
            exact
        }
        (Depth::Effort(effort), Some(ThinkingStyle::Budget)) => {
            let (budget, exact) = clamp_budget(effort.budget(), capabilities);
            config.thinking_budget = Some(budget);
            exact
        }
        (Depth::Effort(effort), _) => {
            config.thinking_level = Some(level_for(effort));
            effort <= Effort::High
        }
        (Depth::Budget(tokens), Some(ThinkingStyle::Effort)) => {
            let effort = capabilities.nearest_effort(Effort::of_budget(tokens));
            config.thinking_level = Some(level_for(effort));
            false
        }
        (Depth::Budget(tokens), _) => {
            let (budget, exact) = clamp_budget(tokens, capabilities);
            config.thinking_budget = Some(budget);
            exact
        }
    };
    if !exact || depth != requested {
        losses.approximated(FieldLocation::Setting(Setting::Thinking));
    }
    (config != ThinkingConfig::default()).then_some(config)
}

/// Finds the depth that the model supports in place of the requested one.
fn supported_depth(requested: Depth, capabilities: &Capabilities) -> Depth {
    match requested {
        Depth::Effort(effort) => Depth::Effort(capabilities.nearest_effort(effort)),
        Depth::Off if !capabilities.off_effort => {
            Depth::Effort(capabilities.nearest_effort(Effort::Minimal))
        }
        other => other,
    }
}

/// Clamps a budget to the range of the model and tells whether it stayed the same.
fn clamp_budget(tokens: u64, capabilities: &Capabilities) -> (u64, bool) {
    let (min, max) = capabilities.native_thinking_range.unwrap_or((0, u64::MAX));
    let budget = tokens.clamp(min, max);
    (budget, budget == tokens)
}

const fn level_for(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::ExtraHigh | Effort::Max => "HIGH",
    }
}
