//! What a response is made of: `response_format`, `verbosity`, `modalities` and `audio`.

use serde::Serialize;

use super::reader::{object, one_of, required};
use super::schema::{encode_strict, may_be_strict};
use crate::json::Fields;
use crate::model::{
    ApiError, FieldLocation, ImageOptions, Json, Losses, Output, OutputFormat, Setting, Text,
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
    JsonSchema { json_schema: ChatJsonSchema<'a> },
}

/// A JSON Schema with the name that the format requires.
#[derive(Debug, Serialize)]
pub(super) struct ChatJsonSchema<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    schema: &'a Json<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// The location of the schema in the losses.
const LOCATION: FieldLocation = FieldLocation::Setting(Setting::OutputFormat);

/// Encodes `response_format`.
pub(super) fn encode_response_format<'a>(
    format: &'a OutputFormat<'a>,
    losses: &mut Losses,
) -> Option<ChatResponseFormat<'a>> {
    let json_schema = match format {
        OutputFormat::Text => return None,
        OutputFormat::Json => return Some(ChatResponseFormat::JsonObject),
        OutputFormat::Schema {
            name,
            description,
            schema,
            strict,
        } => ChatJsonSchema {
            name: schema_name(name.as_deref(), losses),
            description: description.as_deref(),
            schema,
            strict: match strict {
                // Formats without schema names have no `strict` either.
                None => name.is_none().then(|| may_be_strict(schema)),
                Some(strict) => Some(encode_strict(*strict, schema, LOCATION, losses)),
            },
        },
        // The value comes back as a JSON string, in quotes.
        OutputFormat::Enum(schema) => {
            losses.approximated(LOCATION);
            ChatJsonSchema {
                name: schema_name(None, losses),
                description: None,
                schema,
                strict: Some(false),
            }
        }
    };
    Some(ChatResponseFormat::JsonSchema { json_schema })
}

/// The schema's name, or one made up where the client's format has none.
fn schema_name<'a>(name: Option<&'a str>, losses: &mut Losses) -> &'a str {
    name.unwrap_or_else(|| {
        losses.added(LOCATION);
        "response"
    })
}
