//! Tool declarations and the choice among them, with the deprecated `functions` and `function_call`.

use std::collections::HashSet;

use serde::Serialize;

use super::reader::{object, one_of, required};
use crate::formats::output_schema::encode_strict;
use crate::json::{Fields, Node};
use crate::model::{
    ApiError, FieldLocation, Json, Losses, Request, Setting, Text, Tool, ToolChoice, ToolKind,
};

/// The values of `type` in a tool and in a tool call.
pub(super) const TOOL_KINDS: [(&str, ToolKind); 2] = [
    ("function", ToolKind::Function),
    ("custom", ToolKind::Custom),
];

/// Decodes `tools` and the deprecated `functions`.
pub(super) fn decode_tools<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Tool<'a>>, ApiError> {
    let mut tools = Vec::new();
    fields.each("tools", |at, node| {
        tools.push(node.fields(|tool| decode_tool(tool, at, losses))?);
        Ok(())
    })?;
    fields.each("functions", |at, node| {
        tools.push(node.fields(|function| decode_function(function, at, losses))?);
        Ok(())
    })?;
    Ok(tools)
}

fn decode_tool<'a>(
    mut fields: Fields<'a, '_>,
    at: u32,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let tool = match one_of(required(&mut fields, "type")?, &TOOL_KINDS)? {
        ToolKind::Function => required(&mut fields, "function")?
            .fields(|function| decode_function(function, at, losses))?,
        ToolKind::Custom => {
            required(&mut fields, "custom")?.fields(|custom| decode_custom(custom, at, losses))?
        }
    };
    fields.finish(losses);
    Ok(tool)
}

fn decode_function<'a>(
    mut fields: Fields<'a, '_>,
    at: u32,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let tool = Tool {
        name: required(&mut fields, "name")?.text()?,
        description: fields.text("description")?,
        schema: fields.node("parameters").map(object).transpose()?,
        strict: fields.bool("strict")?,
        kind: ToolKind::Function,
        namespace: None,
        at,
    };
    fields.finish(losses);
    Ok(tool)
}

fn decode_custom<'a>(
    mut fields: Fields<'a, '_>,
    at: u32,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let name = required(&mut fields, "name")?.text()?;
    let description = fields.text("description")?;
    let grammar = match fields.node("format") {
        Some(format) => format.fields(|format| decode_grammar(format, losses))?,
        None => None,
    };
    fields.finish(losses);
    Ok(Tool {
        name,
        description,
        schema: grammar,
        strict: None,
        kind: ToolKind::Custom,
        namespace: None,
        at,
    })
}

/// Decodes the `format` of a custom tool: a grammar, or nothing for free text.
fn decode_grammar<'a>(
    mut format: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Json<'a>>, ApiError> {
    let kinds = [("text", false), ("grammar", true)];
    let grammar = if one_of(required(&mut format, "type")?, &kinds)? {
        Some(object(required(&mut format, "grammar")?)?)
    } else {
        None
    };
    format.finish(losses);
    Ok(grammar)
}

/// One entry of `tools` in a request body.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatTool<'a> {
    Function { function: ChatFunction<'a> },
    Custom { custom: ChatCustomTool<'a> },
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct ChatFunction<'a> {
    name: &'a str,
    description: Option<&'a str>,
    parameters: Option<&'a Json<'a>>,
    strict: Option<bool>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct ChatCustomTool<'a> {
    name: &'a str,
    description: Option<&'a str>,
    format: Option<ChatToolFormat<'a>>,
}

#[derive(Debug, Serialize)]
struct ChatToolFormat<'a> {
    r#type: &'static str,
    grammar: &'a Json<'a>,
}

/// Encodes one tool declaration.
pub(super) fn encode_tool<'a>(tool: &'a Tool<'a>, losses: &mut Losses) -> ChatTool<'a> {
    let location = FieldLocation::ToolStrict { tool: tool.at };
    let name = &*tool.name;
    let description = tool.description.as_deref();
    match tool.kind {
        ToolKind::Function => ChatTool::Function {
            function: ChatFunction {
                name,
                description,
                parameters: tool.schema.as_ref(),
                strict: match (tool.strict, &tool.schema) {
                    (Some(strict), Some(schema)) => {
                        Some(encode_strict(strict, schema, location, losses))
                    }
                    (strict, _) => strict,
                },
            },
        },
        ToolKind::Custom => ChatTool::Custom {
            custom: ChatCustomTool {
                name,
                description,
                format: tool.schema.as_ref().map(|grammar| ChatToolFormat {
                    r#type: "grammar",
                    grammar,
                }),
            },
        },
    }
}

/// Decodes `tool_choice`, or the deprecated `function_call` where it is absent.
pub(super) fn decode_tool_choice<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<ToolChoice<'a>>, ApiError> {
    if let Some(node) = fields.node("tool_choice") {
        return match node.value {
            Json::Object(_) => node.fields(|choice| decode_choice_object(choice, losses)),
            _ => decode_choice_mode(node),
        }
        .map(Some);
    }
    let Some(node) = fields.node("function_call") else {
        return Ok(None);
    };
    match node.value {
        Json::Object(_) => node
            .fields(|function| decode_tool_name(function, losses))
            .map(ToolChoice::One),
        _ => decode_choice_mode(node),
    }
    .map(Some)
}

