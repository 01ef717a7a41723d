//! The `tools` of a request.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use serde_json_borrow::ObjectAsVec;

use super::hosted_tools::{
    MessagesHostedTool, decode_search, encode_code_execution, encode_search, name_of,
};
use super::schema::conforms;
use super::tool_choice::{MessagesToolChoice, decode_tool_choice, encode_tool_choice};
use crate::formats::Capabilities;
use crate::formats::free_text::describe_grammar;
use crate::json::{Fields, Path};
use crate::model::{
    ApiError, FieldLocation, HostedTool, Json, Losses, PartKind, Request, Setting, Text, Tool,
    ToolChoice, ToolKind,
};

/// Decodes `tools` and `tool_choice`.
pub(super) fn decode_tools<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    fields.each("tools", |at, node| {
        node.fields(|mut fields| {
            decode_tool(at, &mut fields, request, losses)?;
            fields.finish(losses);
            Ok(())
        })
    })?;
    match fields.node("tool_choice") {
        Some(node) => decode_tool_choice(node, request, losses),
        None => Ok(()),
    }
}

/// Decodes a function or a hosted tool, whose type ends with the date of its version.
fn decode_tool<'a>(
    at: u32,
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let kind = fields.text("type")?;
    let name = fields.text("name")?;
    match kind.as_deref() {
        None | Some("custom") => {
            let name = fields.need("name", name)?;
            request.tools.push(decode_function(at, name, fields)?);
        }
        Some(kind) if kind.starts_with("web_search_") => {
            request.search = Some(decode_search(fields, losses)?);
        }
        Some(kind) if kind.starts_with("code_execution_") => request.code_execution = true,
        Some(kind) => {
            let path = Path::Key(&fields.path, "type");
            let message = format!("{path}: the upstream of this model has no tool like {kind}");
            return Err(ApiError::invalid(message).at(path.to_string()));
        }
    }
    Ok(())
}

fn decode_function<'a>(
    at: u32,
    name: Text<'a>,
    fields: &mut Fields<'a, '_>,
) -> Result<Tool<'a>, ApiError> {
    let description = fields.text("description")?;
    let schema = fields.take("input_schema");
    let schema = fields.need("input_schema", schema)?;
    if !schema.is_object() {
        return Err(Path::Key(&fields.path, "input_schema").wrong("an object"));
    }
    Ok(Tool {
        name,
        description,
        schema: Some(schema),
        strict: fields.bool("strict")?,
        kind: ToolKind::Function,
        namespace: None,
        at,
    })
}

/// One of the `tools` of a request to an upstream.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MessagesTool<'a> {
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        input_schema: Cow<'a, Json<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        strict: bool,
    },
    Hosted(MessagesHostedTool<'a>),
}

/// Encodes `tools` and `tool_choice`.
pub(super) fn encode_tools<'a>(
    request: &'a Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Result<(Vec<MessagesTool<'a>>, Option<MessagesToolChoice<'a>>), ApiError> {
    let allowed = allowed_names(request.tool_choice.as_ref());
    let may_call = |name: &str| allowed.as_ref().is_none_or(|names| names.contains(name));
    let mut tools = Vec::new();
    for tool in request.tools.iter().filter(|tool| may_call(&tool.name)) {
        tools.push(encode_function(tool, losses));
    }
    if let Some(search) = &request.search
        && is_name_free(HostedTool::Search, request, losses)
    {
        let search = encode_search(search, capabilities, losses)?;
        tools.push(MessagesTool::Hosted(search));
    }
    if request.code_execution && is_name_free(HostedTool::CodeExecution, request, losses) {
        tools.push(MessagesTool::Hosted(encode_code_execution()));
    }
    let choice = encode_tool_choice(request, !tools.is_empty(), losses);
    if tools.is_empty() {
        declare_called_tools(request, &mut tools, losses);
    }
    Ok((tools, choice))
}

