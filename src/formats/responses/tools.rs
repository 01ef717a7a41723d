//! Tools, and how the model may choose among them.

use super::picture;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, FieldLocation, HostedTool, Json, Losses, Request, Search, Setting, Text, Tool,
    ToolChoice, ToolKind,
};

pub(super) fn read<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    fields.each("tools", |at, node| {
        node.fields(|fields| read_tool(at, None, fields, request, losses))
    })?;
    if let Some(node) = fields.node("tool_choice") {
        request.tool_choice = read_choice(node, request, losses)?;
    }
    request.parallel_tools = fields.bool("parallel_tool_calls")?;
    Ok(())
}

const SEPARATOR: &str = "__";

/// A tool of a namespace goes by both names, so that two namespaces may hold the same one.
pub(super) fn qualified<'a>(namespace: Option<&str>, name: Text<'a>) -> Text<'a> {
    match namespace {
        Some(namespace) => format!("{namespace}{SEPARATOR}{name}").into(),
        None => name,
    }
}

/// The name that a tool has within its namespace.
pub(super) fn within<'n>(namespace: &str, qualified: &'n str) -> &'n str {
    let rest = qualified.strip_prefix(namespace);
    let name = rest.and_then(|rest| rest.strip_prefix(SEPARATOR));
    name.unwrap_or(qualified)
}

fn read_tool<'a>(
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
            let tool = read_function(at, namespace, &mut fields)?;
            request.tools.push(tool);
        }
        ("custom", _) => {
            let tool = read_custom(at, namespace, &mut fields, losses)?;
            request.tools.push(tool);
        }
        ("namespace", None) => {
            let name = fields.text("name")?;
            let name = fields.need("name", name)?;
            fields.each("tools", |_, node| {
                node.fields(|fields| read_tool(at, Some(&name), fields, request, losses))
            })?;
        }
        ("image_generation", None) => {
            request.output.images = true;
            request.output.image_options = picture::read(&mut fields)?;
        }
        _ => match hosted(&kind).filter(|_| namespace.is_none()) {
            Some(HostedTool::Search) => request.search = Some(read_search(&mut fields, losses)?),
            Some(HostedTool::CodeExecution) => {
                read_container(&mut fields, losses)?;
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

/// The tool that this type stands for, if others have one like it.
fn hosted(kind: &str) -> Option<HostedTool> {
    match kind {
        "web_search"
        | "web_search_2025_08_26"
        | "web_search_preview"
        | "web_search_preview_2025_03_11" => Some(HostedTool::Search),
        "code_interpreter" => Some(HostedTool::CodeExecution),
        _ => None,
    }
}

fn read_function<'a>(
    at: u32,
    namespace: Option<&str>,
    fields: &mut Fields<'a, '_>,
) -> Result<Tool<'a>, ApiError> {
    let name = fields.text("name")?;
    let schema = fields.take("parameters");
    if !matches!(schema, None | Some(Json::Object(_))) {
        return Err(Path::Key(&fields.path, "parameters").wrong("an object"));
    }
    Ok(Tool {
        name: qualified(namespace, fields.need("name", name)?),
        description: fields.text("description")?,
        schema,
        strict: fields.bool("strict")?,
        kind: ToolKind::Function,
        namespace: namespace.map(|namespace| namespace.to_owned().into()),
        at,
    })
}

fn read_custom<'a>(
    at: u32,
    namespace: Option<&str>,
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let name = fields.text("name")?;
    let grammar = match fields.node("format") {
        Some(format) => format.fields(|format| read_grammar(format, losses))?,
        None => None,
    };
    Ok(Tool {
        name: qualified(namespace, fields.need("name", name)?),
        description: fields.text("description")?,
        schema: grammar,
        strict: None,
        kind: ToolKind::Custom,
        namespace: namespace.map(|namespace| namespace.to_owned().into()),
        at,
    })
}

/// `None`: free text, which such a tool takes anyway.
fn read_grammar<'a>(
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

fn read_search<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Search<'a>, ApiError> {
    let mut search = Search {
        context_size: fields.text("search_context_size")?,
        ..Search::default()
    };
    if let Some(filters) = fields.node("filters") {
        filters.fields(|mut fields| {
            fields.each("allowed_domains", |_, node| {
                search.allowed_domains.push(node.text()?);
                Ok(())
            })?;
            fields.finish(losses);
            Ok(())
        })?;
    }
    if let Some(location) = fields.node("user_location") {
        location.fields(|mut fields| {
            // There is one kind of location, `approximate`.
            fields.text("type")?;
            search.city = fields.text("city")?;
            search.region = fields.text("region")?;
            search.country = fields.text("country")?;
            search.timezone = fields.text("timezone")?;
            fields.finish(losses);
            Ok(())
        })?;
    }
    Ok(search)
}

/// Either one made for this request, or the id of one that the vendor keeps.
fn read_container(fields: &mut Fields<'_, '_>, losses: &mut Losses) -> Result<(), ApiError> {
    let Some(node) = fields.node("container") else {
        return Ok(());
    };
    if matches!(node.value, Json::Str(_)) {
        let path = node.path;
        let message = format!("{path}: containers are not kept between requests");
        return Err(ApiError::invalid(message).at(path.to_string()));
    }
    node.fields(|mut fields| {
        fields.text("type")?;
        fields.finish(losses);
        Ok(())
    })
}

/// `None`: a choice that only makes sense where the vendor runs the tool.
fn read_choice<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<Option<ToolChoice<'a>>, ApiError> {
    if let Json::Str(word) = &node.value {
        return match word.as_ref() {
            "auto" => Ok(Some(ToolChoice::Auto)),
            "none" => Ok(Some(ToolChoice::None)),
            "required" => Ok(Some(ToolChoice::Required)),
            _ => Err(node.path.wrong("one of auto, none, required, or an object")),
        };
    }
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        let choice = match fields.need("type", kind)?.as_ref() {
            "function" | "custom" => ToolChoice::One(read_name(&mut fields)?),
            "allowed_tools" => read_subset(&mut fields, request, losses)?,
            kind => match hosted(kind).filter(|tool| request.has(*tool)) {
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

fn read_name<'a>(fields: &mut Fields<'a, '_>) -> Result<Text<'a>, ApiError> {
    let namespace = fields.text("namespace")?;
    let name = fields.text("name")?;
    Ok(qualified(namespace.as_deref(), fields.need("name", name)?))
}

/// Tools of the upstream that are not among them may not be used: they go at once, since no other
/// format's choice speaks of them.
fn read_subset<'a>(
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
    let mut kept = Vec::new();
    fields.each("tools", |_, node| {
        node.fields(|mut fields| {
            let kind = fields.text("type")?;
            match kind.as_deref().unwrap_or_default() {
                "function" | "custom" => names.push(read_name(&mut fields)?),
                kind => match hosted(kind).filter(|tool| request.has(*tool)) {
                    Some(tool) => {
                        losses.approximated(FieldLocation::Path(fields.path.to_string().into()));
                        kept.push(tool);
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
        if request.has(tool) && !kept.contains(&tool) {
            losses.approximated(FieldLocation::Setting(Setting::ToolChoice));
            match tool {
                HostedTool::Search => request.search = None,
                HostedTool::CodeExecution => request.code_execution = false,
            }
        }
    }
    Ok(ToolChoice::Subset { names, required })
}

#[cfg(test)]
#[path = "tests/tools.rs"]
mod tests;
