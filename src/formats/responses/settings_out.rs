//! How much to think and what shape to answer in, for an upstream of this format.

use serde::Serialize;

use super::strict;
use crate::formats::Capabilities;
use crate::model::{
    Depth, Effort, FieldLocation, Json, Losses, Output, OutputFormat, Setting, Text, Thinking,
};

#[derive(Serialize)]
pub(super) struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

pub(super) fn reasoning(
    thinking: &Thinking,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<Reasoning> {
    let wanted = match thinking.depth {
        None | Some(Depth::Dynamic) => None,
        Some(Depth::Off) => Some(None),
        Some(Depth::Effort(effort)) => Some(Some(effort)),
        Some(Depth::Budget(tokens)) => {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
            Some(of_budget(tokens))
        }
    };
    let effort = wanted.map(|wanted| {
        let known = known_effort(wanted, capabilities);
        if known != wanted {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
        }
        known.map_or("none", word)
    });
    let shown = thinking.show == Some(true) && effort != Some("none");
    let summary = shown.then_some("auto");
    (effort.is_some() || summary.is_some()).then_some(Reasoning { effort, summary })
}

/// Whether thoughts may come that a later request has to send back.
pub(super) fn may_think(thinking: &Thinking, capabilities: &Capabilities, sealed: bool) -> bool {
    match thinking.depth {
        Some(Depth::Off | Depth::Budget(0)) => !capabilities.off_effort,
        Some(_) => true,
        None => sealed || thinking.show == Some(true),
    }
}

/// `None`: no thinking at all.
const fn of_budget(tokens: u64) -> Option<Effort> {
    match tokens {
        0 => None,
        1..=1024 => Some(Effort::Low),
        1025..=8192 => Some(Effort::Medium),
        _ => Some(Effort::High),
    }
}

fn known_effort(wanted: Option<Effort>, capabilities: &Capabilities) -> Option<Effort> {
    let known = capabilities.efforts.as_deref();
    match wanted {
        None if capabilities.off_effort => None,
        // The least there is.
        None => Some(capabilities.nearest(Effort::Minimal)),
        Some(_) if known == Some(&[]) => None,
        Some(effort) => Some(capabilities.nearest(effort)),
    }
}

const fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::ExtraHigh => "xhigh",
        Effort::Max => "max",
    }
}

#[derive(Serialize)]
pub(super) struct TextSettings<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'r str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'r> {
    JsonObject,
    JsonSchema {
        name: &'r str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'r str>,
        schema: &'r Json<'r>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// The format insists on a name.
const SCHEMA_NAME: &str = "response";

pub(super) fn text<'r>(output: &'r Output<'_>, losses: &mut Losses) -> Option<TextSettings<'r>> {
    let format = match &output.format {
        OutputFormat::Text => None,
        OutputFormat::Json => Some(Format::JsonObject),
        OutputFormat::Schema {
            name,
            description,
            schema,
            strict,
        } => {
            if name.is_none() {
                losses.added(FieldLocation::Setting(Setting::OutputFormat));
            }
            Some(Format::JsonSchema {
                name: name.as_deref().unwrap_or(SCHEMA_NAME),
                description: description.as_deref(),
                schema,
                strict: held_to(schema, *strict, name, losses),
            })
        }
        // The word comes back in quotes.
        OutputFormat::Enum(schema) => {
            losses.approximated(FieldLocation::Setting(Setting::OutputFormat));
            losses.added(FieldLocation::Setting(Setting::OutputFormat));
            Some(Format::JsonSchema {
                name: SCHEMA_NAME,
                description: None,
                schema,
                strict: Some(false),
            })
        }
    };
    let verbosity = output.verbosity.as_deref();
    (format.is_some() || verbosity.is_some()).then_some(TextSettings { format, verbosity })
}

/// Only a schema that meets the rules may be strict; formats that know no names know no switch.
fn held_to(
    schema: &Json<'_>,
    asked: Option<bool>,
    name: &Option<Text<'_>>,
    losses: &mut Losses,
) -> Option<bool> {
    match asked {
        Some(true) => {
            let fits = strict::fits(schema);
            if !fits {
                losses.approximated(FieldLocation::Setting(Setting::OutputFormat));
            }
            Some(fits)
        }
        None if name.is_none() => Some(strict::fits(schema)),
        asked => asked,
    }
}
