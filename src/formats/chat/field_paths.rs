//! The paths of request fields, as a client of this format writes them.

use super::Chat;
use crate::formats::FieldPaths;
use crate::model::{FieldLocation, Format, PartField, Setting};

impl FieldPaths for Chat {
    fn path_of(&self, location: &FieldLocation) -> String {
        match location {
            FieldLocation::Path(path) => path.clone().into_owned(),
            FieldLocation::Turns => "messages".to_owned(),
            FieldLocation::Setting(setting) => Format::Chat.setting(*setting).path().to_owned(),
            FieldLocation::Turn { turn: Some(turn) } => format!("messages[{turn}]"),
            FieldLocation::Part {
                turn: Some(turn),
                part: Some(part),
            } => format!("messages[{turn}].content[{part}]"),
            FieldLocation::Part {
                turn: Some(turn),
                part: None,
            } => format!("messages[{turn}]"),
            FieldLocation::Turn { turn: None } | FieldLocation::Part { turn: None, .. } => {
                "messages".to_owned()
            }
            FieldLocation::InToolResult { turn, inner, .. } => self.path_of(&FieldLocation::Part {
                turn: *turn,
                part: *inner,
            }),
            FieldLocation::Field { of, field } => self.path_of(of) + part_field_suffix(*field),
            FieldLocation::Tool { tool } => format!("tools[{tool}]"),
            FieldLocation::ToolStrict { tool } => format!("tools[{tool}].function.strict"),
        }
    }
}

/// The setting that a field of a request holds. `None`: the gateway sets the field itself.
pub(super) fn setting_of(name: &str) -> Option<Setting> {
    const SETTINGS: [Setting; 17] = [
        Setting::Temperature,
        Setting::TopP,
        Setting::Seed,
        Setting::Stop,
        Setting::PresencePenalty,
        Setting::FrequencyPenalty,
        Setting::Choices,
        Setting::Logprobs,
        Setting::Thinking,
        Setting::ToolChoice,
        Setting::ParallelTools,
        Setting::OutputFormat,
        Setting::Verbosity,
        Setting::Search,
        Setting::User,
        Setting::CacheKey,
        Setting::ServiceTier,
    ];
    match name {
        "max_tokens" | "max_completion_tokens" => Some(Setting::MaxTokens),
        "top_logprobs" => Some(Setting::Logprobs),
        "metadata" => Some(Setting::Metadata),
        "modalities" | "audio" => Some(Setting::Audio),
        _ => SETTINGS
            .into_iter()
            .find(|setting| Format::Chat.setting(*setting).path() == name),
    }
}

const fn part_field_suffix(field: PartField) -> &'static str {
    match field {
        PartField::Detail => ".image_url.detail",
        PartField::FileName | PartField::UrlName => ".file.filename",
        PartField::CallSignature => ".reasoning_details",
        // The format has no field for it.
        PartField::Failure => "",
    }
}
