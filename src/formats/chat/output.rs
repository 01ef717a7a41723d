//! What a response is made of: `response_format`, `verbosity`, `modalities` and `audio`.

use serde::Serialize;

use super::reader::{object, one_of, required};
use crate::formats::output_schema::{OutputSchema, encode_output_schema};
use crate::json::Fields;
use crate::model::{
    ApiError, FieldLocation, ImageOptions, Losses, Output, OutputFormat, Setting, Text,
};

/// Decodes `response_format`, `verbosity` and `modalities`.
pub(super) fn decode_output<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Output<'a>, ApiError> {
    let format = match fields.node("response_format") {
        Some(node) => node.fields(|format| decode_response_format(format, losses))?,
        None => OutputFormat::Text,
    };
    let verbosity = match fields.node("verbosity") {
        Some(node) => Some(one_of(
            node,
            &[("low", "low"), ("medium", "medium"), ("high", "high")],
        )?),
        None => None,
    };
    let (mut images, mut audio) = (false, false);
    fields.each("modalities", |_, modality| {
        match one_of(
            modality,
            &[("text", "text"), ("image", "image"), ("audio", "audio")],
        )? {
            "image" => images = true,
            "audio" => audio = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok(Output {
        image_limit: None,
        format,
        images,
        audio,
        image_options: ImageOptions::default(),
        verbosity: verbosity.map(Text::Borrowed),
    })
}

/// Encodes `modalities`; images are an extension of the format, audio is part of it.
pub(super) fn encode_modalities(
    output: &Output<'_>,
    losses: &mut Losses,
) -> Option<Vec<&'static str>> {
    output.image_options.drop_all(losses);
    if !output.images && !output.audio {
        return None;
    }
    let mut modalities = vec!["text"];
    if output.images {
        losses.approximated(FieldLocation::Setting(Setting::Images));
        modalities.push("image");
    }
    if output.audio {
        modalities.push("audio");
    }
    Some(modalities)
}

/// The `audio` options of a request body; the format requires both fields.
#[derive(Serialize)]
pub(super) struct ChatAudioOptions {
    voice: &'static str,
    format: &'static str,
}

/// Encodes the `audio` options; streams carry only raw samples.
pub(super) fn encode_audio_options(stream: bool, losses: &mut Losses) -> ChatAudioOptions {
    losses.added(FieldLocation::Setting(Setting::Audio));
    ChatAudioOptions {
        voice: "alloy",
        format: if stream { "pcm16" } else { "wav" },
    }
}

/// Decodes `response_format`.
fn decode_response_format<'a>(
    mut format: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, ApiError> {
    #[derive(Clone, Copy)]
    enum FormatType {
        Text,
        Json,
        Schema,
    }
    let kind = one_of(
        required(&mut format, "type")?,
        &[
            ("text", FormatType::Text),
            ("json_object", FormatType::Json),
            ("json_schema", FormatType::Schema),
        ],
    )?;
    let decoded = match kind {
        FormatType::Text => OutputFormat::Text,
        FormatType::Json => OutputFormat::Json,
        FormatType::Schema => required(&mut format, "json_schema")?.fields(|mut inner| {
            let decoded = OutputFormat::Schema {
                name: Some(required(&mut inner, "name")?.text()?),
                description: inner.text("description")?,
                schema: object(required(&mut inner, "schema")?)?,
                strict: inner.bool("strict")?,
            };
            inner.finish(losses);
            Ok(decoded)
        })?,
    };
    format.finish(losses);
    Ok(decoded)
}

/// The `response_format` of a request body.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: OutputSchema<'a> },
}

/// Encodes `response_format`.
pub(super) fn encode_response_format<'a>(
    format: &'a OutputFormat<'a>,
    losses: &mut Losses,
) -> Option<ChatResponseFormat<'a>> {
    match format {
        OutputFormat::Json => Some(ChatResponseFormat::JsonObject),
        format => encode_output_schema(format, losses)
            .map(|json_schema| ChatResponseFormat::JsonSchema { json_schema }),
    }
}
