//! Which tools the model may or must call: `tool_choice` and `parallel_tool_calls`.

use std::collections::HashMap;

use serde::Serialize;

use super::hosted_tools;
use super::namespaces::qualified_name;
use crate::formats::UpstreamTarget;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, FieldLocation, HostedTool, Json, Losses, Request, Setting, Text, ToolChoice, ToolKind,
};

/// Decodes `tool_choice` and `parallel_tool_calls`.
pub(super) fn decode<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    if let Some(node) = fields.node("tool_choice") {
        request.tool_choice = decode_choice(node, request, losses)?;
    }
    request.parallel_tools = fields.bool("parallel_tool_calls")?;
    Ok(())
}

/// Decodes an object or a mode; `None`: a tool that only the vendor runs.
fn decode_choice<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<Option<ToolChoice<'a>>, ApiError> {
    if let Json::Str(mode) = &node.value {
        return match mode.as_ref() {
            "auto" => Ok(Some(ToolChoice::Auto)),
            "none" => Ok(Some(ToolChoice::None)),
            "required" => Ok(Some(ToolChoice::Required)),
            other => {
                let known = "one of auto, none, required, or an object";
                Err(node.path.wrong_text(known, other))
            }
        };
    }
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        let choice = match fields.need("type", kind)?.as_ref() {
            "function" | "custom" => ToolChoice::One(decode_name(&mut fields)?),
            "allowed_tools" => decode_allowed_tools(&mut fields, request, losses)?,
            kind => match hosted_tools::decode_type(kind).filter(|tool| request.has(*tool)) {
                Some(tool) => ToolChoice::Hosted(tool),
                None => {
                    losses.dropped(FieldLocation::Path(fields.path.to_string().into()));
                    return Ok(None);
                }
            },
        };
        fields.finish(losses);
        Ok(Some(choice))
    })
}

/// Decodes the name of a tool, qualified by its namespace.
fn decode_name<'a>(fields: &mut Fields<'a, '_>) -> Result<Text<'a>, ApiError> {
    let namespace = fields.text("namespace")?;
    let name = fields.text("name")?;
    Ok(qualified_name(
        namespace.as_deref(),
        fields.need("name", name)?,
    ))
}

/// Decodes `allowed_tools`. Hosted tools that are not among them are removed from the request at once: no other
/// format has a choice that could exclude them.
fn decode_allowed_tools<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, ApiError> {
    let mode = fields.text("mode")?;
    let required = match fields.need("mode", mode)?.as_ref() {
        "auto" => false,
        "required" => true,
        _ => return Err(Path::Key(&fields.path, "mode").wrong("one of auto, required")),
    };
    let mut names = Vec::new();
    let mut allowed = Vec::new();
    fields.each("tools", |_, node| {
        node.fields(|mut fields| {
            let kind = fields.text("type")?;
            match kind.as_deref().unwrap_or_default() {
                "function" | "custom" => names.push(decode_name(&mut fields)?),
                kind => match hosted_tools::decode_type(kind).filter(|tool| request.has(*tool)) {
                    Some(tool) => {
                        losses.approximated(FieldLocation::Path(fields.path.to_string().into()));
                        allowed.push(tool);
                    }
                    None => {
                        losses.dropped(FieldLocation::Path(fields.path.to_string().into()));
                        return Ok(());
                    }
                },
            }
            fields.finish(losses);
            Ok(())
        })
    })?;
    for tool in [HostedTool::Search, HostedTool::CodeExecution] {
        if request.has(tool) && !allowed.contains(&tool) {
            losses.approximated(FieldLocation::Setting(Setting::ToolChoice));
            match tool {
                HostedTool::Search => request.search = None,
                HostedTool::CodeExecution => request.code_execution = false,
            }
        }
    }
    Ok(ToolChoice::Subset { names, required })
}

/// `tool_choice` as it is encoded.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResponsesToolChoice<'r> {
    Mode(&'static str),
    Named(NamedTool<'r>),
    Hosted { r#type: &'static str },
    Allowed(AllowedTools<'r>),
}

/// A reference to a tool by its name.
#[derive(Serialize)]
pub(super) struct NamedTool<'r> {
    r#type: &'static str,
    name: &'r str,
}

/// A choice among some of the tools as it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename = "allowed_tools")]
pub(super) struct AllowedTools<'r> {
    mode: &'static str,
    tools: Vec<NamedTool<'r>>,
}

/// Encodes `tool_choice`.
pub(super) fn encode<'r>(
    request: &'r Request<'_>,
    losses: &mut Losses,
) -> Option<ResponsesToolChoice<'r>> {
    let named = |name: &'r Text<'_>, kind: Option<ToolKind>| NamedTool {
        r#type: match kind {
            Some(ToolKind::Custom) => "custom",
            _ => "function",
        },
        name,
    };
    Some(match request.tool_choice.as_ref()? {
        ToolChoice::Auto => ResponsesToolChoice::Mode("auto"),
        ToolChoice::None => ResponsesToolChoice::Mode("none"),
        ToolChoice::Required => ResponsesToolChoice::Mode("required"),
        ToolChoice::One(name) => {
            let tool = request.tools.iter().find(|tool| tool.name == *name);
            ResponsesToolChoice::Named(named(name, tool.map(|tool| tool.kind)))
        }
        ToolChoice::Hosted(tool) if !request.has(*tool) => {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            return None;
        }
        ToolChoice::Hosted(tool) => ResponsesToolChoice::Hosted {
            r#type: hosted_tools::encode_type(*tool),
        },
        ToolChoice::Subset { names, required } => {
            let tools = request.tools.iter();
            // Of several tools of one name the first counts, as it does above.
            let kinds: HashMap<&str, ToolKind> =
                tools.rev().map(|tool| (&*tool.name, tool.kind)).collect();
            let named = |name: &'r Text<'_>| named(name, kinds.get(&**name).copied());
            ResponsesToolChoice::Allowed(AllowedTools {
                mode: if *required { "required" } else { "auto" },
                tools: names.iter().map(named).collect(),
            })
        }
    })
}

/// Encodes `parallel_tool_calls`, which is on by default.
pub(super) fn encode_parallel_tool_calls(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Option<bool> {
    let off = request.parallel_tools.filter(|parallel| !parallel)?;
    if !target.capabilities.parallel_switch {
        losses.dropped(FieldLocation::Setting(Setting::ParallelTools));
        return None;
    }
    Some(off)
}
