//! Settings of a response: output limit, sampling parameters, and the `text` object.

use serde::Serialize;

use crate::formats::Capabilities;
use crate::formats::output_schema::{OutputSchema, encode_output_schema};
use crate::formats::settings::{TOP_LOGPROBS, decode_count_in, report_set};
use crate::json::{Fields, Node, Path};
use crate::model::{ApiError, Format, Losses, Output, OutputFormat, Request, Sampling, Setting};

/// Decodes the output limit and the sampling parameters.
pub(super) fn decode_sampling(
    fields: &mut Fields<'_, '_>,
    sampling: &mut Sampling<'_>,
) -> Result<(), ApiError> {
    let rule = |setting| Format::Responses.setting(setting);
    sampling.max_tokens = rule(Setting::MaxTokens).decode_count(fields)?;
    sampling.temperature = rule(Setting::Temperature).decode_number(fields)?;
    sampling.top_p = rule(Setting::TopP).decode_number(fields)?;
    let top = decode_count_in(fields, "top_logprobs", TOP_LOGPROBS)?;
    sampling.top_logprobs = top.and_then(|top| u32::try_from(top).ok());
    sampling.logprobs = sampling.top_logprobs.is_some_and(|top| top > 0);
    Ok(())
}

/// Encodes `temperature` and `top_p`, for models that take them.
pub(super) fn encode_sampling(
    request: &Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> (Option<f64>, Option<f64>) {
    if !capabilities.sampling {
        report_set([Setting::Temperature, Setting::TopP], request, losses);
        return (None, None);
    }
    (request.sampling.temperature, request.sampling.top_p)
}

/// Decodes the `text` object: the output format and the verbosity.
pub(super) fn decode_text<'a>(
    fields: &mut Fields<'a, '_>,
    output: &mut Output<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let Some(node) = fields.node("text") else {
        return Ok(());
    };
    node.fields(|mut fields| {
        if let Some(format) = fields.node("format") {
            output.format = decode_text_format(format, losses)?;
        }
        output.verbosity = fields.text("verbosity")?;
        if !matches!(
            output.verbosity.as_deref(),
            None | Some("low" | "medium" | "high")
        ) {
            return Err(Path::Key(&fields.path, "verbosity").wrong("one of low, medium, high"));
        }
        fields.finish(losses);
        Ok(())
    })
}

/// Decodes `text.format`.
fn decode_text_format<'a>(
    node: Node<'a, '_>,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        let shape = match fields.need("type", kind)?.as_ref() {
            "text" => OutputFormat::Text,
            "json_object" => OutputFormat::Json,
            "json_schema" => {
                let name = fields.text("name")?;
                let schema = fields.take("schema");
                let schema = fields.need("schema", schema)?;
                if !schema.is_object() {
                    return Err(Path::Key(&fields.path, "schema").wrong("an object"));
                }
                OutputFormat::Schema {
                    name: Some(fields.need("name", name)?),
                    description: fields.text("description")?,
                    schema,
                    strict: fields.bool("strict")?,
                }
            }
            other => {
                let path = Path::Key(&fields.path, "type");
                return Err(path.wrong_text("one of text, json_object, json_schema", other));
            }
        };
        fields.finish(losses);
        Ok(shape)
    })
}

/// The `text` object as it is encoded.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct TextSettings<'r> {
    format: Option<TextFormat<'r>>,
    verbosity: Option<&'r str>,
}

/// `text.format` as it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat<'r> {
    JsonObject,
    JsonSchema(OutputSchema<'r>),
}

/// Encodes the `text` object.
pub(super) fn encode_text<'r>(
    output: &'r Output<'_>,
    losses: &mut Losses,
) -> Option<TextSettings<'r>> {
    let format = match &output.format {
        OutputFormat::Json => Some(TextFormat::JsonObject),
        format => encode_output_schema(format, losses).map(TextFormat::JsonSchema),
    };
    let verbosity = output.verbosity.as_deref();
    (format.is_some() || verbosity.is_some()).then_some(TextSettings { format, verbosity })
}
