//! The paths of fields in a request, as they are named in errors and losses.

use super::Messages;
use crate::formats::FieldPaths;
use crate::model::{FieldLocation, PartField, Setting};

impl FieldPaths for Messages {
    fn path_of(&self, location: &FieldLocation) -> String {
        match location {
            FieldLocation::Path(path) => path.to_string(),
            FieldLocation::Setting(setting) => setting_path(*setting).to_owned(),
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
                let result = self.path_of(&FieldLocation::Part {
                    turn: *turn,
                    part: *part,
                });
                inner.map_or_else(
                    || result.clone(),
                    |inner| format!("{result}.content[{inner}]"),
                )
            }
            FieldLocation::Field { of, field } => self.path_of(of) + field_suffix(*field),
            FieldLocation::Tool { tool } => format!("tools[{tool}]"),
            FieldLocation::ToolStrict { tool } => format!("tools[{tool}].strict"),
        }
    }
}

const fn field_suffix(field: PartField) -> &'static str {
    match field {
        PartField::FileName | PartField::UrlName => ".title",
        PartField::Failure => ".is_error",
        // The format does not have these.
        PartField::Detail | PartField::CallSignature => "",
    }
}

fn turn_path(turn: Option<u32>) -> String {
    turn.map_or_else(|| "system".to_owned(), |turn| format!("messages[{turn}]"))
}

/// The path of a setting. Settings that the format does not have keep their usual names.
const fn setting_path(setting: Setting) -> &'static str {
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
        // The output format has neither a name nor a description.
        Setting::OutputFormat | Setting::OutputName | Setting::OutputDescription => {
            "output_config.format"
        }
        Setting::Verbosity => "verbosity",
        Setting::Search | Setting::CodeExecution => "tools",
        Setting::User => "metadata.user_id",
        Setting::CacheKey => "prompt_cache_key",
        Setting::ServiceTier => "service_tier",
        Setting::Metadata => "metadata",
        // The model alone decides what a response is made of.
        Setting::Images | Setting::Image(_) | Setting::Audio => "model",
    }
}
