//! The `output_config` of a request: effort and output format.

use serde::Serialize;

use super::schema::{MessagesSchemaChanges, conform};
use super::thinking::decode_effort;
use crate::json::{Node, Path};
use crate::model::{ApiError, Depth, FieldLocation, Json, Losses, OutputFormat, Request, Setting};

/// Decodes `output_config` into the reasoning depth and the output shape of a request.
pub(super) fn decode_output_config<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        if let Some(effort) = decode_effort(&mut fields)? {
            match request.thinking.depth {
                None | Some(Depth::Dynamic) => {
                    request.thinking.depth = Some(Depth::Effort(effort));
                }
                // A budget is more exact, and disabled thinking has no effort.
                Some(_) => {
                    let path = Path::Key(&fields.path, "effort").to_string();
                    losses.dropped(FieldLocation::Path(path.into()));
                }
            }
        }
        if let Some(node) = fields.node("format") {
            request.output.format = decode_output_format(node, losses)?;
        }
        fields.finish(losses);
        Ok(())
    })
}

/// Decodes `output_config.format`, which is always a JSON Schema and always strict.
fn decode_output_format<'a>(
    node: Node<'a, '_>,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        if fields.need("type", kind)? != "json_schema" {
            return Err(Path::Key(&fields.path, "type").wrong("json_schema"));
        }
        let schema = fields.take("schema");
        let schema = fields.need("schema", schema)?;
        if !schema.is_object() {
            return Err(Path::Key(&fields.path, "schema").wrong("an object"));
        }
        fields.finish(losses);
        Ok(OutputFormat::Schema {
            name: None,
            description: None,
            schema,
            strict: Some(true),
        })
    })
}

/// The `output_config` of a request to an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct OutputConfig<'a> {
    pub(super) effort: Option<&'static str>,
    pub(super) format: Option<MessagesOutputFormat<'a>>,
}

impl OutputConfig<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}

/// The `format` of an `output_config`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum MessagesOutputFormat<'a> {
    JsonSchema { schema: Json<'a> },
}

/// Encodes the output shape of a request as `output_config.format`.
pub(super) fn encode_output_format<'a>(
    shape: &'a OutputFormat<'_>,
    losses: &mut Losses,
) -> Option<MessagesOutputFormat<'a>> {
    let location = || FieldLocation::Setting(Setting::OutputFormat);
    let schema = match shape {
        OutputFormat::Text => return None,
        // The format has no JSON output without a schema.
        OutputFormat::Json => {
            losses.dropped(location());
            return None;
        }
        OutputFormat::Schema {
            name,
            description,
            schema,
            ..
        } => {
            if name.is_some() {
                losses.dropped(FieldLocation::Setting(Setting::OutputName));
            }
            if description.is_some() {
                losses.dropped(FieldLocation::Setting(Setting::OutputDescription));
            }
            schema
        }
        OutputFormat::Enum(schema) => {
            losses.approximated(location());
            schema
        }
    };
    let mut changes = MessagesSchemaChanges::default();
    let schema = conform(schema, &mut changes);
    if changes.closed {
        losses.added(location());
    }
    if changes.rewritten {
        losses.approximated(location());
    }
    Some(MessagesOutputFormat::JsonSchema { schema })
}
