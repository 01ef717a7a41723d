//! Tools and the choice among them, read into the model.

use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, HostedTool, Losses, Request, Search, Text, Tool, ToolChoice, ToolKind,
};

pub(super) fn read<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    fields.each("tools", |at, node| {
        node.fields(|mut fields| {
            read_tool(at, &mut fields, request, losses)?;
            fields.finish(losses);
            Ok(())
        })
    })?;
    match fields.node("tool_choice") {
        Some(node) => read_choice(node, request, losses),
        None => Ok(()),
    }
}

/// Hosted tools carry the date of their version in their type.
fn read_tool<'a>(
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
            request.tools.push(read_function(at, name, fields)?);
        }
        Some(kind) if kind.starts_with("web_search_") => {
            request.search = Some(read_search(fields, losses)?);
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

fn read_function<'a>(
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

fn read_search<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Search<'a>, ApiError> {
    let mut search = Search::default();
    fields.each("allowed_domains", |_, node| {
        search.allowed_domains.push(node.text()?);
        Ok(())
    })?;
    let Some(node) = fields.node("user_location") else {
        return Ok(search);
    };
    node.fields(|mut fields| {
        fields.text("type")?;
        search.city = fields.text("city")?;
        search.region = fields.text("region")?;
        search.country = fields.text("country")?;
        search.timezone = fields.text("timezone")?;
        fields.finish(losses);
        Ok(search)
    })
}

/// In a choice, nothing but the name tells the upstream's own tools from functions.
pub(super) const fn name_of(tool: HostedTool) -> &'static str {
    match tool {
        HostedTool::Search => "web_search",
        HostedTool::CodeExecution => "code_execution",
    }
}

fn choose_one<'a>(name: Text<'a>, request: &Request<'_>) -> ToolChoice<'a> {
    let is_function = request.tools.iter().any(|tool| tool.name == name);
    let hosted = [HostedTool::Search, HostedTool::CodeExecution]
        .into_iter()
        .find(|tool| name_of(*tool) == name && request.has(*tool));
    match hosted {
        Some(tool) if !is_function => ToolChoice::Hosted(tool),
        _ => ToolChoice::One(name),
    }
}

fn read_choice<'a>(
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
                choose_one(fields.need("name", name)?, request)
            }
            _ => return Err(Path::Key(&fields.path, "type").wrong("auto, any, tool or none")),
        });
        let one_at_a_time = fields.bool("disable_parallel_tool_use")?;
        request.parallel_tools = one_at_a_time.map(|one_at_a_time| !one_at_a_time);
        fields.finish(losses);
        Ok(())
    })
}
