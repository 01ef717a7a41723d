//! `tools` and `toolConfig`: the tools that the model may call, and whether it must.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::enum_values::FUNCTION_CALLING_MODES;
use super::field_names::{self, FieldNames, not_available};
use super::field_paths::tool_index;
use super::reference_budget::ReferenceBudget;
use super::schema::{EncodedSchema, encode_schema, report_inexact};
use super::schema_decoder::decode_schema;
use crate::formats::free_text::describe_grammar;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, FieldLocation, Json, Losses, Request, Search, Setting, Text, Tool, ToolChoice,
    ToolKind,
};

/// Hosted tools that only upstreams of this format have.
const UNSUPPORTED_TOOLS: [FieldNames; 6] = [
    field_names::GOOGLE_MAPS,
    &["urlContext", "url_context"],
    &["fileSearch", "file_search"],
    &["computerUse", "computer_use"],
    &["mcpServers", "mcp_servers"],
    &["retrieval"],
];

const SEARCH_TOOLS: [FieldNames; 2] = [
    field_names::GOOGLE_SEARCH,
    field_names::GOOGLE_SEARCH_RETRIEVAL,
];

/// Decodes `tools`.
pub(super) fn decode_tools<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.each(|index, node| node.fields(|fields| decode_tool(index, fields, request, losses)))
}

fn decode_tool<'a>(
    tool: u32,
    mut fields: Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    field_names::for_each(
        &mut fields,
        field_names::FUNCTION_DECLARATIONS,
        |at, node| {
            let declared = node.fields(|fields| {
                decode_function_declaration(tool_index(tool, at), fields, losses)
            })?;
            request.tools.push(declared);
            Ok(())
        },
    )?;
    for names in SEARCH_TOOLS {
        if let Some(node) = field_names::take(&mut fields, names) {
            report_tool_options(node, losses)?;
            request.search = Some(Search::default());
        }
    }
    if let Some(node) = field_names::take(&mut fields, field_names::CODE_EXECUTION) {
        report_tool_options(node, losses)?;
        request.code_execution = true;
    }
    for names in UNSUPPORTED_TOOLS {
        if let Some(node) = field_names::take(&mut fields, names) {
            return Err(not_available(&node.path));
        }
    }
    fields.finish(losses);
    Ok(())
}

/// Reports the options of a hosted tool as dropped: other formats only know that it is there.
fn report_tool_options(node: Node<'_, '_>, losses: &mut Losses) -> Result<(), ApiError> {
    node.fields(|options| {
        options.finish(losses);
        Ok(())
    })
}

/// One element of `tools` in a request to an upstream.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum NativeTool<'a> {
    Functions {
        #[serde(rename = "functionDeclarations")]
        declarations: Vec<FunctionDeclaration<'a>>,
    },
    CodeExecution {
        #[serde(rename = "codeExecution")]
        options: EmptyObject,
    },
    /// The key holds the prefix that the upstream uses for the vendor.
    Search(BTreeMap<String, EmptyObject>),
}

#[derive(Serialize)]
pub(super) struct EmptyObject {}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionDeclaration<'a> {
    name: &'a str,
    description: Option<&'a str>,
    parameters: Option<Json<'a>>,
    parameters_json_schema: Option<Json<'a>>,
}

/// Encodes the tools of a request and the choice among them.
pub(super) fn encode_tools<'a>(
    request: &'a Request<'_>,
    brand: &str,
    losses: &mut Losses,
) -> (Vec<NativeTool<'a>>, Option<ToolConfig<'a>>) {
    let choice = request.tool_choice.as_ref();
    // Allowed names restrict only a model that must call, and an empty list would allow all tools:
    // in these cases the other tools are not declared at all.
    let offered_names: Option<HashSet<&str>> = match choice {
        Some(ToolChoice::Subset { names, required }) if !required || names.is_empty() => {
            Some(names.iter().map(|name| &**name).collect())
        }
        _ => None,
    };
    let is_offered = |tool: &&Tool<'_>| {
        let names = offered_names.as_ref();
        names.is_none_or(|names| names.contains(&*tool.name))
    };
    let offered = request.tools.iter().filter(is_offered);
    let mut budget = ReferenceBudget::default();
    let declarations: Vec<_> = offered
        .map(|tool| encode_function_declaration(tool, &mut budget, losses))
        .collect();
    let config = encode_tool_choice(choice, !declarations.is_empty(), losses);
    let mut tools = Vec::new();
    if !declarations.is_empty() {
        tools.push(NativeTool::Functions { declarations });
    }
    if let Some(search) = &request.search {
        report_search_options(search, losses);
        let name = format!("{brand}Search");
        tools.push(NativeTool::Search([(name, EmptyObject {})].into()));
    }
    if request.code_execution {
        tools.push(NativeTool::CodeExecution {
            options: EmptyObject {},
        });
    }
    // The format cannot forbid parallel calls.
    if request.parallel_tools == Some(false) {
        losses.dropped(FieldLocation::Setting(Setting::ParallelTools));
    }
    (tools, config)
}

fn decode_function_declaration<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let name = fields.text("name")?;
    let name = fields.need("name", name)?;
    let description = fields.text("description")?;
    let schema = decode_schema(fields.node("parameters"), losses)?;
    let json_schema = field_names::take(&mut fields, field_names::PARAMETERS_JSON_SCHEMA);
    let schema = schema.or(decode_schema(json_schema, losses)?);
    fields.finish(losses);
    Ok(Tool {
        name,
        description,
        schema,
        strict: None,
        kind: ToolKind::Function,
        namespace: None,
        at,
    })
}

