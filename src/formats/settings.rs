//! The settings of a request in every format: the field, its range, and what happens where a format has none.

use std::ops::RangeInclusive;

use self::SettingRule::{Dropped, Field, Integer, Number, Refused};
use crate::json::{Fields, Path};
use crate::model::{
    ApiError, Depth, FieldLocation, Format, ImageSetting, Losses, OutputFormat, Request, Setting,
};

const I32_MIN: i64 = i32::MIN as i64;
const I32_MAX: i64 = i32::MAX as i64;
const U32_MAX: i64 = u32::MAX as i64;

/// What a format does with a setting. The path names it in reports, also where the format has no field for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SettingRule {
    /// It has a field for it.
    Field(&'static str),
    /// It has a field for a number of this range. A client's number is refused outside of it, a translated one is moved
    /// to the nearest.
    Number(&'static str, f64, f64),
    /// The same, for integers.
    Integer(&'static str, i64, i64),
    /// It has no field for it: the setting is dropped, and reported.
    Dropped(&'static str),
    /// It has no field for it, and the response would not be what the client asked for: the request is refused.
    Refused(&'static str),
}

impl Format {
    /// Returns what the format does with a setting.
    pub const fn setting(self, setting: Setting) -> SettingRule {
        use Format::{Chat, Images, Messages, Native, Responses};
        match setting {
            Setting::MaxTokens => match self {
                Chat => Integer("max_completion_tokens", 1, U32_MAX),
                Messages => Field("max_tokens"),
                Native => Integer("generationConfig.maxOutputTokens", 1, I32_MAX),
                Responses => Integer("max_output_tokens", 16, i64::MAX),
                Images => Dropped("max_tokens"),
            },
            Setting::Temperature => match self {
                Chat | Responses => Number("temperature", 0.0, 2.0),
                Messages => Number("temperature", 0.0, 1.0),
                Native => Number("generationConfig.temperature", 0.0, 2.0),
                Images => Dropped("temperature"),
            },
            Setting::TopP => match self {
                Chat | Messages | Responses => Number("top_p", 0.0, 1.0),
                Native => Number("generationConfig.topP", 0.0, 1.0),
                Images => Dropped("top_p"),
            },
            Setting::TopK => match self {
                Messages => Field("top_k"),
                Native => Integer("generationConfig.topK", 0, I32_MAX),
                Chat | Responses | Images => Dropped("top_k"),
            },
            Setting::Seed => match self {
                Chat => Field("seed"),
                Native => Integer("generationConfig.seed", I32_MIN, I32_MAX),
                Messages | Responses | Images => Dropped("seed"),
            },
            Setting::Stop => match self {
                Chat => Field("stop"),
                Messages => Field("stop_sequences"),
                Native => Field("generationConfig.stopSequences"),
                Responses | Images => Dropped("stop"),
            },
            Setting::PresencePenalty => match self {
                Chat => Number("presence_penalty", -2.0, 2.0),
                Native => Number("generationConfig.presencePenalty", -2.0, 2.0),
                Messages | Responses | Images => Dropped("presence_penalty"),
            },
            Setting::FrequencyPenalty => match self {
                Chat => Number("frequency_penalty", -2.0, 2.0),
                Native => Number("generationConfig.frequencyPenalty", -2.0, 2.0),
                Messages | Responses | Images => Dropped("frequency_penalty"),
            },
            Setting::Choices => match self {
                Chat => Integer("n", 1, 128),
                Native => Field("generationConfig.candidateCount"),
                Images => Field("n"),
                Messages | Responses => Dropped("n"),
            },
            Setting::Logprobs => match self {
                Chat => Field("logprobs"),
                Native => Field("generationConfig.responseLogprobs"),
                Responses => Field("top_logprobs"),
                Messages | Images => Dropped("logprobs"),
            },
            Setting::Thinking => match self {
                Chat => Field("reasoning_effort"),
                Messages => Field("thinking"),
                Native => Field("generationConfig.thinkingConfig"),
                Responses => Field("reasoning"),
                Images => Dropped("thinking"),
            },
            Setting::ToolChoice => match self {
                Chat | Messages | Responses => Field("tool_choice"),
                Native => Field("toolConfig.functionCallingConfig"),
                Images => Dropped("tools"),
            },
            Setting::ParallelTools => match self {
                Chat | Responses => Field("parallel_tool_calls"),
                Messages => Field("tool_choice.disable_parallel_tool_use"),
                Native => Dropped("toolConfig"),
                Images => Dropped("tools"),
            },
            Setting::OutputFormat => match self {
                Chat => Field("response_format"),
                Messages => Field("output_config.format"),
                Native => Field("generationConfig.responseSchema"),
                Responses => Field("text.format"),
                Images => Dropped("output"),
            },
            Setting::OutputName => match self {
                Chat => Field("response_format.json_schema.name"),
                Responses => Field("text.format.name"),
                Messages => Dropped("output_config.format"),
                Native => Dropped("generationConfig.responseSchema"),
                Images => Dropped("output"),
            },
            Setting::OutputDescription => match self {
                Chat => Field("response_format.json_schema.description"),
                Responses => Field("text.format.description"),
                Messages => Dropped("output_config.format"),
                Native => Dropped("generationConfig.responseSchema"),
                Images => Dropped("output"),
            },
            Setting::Verbosity => match self {
                Chat => Field("verbosity"),
                Responses => Field("text.verbosity"),
                Messages => Dropped("verbosity"),
                Native => Dropped("generationConfig"),
                Images => Dropped("output"),
            },
            Setting::Search => match self {
                Chat => Field("web_search_options"),
                Messages | Responses => Field("tools"),
                Native => Field("tools.googleSearch"),
                Images => Dropped("tools"),
            },
            Setting::CodeExecution => match self {
                Messages | Responses => Field("tools"),
                Native => Field("tools.codeExecution"),
                Chat => Refused("tools"),
                Images => Dropped("tools"),
            },
            Setting::User => match self {
                Chat | Responses | Images => Field("user"),
                Messages => Field("metadata.user_id"),
                Native => Dropped("user"),
            },
            Setting::CacheKey => match self {
                Chat | Responses => Field("prompt_cache_key"),
                Messages | Images => Dropped("prompt_cache_key"),
                Native => Dropped("cachedContent"),
            },
            Setting::ServiceTier => match self {
                Chat | Messages | Responses => Field("service_tier"),
                Native => Field("serviceTier"),
                Images => Dropped("service_tier"),
            },
            Setting::Metadata => match self {
                Chat | Responses => Field("metadata"),
                Messages | Images => Dropped("metadata"),
                Native => Dropped("labels"),
            },
            Setting::Images => match self {
                Chat => Field("modalities"),
                Native => Field("generationConfig.responseModalities"),
                Responses => Field("tools"),
                // The model alone decides what a response is made of.
                Messages => Refused("model"),
                Images => Field("model"),
            },
            Setting::Image(setting) => match self {
                Chat => Dropped("modalities"),
                Messages => Dropped("model"),
                Native => Field("generationConfig.imageConfig"),
                Responses => Field("tools"),
                Images => Field(image_field(setting)),
            },
            Setting::Audio => match self {
                Chat => Field("modalities"),
                Native => Field("generationConfig.responseModalities"),
                Messages | Responses | Images => Refused("model"),
            },
        }
    }

    /// Returns the least output that upstreams of the format can be asked for.
    pub const fn min_output_tokens(self) -> u64 {
        match self.setting(Setting::MaxTokens) {
            Integer(_, min, _) => min.unsigned_abs(),
            _ => 1,
        }
    }

    /// Reports the settings of a request, of these, that the format has no field for.
    pub(super) fn report_dropped(
        self,
        settings: &[Setting],
        request: &Request<'_>,
        losses: &mut Losses,
    ) {
        let settings = settings.iter().copied();
        let dropped = settings.filter(|setting| matches!(self.setting(*setting), Dropped(_)));
        report_set(dropped, request, losses);
    }

    /// Moves a number to the nearest one that the format takes, and reports that.
    pub(super) fn fit_number(self, setting: Setting, number: f64, losses: &mut Losses) -> f64 {
        let Number(_, min, max) = self.setting(setting) else {
            return number;
        };
        if !(min..=max).contains(&number) {
            losses.approximated(FieldLocation::Setting(setting));
        }
        number.clamp(min, max)
    }

    /// Moves an integer to the nearest one that the format takes, and reports that.
    pub(super) fn fit_integer(self, setting: Setting, integer: i64, losses: &mut Losses) -> i64 {
        let Integer(_, min, max) = self.setting(setting) else {
            return integer;
        };
        if !(min..=max).contains(&integer) {
            losses.approximated(FieldLocation::Setting(setting));
        }
        integer.clamp(min, max)
    }

    /// The same for a number of things.
    pub(super) fn fit_count(self, setting: Setting, count: u64, losses: &mut Losses) -> u64 {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.fit_integer(setting, count, losses).unsigned_abs()
    }
}

const fn image_field(setting: ImageSetting) -> &'static str {
    match setting {
        ImageSetting::Size => "size",
        ImageSetting::Quality => "quality",
        ImageSetting::FileFormat => "output_format",
        ImageSetting::Compression => "output_compression",
        ImageSetting::Background => "background",
        ImageSetting::Moderation => "moderation",
        ImageSetting::Mask => "mask",
        ImageSetting::PartialImages => "partial_images",
    }
}

impl SettingRule {
    /// Returns the path that names the setting.
    pub const fn path(self) -> &'static str {
        match self {
            Field(path) | Number(path, ..) | Integer(path, ..) | Dropped(path) | Refused(path) => {
                path
            }
        }
    }

    /// Decodes a client's number. `Err`: it is outside of the range.
    pub(super) fn decode_number(
        self,
        fields: &mut Fields<'_, '_>,
    ) -> Result<Option<f64>, ApiError> {
        let number = fields.f64(self.path())?;
        match (self, number) {
            (Number(key, min, max), Some(number)) if !(min..=max).contains(&number) => {
                let expected = format!("a number from {min} to {max}");
                Err(Path::Key(&fields.path, key).wrong(&expected))
            }
            _ => Ok(number),
        }
    }

    /// Decodes a client's integer. `Err`: it is outside of the range.
    pub(super) fn decode_count(self, fields: &mut Fields<'_, '_>) -> Result<Option<u64>, ApiError> {
        self.decode_count_at(fields, self.path())
    }

    /// Decodes it from a field of another name.
    pub(super) fn decode_count_at(
        self,
        fields: &mut Fields<'_, '_>,
        key: &str,
    ) -> Result<Option<u64>, ApiError> {
        match self {
            Integer(_, min, max) => decode_count_in(fields, key, min..=max),
            _ => fields.u64(key),
        }
    }
}

/// Decodes a number of things that must be in a range.
pub(super) fn decode_count_in(
    fields: &mut Fields<'_, '_>,
    key: &str,
    range: RangeInclusive<i64>,
) -> Result<Option<u64>, ApiError> {
    let Some(count) = fields.i64(key)? else {
        return Ok(None);
    };
    if range.contains(&count) {
        return Ok(Some(count.unsigned_abs()));
    }
    let expected = match range.into_inner() {
        (min, i64::MAX) => format!("an integer of at least {min}"),
        (min, max) => format!("an integer from {min} to {max}"),
    };
    Err(Path::Key(&fields.path, key).wrong(&expected))
}

/// The range of `top_logprobs`.
pub(super) const TOP_LOGPROBS: RangeInclusive<i64> = 0..=20;

/// Limits and sampling.
pub(super) const SAMPLING: [Setting; 10] = [
    Setting::MaxTokens,
    Setting::Temperature,
    Setting::TopP,
    Setting::TopK,
    Setting::Seed,
    Setting::Stop,
    Setting::PresencePenalty,
    Setting::FrequencyPenalty,
    Setting::Choices,
    Setting::Logprobs,
];

/// What accompanies a request.
pub(super) const LABELS: [Setting; 4] = [
    Setting::User,
    Setting::CacheKey,
    Setting::ServiceTier,
    Setting::Metadata,
];

/// Reports as dropped those of the settings that a request has.
pub(super) fn report_set(
    settings: impl IntoIterator<Item = Setting>,
    request: &Request<'_>,
    losses: &mut Losses,
) {
    for setting in settings {
        if is_set(setting, request) {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
}

/// Tells whether a request has a setting that asks for something else than the default.
fn is_set(setting: Setting, request: &Request<'_>) -> bool {
    let (sampling, labels, output) = (&request.sampling, &request.labels, &request.output);
    match setting {
        Setting::MaxTokens => sampling.max_tokens.is_some(),
        Setting::Temperature => sampling.temperature.is_some(),
        Setting::TopP => sampling.top_p.is_some(),
        Setting::TopK => sampling.top_k.is_some(),
        Setting::Seed => sampling.seed.is_some(),
        Setting::Stop => !sampling.stop.is_empty(),
        Setting::PresencePenalty => sampling.presence_penalty.is_some(),
        Setting::FrequencyPenalty => sampling.frequency_penalty.is_some(),
        Setting::Choices => sampling.choices.is_some_and(|choices| choices > 1),
        Setting::Logprobs => sampling.logprobs,
        Setting::Thinking => !matches!(
            request.thinking.depth,
            None | Some(Depth::Off | Depth::Dynamic)
        ),
        Setting::ToolChoice => request.tool_choice.is_some(),
        Setting::ParallelTools => request.parallel_tools == Some(false),
        Setting::OutputFormat | Setting::OutputName | Setting::OutputDescription => {
            !matches!(output.format, OutputFormat::Text)
        }
        Setting::Verbosity => output.verbosity.is_some(),
        Setting::Search => request.search.is_some(),
        Setting::CodeExecution => request.code_execution,
        Setting::User => labels.user.is_some(),
        Setting::CacheKey => labels.cache_key.is_some(),
        Setting::ServiceTier => labels.service_tier.is_some(),
        Setting::Metadata => labels.metadata.is_some(),
        Setting::Images | Setting::Image(_) => output.images,
        Setting::Audio => output.audio,
    }
}
