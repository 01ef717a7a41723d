//! Where requests to an upstream differ from those of its format: `paths`, `query`, `model_in` and the like.

use super::endpoints::Endpoints;
use super::template_values::TemplateValues;
use crate::config::problem::Position;
use crate::config::settings::{
    PathTemplate, RequestShape, StreamFraming, UpstreamPaths, encode_parameter,
};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable};
use crate::config::tree::YamlKind;
use crate::config::values;
use crate::formats::{CloudEmbeddings, PassthroughEndpoint};
use crate::model::Format;

/// What an upstream sets, and what its preset does.
struct ShapeFields<'t, 'n, 'p> {
    own: &'t mut ConfigTable<'n>,
    preset: ConfigTable<'p>,
    preset_position: Position,
}

impl ShapeFields<'_, '_, '_> {
    /// One of two words; `true` for the second. The position is that of the upstream's own value.
    fn choice(
        &mut self,
        reader: &mut ConfigReader,
        name: &'static str,
        words: [&str; 2],
    ) -> (bool, Option<Position>) {
        let choices = [(words[0], false), (words[1], true)];
        let own = self.own.take(name);
        let preset = self.preset.take(name);
        let position = own.map(|field| field.node.position);
        let field = own.or(preset);
        let value = field.and_then(|field| reader.value(field, values::one_of(&choices)));
        (value.is_some_and(|value| value.value), position)
    }
}

pub fn parse(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    preset: ConfigTable,
    values: &TemplateValues,
    endpoints: Option<&Endpoints>,
) -> RequestShape {
    let mut fields = ShapeFields {
        preset_position: table.position,
        own: table,
        preset,
    };
    let paths = parse_paths(reader, &mut fields, values, endpoints);
    let (own, preset) = (fields.own.take("query"), fields.preset.take("query"));
    let query = own.or(preset).map(|field| parse_query(reader, field));
    let (model_in_path, _) = fields.choice(reader, "model_in", ["body", "path"]);
    let (stream_in_path, _) = fields.choice(reader, "stream_in", ["body", "path"]);
    let (version_in_body, version_in) = fields.choice(reader, "version_in", ["header", "body"]);
    let (own, preset) = (fields.own.take("version"), fields.preset.take("version"));
    let version_at = own.map(|field| field.node.position);
    let version = own
        .or(preset)
        .and_then(|field| reader.value(field, values::name));
    let version = version.map_or_else(|| "2023-06-01".to_owned(), |version| version.value);
    let (betas_in_body, betas_in) = fields.choice(reader, "betas_in", ["header", "body"]);
    let (is_aws, _) = fields.choice(reader, "framing", ["sse", "aws_event_stream"]);
    let (own, preset) = (
        fields.own.take("embeddings"),
        fields.preset.take("embeddings"),
    );
    let choices = [
        ("format", None),
        ("vertex", Some(CloudEmbeddings::Vertex)),
        ("bedrock", Some(CloudEmbeddings::Bedrock)),
    ];
    let embeddings = own
        .or(preset)
        .and_then(|field| reader.value(field, values::one_of(&choices)));
    if let (Some(position), false) = (version_at, version_in_body) {
        let message = "version does nothing without version_in: body";
        reader.warnings.add(position, message);
    }
    if endpoints.is_some_and(|endpoints| !endpoints.speaks(Format::Messages)) {
        for (name, position) in [("version_in", version_in), ("betas_in", betas_in)] {
            if let Some(position) = position {
                let message = format!("{name} does nothing; only messages has versions and betas");
                reader.warnings.add(position, message);
            }
        }
    }
    RequestShape {
        paths,
        query: query.unwrap_or_default().join("&"),
        model_in_path,
        stream_in_path,
        version_in_body: version_in_body.then_some(version),
        betas_in_body,
        framing: match is_aws {
            true => StreamFraming::AwsEventStream,
            false => StreamFraming::Sse,
        },
        embeddings: embeddings.and_then(|chosen| chosen.value),
    }
}

fn parse_query(reader: &mut ConfigReader, field: ConfigField) -> Vec<String> {
    let mut pairs = Vec::new();
    let table = reader.table("query", field);
    for (key, node) in table.map(|mut table| table.take_rest()).unwrap_or_default() {
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let value = reader.hidden(field, values::label);
        pairs.extend(value.map(|value| encode_parameter(&key.name, &value.value)));
    }
    pairs
}

/// Templates by operation, for an upstream of one format; else by format and operation.
fn parse_paths(
    reader: &mut ConfigReader,
    fields: &mut ShapeFields,
    values: &TemplateValues,
    endpoints: Option<&Endpoints>,
) -> Vec<(Format, UpstreamPaths)> {
    let (own, preset) = (fields.own.take("paths"), fields.preset.take("paths"));
    let is_own = own.is_some();
    let Some(field) = own.or(preset) else {
        return Vec::new();
    };
    // What is wrong with a template of a preset is a value that the upstream lacks.
    let position = (!is_own).then_some(fields.preset_position);
    let YamlKind::Map(entries) = &field.node.kind else {
        reader.table("paths", field);
        return Vec::new();
    };
    let format = |name: &str| Format::EVERY.into_iter().find(|of| of.name() == name);
    if !entries.iter().any(|(key, _)| format(&key.name).is_some()) {
        if endpoints.is_some_and(|endpoints| !endpoints.others.is_empty()) {
            let message =
                "the upstream has several formats; write paths: {FORMAT: {generate: PATH}}";
            reader.problems.add(field.node.position, message);
        }
        let paths = parse_format_paths(reader, field, values, position);
        let endpoints = endpoints.into_iter();
        return endpoints.map(|it| (it.first.0, paths.clone())).collect();
    }
    let speaks = |format| endpoints.is_none_or(|endpoints| endpoints.speaks(format));
    let mut all = Vec::new();
    for (key, node) in entries {
        let field = ConfigField {
            name: &key.name,
            node,
        };
        match format(&key.name) {
            Some(format) if speaks(format) => {
                all.push((format, parse_format_paths(reader, field, values, position)));
            }
            // A preset may have more formats than are asked for.
            Some(_) if !is_own => {}
            _ => {
                let message = format!("{:?} must be a format of the upstream", key.name);
                reader.problems.add(key.position, message);
            }
        }
    }
    all
}

fn parse_format_paths(
    reader: &mut ConfigReader,
    field: ConfigField,
    values: &TemplateValues,
    position: Option<Position>,
) -> UpstreamPaths {
    let Some(mut table) = reader.table("paths", field) else {
        return UpstreamPaths::default();
    };
    let mut template = |name: &'static str| {
        let field = table.take(name)?;
        let text = reader.value(field, values::path_template)?;
        match PathTemplate::parse(&text.value, |name| values.get(name)) {
            Ok(template) => Some(template),
            Err(reason) => {
                let message = format!("paths.{name} {reason}");
                reader
                    .problems
                    .add(position.unwrap_or(text.position), message);
                None
            }
        }
    };
    let paths = UpstreamPaths {
        generate: template("generate"),
        stream: template("stream"),
        count: template("count"),
        edit: template("edit"),
        embed: template("embed"),
        endpoints: PassthroughEndpoint::ALL
            .into_iter()
            .filter_map(|endpoint| Some((endpoint, template(endpoint.label())?)))
            .collect(),
    };
    reader.finish(table);
    paths
}
