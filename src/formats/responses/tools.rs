//! Tools: functions, custom tools of free text, namespaces of both, and those that the upstream runs.

use serde::Serialize;

use super::hosted_tools::{self, CodeInterpreterContainer, WebSearchSettings};
use super::image_generation::{self, ImageGenerationSettings};
use super::namespaces::{check_length, qualified_name};
use crate::formats::output_schema::is_strict;
use crate::json::{Fields, Path};
use crate::model::{
    ApiError, FieldLocation, HostedTool, Json, Losses, Request, Text, Tool, ToolKind,
};

/// Decodes the `tools` array of a request.
pub(super) fn decode<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    fields.each("tools", |at, node| {
        node.fields(|fields| decode_tool(at, None, fields, request, losses))
    })
}

/// Decodes one tool. `at`: its index in `tools`; the tools of a namespace have the index of that.
fn decode_tool<'a>(
    at: u32,
    namespace: Option<&str>,
    mut fields: Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let kind = fields.text("type")?;
    let kind = fields.need("type", kind)?;
    match (kind.as_ref(), namespace) {
        ("function", _) => {
            let tool = decode_function(at, namespace, &mut fields)?;
            request.tools.push(tool);
        }
        ("custom", _) => {
            let tool = decode_custom(at, namespace, &mut fields, losses)?;
            request.tools.push(tool);
        }
        ("namespace", None) => {
            let name = fields.text("name")?;
            let name = fields.need("name", name)?;
            check_length(&name, &Path::Key(&fields.path, "name"))?;
            fields.each("tools", |_, node| {
                node.fields(|fields| decode_tool(at, Some(&name), fields, request, losses))
            })?;
        }
        ("image_generation", None) => {
            request.output.images = true;
            request.output.image_options = image_generation::decode(&mut fields)?;
        }
        _ => match hosted_tools::decode_type(&kind).filter(|_| namespace.is_none()) {
            Some(HostedTool::Search) => {
                request.search = Some(hosted_tools::decode_web_search(&mut fields, losses)?)
            }
            Some(HostedTool::CodeExecution) => {
                hosted_tools::decode_container(&mut fields, losses)?;
                request.code_execution = true;
            }
            None => {
                let path = &fields.path;
                let message = format!("{path}: the tool {kind} has no counterpart");
                return Err(ApiError::invalid(message).at(path.to_string()));
            }
        },
    }
    fields.finish(losses);
    Ok(())
}

/// One tool as it is encoded.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponsesTool<'r> {
    Function {
        name: &'r str,
        description: Option<&'r str>,
        parameters: FunctionParameters<'r>,
        /// Always sent: the upstream makes the schema strict by default.
        strict: bool,
    },
    Custom {
        name: &'r str,
        description: Option<&'r str>,
        format: Option<CustomGrammar<'r>>,
    },
    WebSearch(WebSearchSettings<'r>),
    CodeInterpreter {
        container: CodeInterpreterContainer,
    },
    ImageGeneration(ImageGenerationSettings<'r>),
}

/// Encodes the `tools` array.
pub(super) fn encode<'r>(request: &'r Request<'_>, losses: &mut Losses) -> Vec<ResponsesTool<'r>> {
    let declared = request.tools.iter().map(|tool| encode_tool(tool, losses));
    let mut tools: Vec<ResponsesTool<'r>> = declared.collect();
    tools.extend(
        request
            .search
            .as_ref()
            .map(|search| ResponsesTool::WebSearch(hosted_tools::encode_web_search(search))),
    );
    if request.code_execution {
        let container = CodeInterpreterContainer {};
        tools.push(ResponsesTool::CodeInterpreter { container });
    }
    if request.output.images {
        let settings = image_generation::encode(&request.output.image_options, losses);
        tools.push(ResponsesTool::ImageGeneration(settings));
    } else {
        request.output.image_options.drop_all(losses);
    }
    tools
}

/// Decodes the name of a function or a custom tool, qualified by its namespace.
fn decode_name<'a>(
    namespace: Option<&str>,
    fields: &mut Fields<'a, '_>,
) -> Result<Text<'a>, ApiError> {
    let name = fields.text("name")?;
    let name = fields.need("name", name)?;
    if namespace.is_some() {
        check_length(&name, &Path::Key(&fields.path, "name"))?;
    }
    Ok(qualified_name(namespace, name))
}

