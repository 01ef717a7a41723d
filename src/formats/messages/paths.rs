//! Where a client of this format wrote a thing.

use crate::model::{FieldLocation, PartField, Setting};

pub(super) fn path_of(place: &FieldLocation) -> String {
    match place {
        FieldLocation::Path(path) => path.to_string(),
        FieldLocation::Setting(setting) => word(*setting).to_owned(),
        FieldLocation::Turn { turn } => turn_path(*turn),
        FieldLocation::Part { turn, part: None } => match turn {
            Some(_) => format!("{}.content", turn_path(*turn)),
            None => turn_path(None),
        },
        FieldLocation::Part {
            turn: Some(turn),
            part: Some(part),
        } => format!("messages[{turn}].content[{part}]"),
        FieldLocation::Part {
            turn: None,
            part: Some(part),
        } => format!("system[{part}]"),
        FieldLocation::InToolResult { turn, part, inner } => {
            let result = path_of(&FieldLocation::Part {
                turn: *turn,
                part: *part,
            });
            inner.map_or_else(
                || result.clone(),
                |inner| format!("{result}.content[{inner}]"),
            )
        }
        FieldLocation::Field { of, field } => path_of(of) + field_of(*field),
        FieldLocation::Tool { tool } => format!("tools[{tool}]"),
        FieldLocation::ToolStrict { tool } => format!("tools[{tool}].strict"),
    }
}

const fn field_of(field: PartField) -> &'static str {
    match field {
        PartField::FileName | PartField::UrlName => ".title",
        PartField::Failure => ".is_error",
        // No client of this format can say these.
        PartField::Detail | PartField::CallSignature => "",
    }
}

fn turn_path(turn: Option<u32>) -> String {
    turn.map_or_else(|| "system".to_owned(), |turn| format!("messages[{turn}]"))
}

/// Some of these a client of this format cannot say at all; they keep their usual names.
const fn word(setting: Setting) -> &'static str {
    match setting {
        Setting::MaxTokens => "max_tokens",
        Setting::Temperature => "temperature",
        Setting::TopP => "top_p",
        Setting::TopK => "top_k",
        Setting::Seed => "seed",
        Setting::Stop => "stop_sequences",
        Setting::PresencePenalty => "presence_penalty",
        Setting::FrequencyPenalty => "frequency_penalty",
        Setting::Choices => "n",
        Setting::Logprobs => "logprobs",
        Setting::Thinking => "thinking",
        Setting::ToolChoice => "tool_choice",
        Setting::ParallelTools => "tool_choice.disable_parallel_tool_use",
        // A shape has no labels here.
        Setting::OutputFormat | Setting::OutputName | Setting::OutputDescription => {
            "output_config.format"
        }
        Setting::Verbosity => "verbosity",
        Setting::Search | Setting::CodeExecution => "tools",
        Setting::User => "metadata.user_id",
        Setting::CacheKey => "prompt_cache_key",
        Setting::ServiceTier => "service_tier",
        Setting::Metadata => "metadata",
        Setting::Images | Setting::Image(_) | Setting::Audio => "modalities",
    }
}