/// Whether no function has the name of this hosted tool: names must be unique.
fn is_name_free(tool: HostedTool, request: &Request<'_>, losses: &mut Losses) -> bool {
    let is_taken = request
        .tools
        .iter()
        .any(|known| known.name == name_of(tool));
    if is_taken {
        losses.dropped(FieldLocation::Setting(match tool {
            HostedTool::Search => Setting::Search,
            HostedTool::CodeExecution => Setting::CodeExecution,
        }));
    }
    !is_taken
}

/// The tools that a choice allows; `None`: all. The format cannot name several allowed tools, so the others
/// are not declared at all.
fn allowed_names<'a>(choice: Option<&'a ToolChoice<'_>>) -> Option<HashSet<&'a str>> {
    match choice {
        Some(ToolChoice::Subset { names, .. }) => Some(names.iter().map(|name| &**name).collect()),
        _ => None,
    }
}

fn encode_function<'a>(tool: &'a Tool<'_>, losses: &mut Losses) -> MessagesTool<'a> {
    if tool.kind == ToolKind::Custom {
        losses.approximated(FieldLocation::Tool { tool: tool.at });
    }
    let input_schema = match tool.kind {
        ToolKind::Custom => Cow::Owned(free_text_schema(tool.schema.as_ref())),
        ToolKind::Function => object_schema(tool.schema.as_ref()),
    };
    let requested = tool.strict == Some(true);
    let strict = requested && conforms(&input_schema);
    if requested && !strict {
        losses.dropped(FieldLocation::ToolStrict { tool: tool.at });
    }
    MessagesTool::Function {
        name: &tool.name,
        description: tool.description.as_deref(),
        input_schema,
        strict,
    }
}

fn object<'a>(entries: Vec<(&'a str, Json<'a>)>) -> Json<'a> {
    Json::Object(ObjectAsVec::from_iter(entries))
}

/// The `input_schema` of a function, which is required and must have a `type`.
fn object_schema<'a>(schema: Option<&'a Json<'_>>) -> Cow<'a, Json<'a>> {
    match schema {
        Some(schema) if !schema.get("type").is_null() => Cow::Borrowed(schema),
        Some(Json::Object(keywords)) if !keywords.is_empty() => {
            let kind = ("type", Json::Str("object".into()));
            let rest = keywords.iter().map(|(key, value)| (key, value.clone()));
            Cow::Owned(object(std::iter::once(kind).chain(rest).collect()))
        }
        _ => Cow::Owned(object(vec![
            ("type", Json::Str("object".into())),
            ("properties", object(Vec::new())),
        ])),
    }
}

/// The `input_schema` of a custom tool: its free text is the property `input` of an object, and its
/// grammar becomes the property's description.
fn free_text_schema<'a>(grammar: Option<&'a Json<'_>>) -> Json<'a> {
    let mut input = vec![("type", Json::Str("string".into()))];
    if let Some(words) = grammar.and_then(describe_grammar) {
        input.push(("description", Json::Str(words.into())));
    }
    object(vec![
        ("type", Json::Str("object".into())),
        ("properties", object(vec![("input", object(input))])),
        ("required", Json::Array(vec![Json::Str("input".into())])),
    ])
}

/// Declares the tools that earlier turns call, for a request without tools: upstreams refuse calls if
/// no tool is declared.
fn declare_called_tools<'a>(
    request: &'a Request<'_>,
    tools: &mut Vec<MessagesTool<'a>>,
    losses: &mut Losses,
) {
    let mut known = HashSet::new();
    for part in request.turns.iter().flat_map(|turn| &turn.parts) {
        let PartKind::Call(call) = &part.kind else {
            continue;
        };
        let name = &*call.name;
        if !known.insert(name) {
            continue;
        }
        losses.added(FieldLocation::Path("tools".into()));
        tools.push(MessagesTool::Function {
            name,
            description: None,
            input_schema: object_schema(None),
            strict: false,
        });
    }
}
