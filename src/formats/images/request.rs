//! Requests of clients of this format, in the neutral model.

use super::given::{self, Given};
use crate::formats::RequestHead;
use crate::model::{
    ApiError, FieldLocation, ImageOptions, ImageSetting, Labels, Losses, Output, Part, PartKind,
    Request, Role, Sampling, Setting, Turn,
};

pub(super) fn decode<'a>(
    head: &RequestHead<'_>,
    body: &'a [u8],
    losses: &mut Losses,
) -> Result<Request<'a>, ApiError> {
    let given = given::read(head, body, losses)?;
    if given.as_url {
        // Only upstreams of this format have a place to put a file.
        losses.dropped(FieldLocation::Path("response_format".into()));
    }
    Ok(request(given))
}

/// The prompt comes first, then the images that it speaks of.
fn request(given: Given<'_>) -> Request<'_> {
    let words = PartKind::Text(given.prompt);
    let pictures = given.pictures.into_iter();
    let pictures = pictures.map(|shot| PartKind::Media(shot.into_media()));
    let parts = (0..).zip(std::iter::once(words).chain(pictures));
    let parts = parts.map(|(at, kind)| Part { kind, at: Some(at) });
    Request {
        turns: vec![Turn {
            role: Role::User,
            parts: parts.collect(),
            at: Some(0),
        }],
        output: Output {
            images: true,
            image_options: ImageOptions {
                size: given.size,
                quality: given.quality,
                file_format: given.file,
                compression: given.compression,
                background: given.background,
                moderation: given.moderation,
                mask: given.mask.map(|shot| shot.into_media()),
                partial_images: given.drafts.filter(|count| *count > 0),
            },
            ..Output::default()
        },
        sampling: Sampling {
            // One is what comes unasked.
            choices: given
                .count
                .filter(|count| *count > 1)
                .map(|count| count as u32),
            seed: given.seed,
            ..Sampling::default()
        },
        labels: Labels {
            user: given.user,
            ..Labels::default()
        },
        ..Request::default()
    }
}

pub(super) fn path_of(place: &FieldLocation) -> String {
    match place {
        FieldLocation::Path(path) => path.clone().into_owned(),
        FieldLocation::Part {
            part: Some(part @ 1..),
            ..
        } => format!("image[{}]", part - 1),
        FieldLocation::Part { .. }
        | FieldLocation::Turn { .. }
        | FieldLocation::InToolResult { .. } => "prompt".to_owned(),
        FieldLocation::Field { of, .. } => path_of(of),
        FieldLocation::Tool { .. } | FieldLocation::ToolStrict { .. } => "tools".to_owned(),
        FieldLocation::Setting(setting) => setting_path(*setting).to_owned(),
    }
}

/// Those that the format itself lacks get a word all the same: it may have to be said of others.
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
        // What every request of this format asks for, so there is no word for it but the model's.
        Setting::Images | Setting::Audio => "model",
    }
}