fn decode_choice_mode<'a>(node: Node<'a, '_>) -> Result<ToolChoice<'a>, ApiError> {
    #[derive(Clone, Copy)]
    enum Mode {
        None,
        Auto,
        Required,
    }
    let modes = [
        ("none", Mode::None),
        ("auto", Mode::Auto),
        ("required", Mode::Required),
    ];
    Ok(match one_of(node, &modes)? {
        Mode::None => ToolChoice::None,
        Mode::Auto => ToolChoice::Auto,
        Mode::Required => ToolChoice::Required,
    })
}

fn decode_choice_object<'a>(
    mut choice: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, ApiError> {
    let kinds = [
        ("function", "function"),
        ("custom", "custom"),
        ("allowed_tools", "allowed_tools"),
    ];
    let kind = one_of(required(&mut choice, "type")?, &kinds)?;
    let inner = required(&mut choice, kind)?;
    let decoded = if kind == "allowed_tools" {
        inner.fields(|allowed| decode_allowed_tools(allowed, losses))?
    } else {
        ToolChoice::One(inner.fields(|tool| decode_tool_name(tool, losses))?)
    };
    choice.finish(losses);
    Ok(decoded)
}

fn decode_allowed_tools<'a>(
    mut allowed: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, ApiError> {
    let modes = [("auto", false), ("required", true)];
    let is_required = one_of(required(&mut allowed, "mode")?, &modes)?;
    let mut names = Vec::new();
    required(&mut allowed, "tools")?.each(|_, node| {
        names.push(node.fields(|mut tool| {
            let key = match one_of(required(&mut tool, "type")?, &TOOL_KINDS)? {
                ToolKind::Function => "function",
                ToolKind::Custom => "custom",
            };
            let name = required(&mut tool, key)?.fields(|tool| decode_tool_name(tool, losses))?;
            tool.finish(losses);
            Ok(name)
        })?);
        Ok(())
    })?;
    allowed.finish(losses);
    Ok(ToolChoice::Subset {
        names,
        required: is_required,
    })
}

fn decode_tool_name<'a>(
    mut tool: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Text<'a>, ApiError> {
    let name = required(&mut tool, "name")?.text()?;
    tool.finish(losses);
    Ok(name)
}

/// The `tool_choice` of a request body.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ChatToolChoice<'a> {
    Mode(&'static str),
    One(ChatNamedTool<'a>),
    Subset(ChatToolSubset<'a>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatNamedTool<'a> {
    Function { function: ChatToolName<'a> },
    Custom { custom: ChatToolName<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct ChatToolName<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatToolSubset<'a> {
    AllowedTools { allowed_tools: ChatAllowedTools<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct ChatAllowedTools<'a> {
    mode: &'static str,
    tools: Vec<ChatNamedTool<'a>>,
}

/// Encodes `tool_choice`. Upstreams refuse it in a request without tools: there it is left out, and
/// reported where it would have forced a call.
pub(super) fn encode_tool_choice<'a>(
    request: &'a Request<'_>,
    losses: &mut Losses,
) -> Option<ChatToolChoice<'a>> {
    let choice = request.tool_choice.as_ref()?;
    if request.tools.is_empty() {
        if !matches!(choice, ToolChoice::Auto | ToolChoice::None) {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
        }
        return None;
    }
    let custom = request.tools.iter();
    let custom = custom.filter(|tool| tool.kind == ToolKind::Custom);
    let custom: HashSet<&str> = custom.map(|tool| &*tool.name).collect();
    let named_tool = |name: &'a str| {
        let is_custom = custom.contains(name);
        let name = ChatToolName { name };
        if is_custom {
            ChatNamedTool::Custom { custom: name }
        } else {
            ChatNamedTool::Function { function: name }
        }
    };
    Some(match choice {
        // The format cannot force a hosted tool.
        ToolChoice::Hosted(_) => {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            return None;
        }
        // All of the allowed tools are hosted ones, which the format does not have.
        ToolChoice::Subset { names, .. } if names.is_empty() => {
            losses.approximated(FieldLocation::Setting(Setting::ToolChoice));
            ChatToolChoice::Mode("none")
        }
        ToolChoice::Auto => ChatToolChoice::Mode("auto"),
        ToolChoice::None => ChatToolChoice::Mode("none"),
        ToolChoice::Required => ChatToolChoice::Mode("required"),
        ToolChoice::One(name) => ChatToolChoice::One(named_tool(name)),
        ToolChoice::Subset { names, required } => {
            ChatToolChoice::Subset(ChatToolSubset::AllowedTools {
                allowed_tools: ChatAllowedTools {
                    mode: if *required { "required" } else { "auto" },
                    tools: names.iter().map(|name| named_tool(name)).collect(),
                },
            })
        }
    })
}
