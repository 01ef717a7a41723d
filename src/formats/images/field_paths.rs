//! The paths of fields in a request, as they are named in errors and losses.

use super::Images;
use crate::formats::FieldPaths;
use crate::model::{FieldLocation, ImageSetting, Setting};

impl FieldPaths for Images {
    fn path_of(&self, location: &FieldLocation) -> String {
        match location {
            FieldLocation::Path(path) => path.clone().into_owned(),
            FieldLocation::Part {
                part: Some(part @ 1..),
                ..
            } => format!("image[{}]", part - 1),
            FieldLocation::Part { .. }
            | FieldLocation::Turn { .. }
            | FieldLocation::InToolResult { .. } => "prompt".to_owned(),
            FieldLocation::Field { of, .. } => self.path_of(of),
            FieldLocation::Tool { .. } | FieldLocation::ToolStrict { .. } => "tools".to_owned(),
            FieldLocation::Setting(setting) => setting_path(*setting).to_owned(),
        }
    }
}

/// The path of a setting. Settings that the format does not have keep their usual names.
const fn setting_path(setting: Setting) -> &'static str {
    match setting {
        Setting::Choices => "n",
        Setting::Seed => "seed",
        Setting::User => "user",
        Setting::Image(setting) => match setting {
            ImageSetting::Size => "size",
            ImageSetting::Quality => "quality",
            ImageSetting::FileFormat => "output_format",
            ImageSetting::Compression => "output_compression",
            ImageSetting::Background => "background",
            ImageSetting::Moderation => "moderation",
            ImageSetting::Mask => "mask",
            ImageSetting::PartialImages => "partial_images",
        },
        Setting::MaxTokens => "max_tokens",
        Setting::Temperature => "temperature",
        Setting::TopP => "top_p",
        Setting::TopK => "top_k",
        Setting::Stop => "stop",
        Setting::PresencePenalty => "presence_penalty",
        Setting::FrequencyPenalty => "frequency_penalty",
        Setting::Logprobs => "logprobs",
        Setting::Thinking => "thinking",
        Setting::ToolChoice | Setting::ParallelTools | Setting::Search | Setting::CodeExecution => {
            "tools"
        }
        Setting::OutputFormat
        | Setting::OutputName
        | Setting::OutputDescription
        | Setting::Verbosity => "output",
        Setting::CacheKey => "prompt_cache_key",
        Setting::ServiceTier => "service_tier",
        Setting::Metadata => "metadata",
        // The format always answers with images, so the model is the field to change.
        Setting::Images | Setting::Audio => "model",
    }
}