fn encode_function_declaration<'a>(
    tool: &'a Tool<'_>,
    budget: &mut ReferenceBudget,
    losses: &mut Losses,
) -> FunctionDeclaration<'a> {
    let location = FieldLocation::Tool { tool: tool.at };
    if tool.strict == Some(true) {
        losses.dropped(FieldLocation::ToolStrict { tool: tool.at });
    }
    let mut declaration = FunctionDeclaration {
        name: &tool.name,
        description: tool.description.as_deref(),
        parameters: None,
        parameters_json_schema: None,
    };
    if tool.kind == ToolKind::Custom {
        losses.approximated(location);
        declaration.parameters = Some(free_text_parameters(tool.schema.as_ref()));
        return declaration;
    }
    let schema = tool.schema.as_ref();
    match schema.map(|schema| encode_schema(schema, budget)) {
        None => {}
        Some(EncodedSchema::JsonSchema { schema, exact }) => {
            declaration.parameters_json_schema = Some(schema);
            report_inexact(exact, location, losses);
        }
        Some(EncodedSchema::Native { schema, exact }) => {
            declaration.parameters = parameters_object(schema);
            report_inexact(exact, location, losses);
        }
    }
    declaration
}

/// Completes the schema of a function's parameters, which must name the type `OBJECT`, or be absent.
fn parameters_object(schema: Json<'_>) -> Option<Json<'_>> {
    let Json::Object(mut keywords) = schema else {
        return Some(schema);
    };
    if keywords.is_empty() {
        return None;
    }
    if keywords.get("type").is_none() && keywords.get("anyOf").is_none() {
        keywords.insert("type", "OBJECT".into());
    }
    Some(Json::Object(keywords))
}

/// The parameters of a tool that takes free text: one string.
fn free_text_parameters<'a>(grammar: Option<&Json<'_>>) -> Json<'a> {
    let object = |entries: Vec<(&'a str, Json<'a>)>| Json::Object(entries.into());
    let mut input = vec![("type", "STRING".into())];
    if let Some(description) = grammar.and_then(describe_grammar) {
        input.push(("description", Json::Str(description.into())));
    }
    object(vec![
        ("type", "OBJECT".into()),
        ("properties", object(vec![("input", object(input))])),
        ("required", Json::Array(vec!["input".into()])),
    ])
}

/// Decodes `toolConfig`.
pub(super) fn decode_tool_config<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        if let Some(node) = field_names::take(&mut fields, field_names::FUNCTION_CALLING_CONFIG) {
            request.tool_choice =
                node.fields(|fields| decode_function_calling_config(fields, losses))?;
        }
        field_names::report_dropped(&mut fields, field_names::RETRIEVAL_CONFIG, losses);
        fields.finish(losses);
        Ok(())
    })
}

fn decode_function_calling_config<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<ToolChoice<'a>>, ApiError> {
    let mode = field_names::take_enum(&mut fields, &["mode"], FUNCTION_CALLING_MODES);
    let mut names = Vec::new();
    if let Some(node) = field_names::take(&mut fields, field_names::ALLOWED_FUNCTION_NAMES) {
        let path = node.path.to_string();
        names = field_names::decode_texts(node)?;
        // The names have a meaning only beside these two modes.
        if !names.is_empty() && !matches!(mode, Some("ANY" | "VALIDATED")) {
            losses.dropped(FieldLocation::Path(path.into()));
        }
    }
    if mode == Some("VALIDATED") {
        let path = Path::Key(&fields.path, "mode").to_string();
        losses.approximated(FieldLocation::Path(path.into()));
    }
    fields.finish(losses);
    Ok(match (mode, names.len()) {
        (None, _) => None,
        (Some("ANY"), 0) => Some(ToolChoice::Required),
        (Some("ANY"), 1) => names.pop().map(ToolChoice::One),
        (Some("ANY" | "VALIDATED"), 1..) => Some(ToolChoice::Subset {
            names,
            required: mode == Some("ANY"),
        }),
        (Some("NONE"), _) => Some(ToolChoice::None),
        (Some(_), _) => Some(ToolChoice::Auto),
    })
}

/// The `toolConfig` of a request to an upstream.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    function_calling_config: FunctionCallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionCallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed_function_names: Vec<&'a str>,
}

/// Encodes the tool choice; `None` leaves the model free.
fn encode_tool_choice<'a>(
    choice: Option<&'a ToolChoice<'_>>,
    has_functions: bool,
    losses: &mut Losses,
) -> Option<ToolConfig<'a>> {
    let choice = choice?;
    let names: &[Text<'_>] = match choice {
        ToolChoice::One(name) => std::slice::from_ref(name),
        ToolChoice::Subset { names, .. } => names,
        _ => &[],
    };
    let mode = match choice {
        ToolChoice::Auto => return None,
        // The format can require only functions.
        ToolChoice::Hosted(_) => {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            return None;
        }
        ToolChoice::Subset {
            required: false, ..
        } => {
            // The other tools are not declared.
            losses.approximated(FieldLocation::Setting(Setting::ToolChoice));
            return None;
        }
        ToolChoice::None => "NONE",
        ToolChoice::Required | ToolChoice::One(_) | ToolChoice::Subset { .. } => "ANY",
    };
    if !has_functions {
        if mode == "ANY" {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
        }
        return None;
    }
    Some(ToolConfig {
        function_calling_config: FunctionCallingConfig {
            mode,
            allowed_function_names: names.iter().map(|name| &**name).collect(),
        },
    })
}

/// Reports the options of a search, which the format has no fields for.
fn report_search_options(search: &Search<'_>, losses: &mut Losses) {
    if *search != Search::default() {
        losses.dropped(FieldLocation::Setting(Setting::Search));
    }
}
