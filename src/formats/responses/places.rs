//! Where a client of this format wrote a thing.

use crate::model::{FieldLocation, PartField, Setting};

pub(super) fn path_of(place: &FieldLocation) -> String {
    match *place {
        FieldLocation::Path(ref path) => path.to_string(),
        FieldLocation::Setting(setting) => name_of(setting).to_owned(),
        FieldLocation::Part {
            turn: Some(turn),
            part: Some(part),
        } => format!("input[{turn}].content[{part}]"),
        FieldLocation::Turn { turn: Some(turn) }
        | FieldLocation::Part {
            turn: Some(turn), ..
        } => format!("input[{turn}]"),
        FieldLocation::Turn { turn: None } | FieldLocation::Part { turn: None, .. } => {
            "instructions".to_owned()
        }
        FieldLocation::InToolResult {
            turn: Some(turn),
            inner: Some(inner),
            ..
        } => format!("input[{turn}].output[{inner}]"),
        FieldLocation::InToolResult { turn, .. } => path_of(&FieldLocation::Turn { turn }),
        FieldLocation::Field { ref of, field } => path_of(of) + field_of(field),
        FieldLocation::Tool { tool } => format!("tools[{tool}]"),
        FieldLocation::ToolStrict { tool } => format!("tools[{tool}].strict"),
    }
}

const fn field_of(field: PartField) -> &'static str {
    match field {
        PartField::Detail => ".detail",
        PartField::FileName | PartField::UrlName => ".filename",
        // No client of this format can say these.
        PartField::Failure | PartField::CallSignature => "",
    }
}

/// Some of these a client of this format cannot write; they go by the name it would look for.
const fn name_of(setting: Setting) -> &'static str {
    match setting {
        Setting::MaxTokens => "max_output_tokens",
        Setting::Temperature => "temperature",
        Setting::TopP => "top_p",
        Setting::TopK => "top_k",
        Setting::Seed => "seed",
        Setting::Stop => "stop",
        Setting::PresencePenalty => "presence_penalty",
        Setting::FrequencyPenalty => "frequency_penalty",
        Setting::Choices => "n",
        Setting::Logprobs => "top_logprobs",
        Setting::Thinking => "reasoning",
        Setting::ToolChoice => "tool_choice",
        Setting::ParallelTools => "parallel_tool_calls",
        Setting::OutputFormat => "text.format",
        Setting::OutputName => "text.format.name",
        Setting::OutputDescription => "text.format.description",
        Setting::Verbosity => "text.verbosity",
        Setting::User => "user",
        Setting::CacheKey => "prompt_cache_key",
        Setting::ServiceTier => "service_tier",
        Setting::Metadata => "metadata",
        Setting::Audio => "modalities",
        // Each of them is a tool here.
        Setting::Search | Setting::CodeExecution | Setting::Images | Setting::Image(_) => "tools",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_in_the_words_of_the_format() {
        let part = |turn, part| path_of(&FieldLocation::Part { turn, part });
        assert_eq!(part(Some(3), Some(1)), "input[3].content[1]");
        assert_eq!(part(Some(3), None), "input[3]");
        assert_eq!(part(None, None), "instructions");
        assert_eq!(path_of(&FieldLocation::Turn { turn: Some(2) }), "input[2]");
        assert_eq!(path_of(&FieldLocation::Tool { tool: 1 }), "tools[1]");
        let strict = FieldLocation::ToolStrict { tool: 1 };
        assert_eq!(path_of(&strict), "tools[1].strict");
        assert_eq!(path_of(&FieldLocation::Path("store".into())), "store");
        let setting = FieldLocation::Setting(Setting::OutputFormat);
        assert_eq!(path_of(&setting), "text.format");
    }
}