/// Decodes a tool of type `function`.
fn decode_function<'a>(
    at: u32,
    namespace: Option<&str>,
    fields: &mut Fields<'a, '_>,
) -> Result<Tool<'a>, ApiError> {
    let name = decode_name(namespace, fields)?;
    let schema = fields.take("parameters");
    if !matches!(schema, None | Some(Json::Object(_))) {
        return Err(Path::Key(&fields.path, "parameters").wrong("an object"));
    }
    Ok(Tool {
        name,
        description: fields.text("description")?,
        schema,
        strict: fields.bool("strict")?,
        kind: ToolKind::Function,
        namespace: namespace.map(|namespace| namespace.to_owned().into()),
        at,
    })
}

/// Encodes a function or a custom tool.
fn encode_tool<'r>(tool: &'r Tool<'_>, losses: &mut Losses) -> ResponsesTool<'r> {
    let name = &*tool.name;
    let description = tool.description.as_deref();
    if tool.kind == ToolKind::Custom {
        let format = tool.schema.as_ref().and_then(encode_grammar);
        return ResponsesTool::Custom {
            name,
            description,
            format,
        };
    }
    let requested = tool.strict == Some(true);
    let strict = requested && tool.schema.as_ref().is_some_and(is_strict);
    if strict != requested {
        losses.approximated(FieldLocation::ToolStrict { tool: tool.at });
    }
    ResponsesTool::Function {
        name,
        description,
        parameters: match &tool.schema {
            Some(schema) => FunctionParameters::Schema(schema),
            None => FunctionParameters::Empty(EmptySchema {
                properties: EmptyProperties {},
            }),
        },
        strict,
    }
}

/// The schema of a function's parameters as it is encoded.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum FunctionParameters<'r> {
    Schema(&'r Json<'r>),
    Empty(EmptySchema),
}

/// The schema of a function without parameters, which the format requires.
#[derive(Serialize)]
#[serde(tag = "type", rename = "object")]
pub(super) struct EmptySchema {
    properties: EmptyProperties,
}

/// An empty JSON object.
#[derive(Serialize)]
struct EmptyProperties {}

/// Decodes a tool of type `custom`, which takes free text.
fn decode_custom<'a>(
    at: u32,
    namespace: Option<&str>,
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let name = decode_name(namespace, fields)?;
    let grammar = match fields.node("format") {
        Some(format) => format.fields(|format| decode_grammar(format, losses))?,
        None => None,
    };
    Ok(Tool {
        name,
        description: fields.text("description")?,
        schema: grammar,
        strict: None,
        kind: ToolKind::Custom,
        namespace: namespace.map(|namespace| namespace.to_owned().into()),
        at,
    })
}

/// Decodes the `format` of a custom tool; `None`: unconstrained text, the default.
fn decode_grammar<'a>(
    mut format: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Json<'a>>, ApiError> {
    let kind = format.text("type")?;
    match format.need("type", kind)?.as_ref() {
        "text" => {
            format.finish(losses);
            Ok(None)
        }
        "grammar" => {
            let mut grammar = Vec::new();
            for key in ["syntax", "definition"] {
                let text = format.text(key)?;
                grammar.push((key, Json::Str(format.need(key, text)?)));
            }
            format.finish(losses);
            Ok(Some(Json::Object(grammar.into())))
        }
        _ => Err(Path::Key(&format.path, "type").wrong("text or grammar")),
    }
}

/// The grammar of a custom tool as it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename = "grammar")]
pub(super) struct CustomGrammar<'r> {
    syntax: &'r str,
    definition: &'r str,
}

/// Encodes the grammar of a custom tool.
fn encode_grammar<'r>(schema: &'r Json<'_>) -> Option<CustomGrammar<'r>> {
    let fields = schema.as_object()?;
    Some(CustomGrammar {
        syntax: fields.get("syntax")?.as_str()?,
        definition: fields.get("definition")?.as_str()?,
    })
}
