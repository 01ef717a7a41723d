//! What the model may call, and whether it must.

use super::field_names::{self, Spellings};
use super::request::no_counterpart;
use super::schema::to_json_schema;
use super::setting_rules::MODES;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, FieldLocation, Json, Losses, Request, Search, Tool, ToolChoice, ToolKind,
};

/// Kinds of tools that only this format's own upstreams have.
const FOREIGN: [Spellings; 6] = [
    field_names::MAPS,
    &["urlContext", "url_context"],
    &["fileSearch", "file_search"],
    &["computerUse", "computer_use"],
    &["mcpServers", "mcp_servers"],
    &["retrieval"],
];

const SEARCHES: [Spellings; 2] = [field_names::SEARCH, field_names::SEARCH_RETRIEVAL];

pub(super) fn read_tools<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.each(|number, node| node.fields(|fields| read_tool(number, fields, request, losses)))
}

fn read_tool<'a>(
    number: u32,
    mut fields: Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    field_names::each(&mut fields, field_names::DECLARATIONS, |at, node| {
        let tool = node.fields(|fields| read_declaration(place(number, at), fields, losses))?;
        request.tools.push(tool);
        Ok(())
    })?;
    for search in SEARCHES {
        if let Some(node) = field_names::node(&mut fields, search) {
            report_details(node, losses)?;
            request.search = Some(Search::default());
        }
    }
    if let Some(node) = field_names::node(&mut fields, field_names::CODE_EXECUTION) {
        report_details(node, losses)?;
        request.code_execution = true;
    }
    for foreign in FOREIGN {
        if let Some(node) = field_names::node(&mut fields, foreign) {
            return Err(no_counterpart(&node.path));
        }
    }
    fields.finish(losses);
    Ok(())
}

/// That the tool is there is all that other formats can be told.
fn report_details(node: Node<'_, '_>, losses: &mut Losses) -> Result<(), ApiError> {
    node.fields(|details| {
        details.finish(losses);
        Ok(())
    })
}

/// Declarations stand in lists inside a list: the outer number in the upper half, the inner below.
fn place(tool: u32, declaration: u32) -> u32 {
    tool << 16 | declaration & 0xffff
}

fn read_declaration<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let name = fields.text("name")?;
    let name = fields.need("name", name)?;
    let description = fields.text("description")?;
    let plain = read_schema(fields.node("parameters"), losses)?;
    let exact = field_names::node(&mut fields, field_names::JSON_PARAMETERS);
    let schema = plain.or(read_schema(exact, losses)?);
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

pub(super) fn read_schema<'a>(
    node: Option<Node<'a, '_>>,
    losses: &mut Losses,
) -> Result<Option<Json<'a>>, ApiError> {
    match node {
        None => Ok(None),
        Some(Node { value, path }) if value.is_object() => {
            Ok(Some(to_json_schema(value, &path, losses)))
        }
        Some(node) => Err(node.path.wrong("a schema object")),
    }
}

pub(super) fn read_config<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        if let Some(node) = field_names::node(&mut fields, field_names::FUNCTION_CALLING) {
            request.tool_choice = node.fields(|fields| read_choice(fields, losses))?;
        }
        field_names::report(&mut fields, field_names::RETRIEVAL_CONFIG, losses);
        fields.finish(losses);
        Ok(())
    })
}

fn read_choice<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<ToolChoice<'a>>, ApiError> {
    let mode = field_names::word(&mut fields, &["mode"], MODES);
    let mut names = Vec::new();
    if let Some(node) = field_names::node(&mut fields, field_names::ALLOWED_NAMES) {
        let path = node.path.to_string();
        names = field_names::texts(node)?;
        // Names count only beside a mode that restricts.
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
