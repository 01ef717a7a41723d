//! The `tool_choice` of a request.

use serde::Serialize;

use super::hosted_tools::name_of;
use crate::json::{Node, Path};
use crate::model::{
    ApiError, FieldLocation, HostedTool, Losses, Request, Setting, Text, ToolChoice,
};

/// Decodes `tool_choice`. The tools of the request must be decoded before it.
pub(super) fn decode_tool_choice<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        let kind = fields.need("type", kind)?;
        request.tool_choice = Some(match kind.as_ref() {
            "auto" => ToolChoice::Auto,
            "any" => ToolChoice::Required,
            "none" => ToolChoice::None,
            "tool" => {
                let name = fields.text("name")?;
                choice_by_name(fields.need("name", name)?, request)
            }
            _ => return Err(Path::Key(&fields.path, "type").wrong("auto, any, tool or none")),
        });
        let disable_parallel = fields.bool("disable_parallel_tool_use")?;
        request.parallel_tools = disable_parallel.map(|disable| !disable);
        fields.finish(losses);
        Ok(())
    })
}

fn choice_by_name<'a>(name: Text<'a>, request: &Request<'_>) -> ToolChoice<'a> {
    let is_function = request.tools.iter().any(|tool| tool.name == name);
    let hosted = [HostedTool::Search, HostedTool::CodeExecution]
        .into_iter()
        .find(|tool| name_of(*tool) == name && request.has(*tool));
    match hosted {
        Some(tool) if !is_function => ToolChoice::Hosted(tool),
        _ => ToolChoice::One(name),
    }
}

/// The `tool_choice` of a request to an upstream.
#[derive(Serialize)]
pub(super) struct MessagesToolChoice<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_parallel_tool_use: bool,
}

impl MessagesToolChoice<'_> {
    /// Whether the model must call a tool.
    pub(super) fn is_forced(&self) -> bool {
        matches!(self.r#type, "any" | "tool")
    }
}

/// Encodes `tool_choice`. Without tools it is left out: upstreams refuse a choice from nothing.
pub(super) fn encode_tool_choice<'a>(
    request: &'a Request<'_>,
    has_tools: bool,
    losses: &mut Losses,
) -> Option<MessagesToolChoice<'a>> {
    match &request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::One(_) | ToolChoice::Subset { .. })
            if !has_tools =>
        {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            None
        }
        Some(ToolChoice::Hosted(tool)) if !request.has(*tool) => {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            None
        }
        _ if !has_tools => None,
        choice => encode_choice(choice.as_ref(), request.parallel_tools, losses),
    }
}

fn encode_choice<'a>(
    choice: Option<&'a ToolChoice<'_>>,
    parallel: Option<bool>,
    losses: &mut Losses,
) -> Option<MessagesToolChoice<'a>> {
    let disable_parallel = parallel == Some(false);
    let (r#type, name) = match choice {
        None if disable_parallel => ("auto", None),
        None => return None,
        Some(ToolChoice::Auto) => ("auto", None),
        Some(ToolChoice::None) => ("none", None),
        Some(ToolChoice::Required) => ("any", None),
        Some(ToolChoice::One(name)) => ("tool", Some(&**name)),
        Some(ToolChoice::Hosted(tool)) => ("tool", Some(name_of(*tool))),
        Some(ToolChoice::Subset { required, .. }) => {
            losses.approximated(FieldLocation::Setting(Setting::ToolChoice));
            (if *required { "any" } else { "auto" }, None)
        }
    };
    Some(MessagesToolChoice {
        r#type,
        name,
        // The choice `none` does not have this field.
        disable_parallel_tool_use: disable_parallel && r#type != "none",
    })
}
