//! What the model may call, and whether it must.

use super::schema::to_json_schema;
use super::spelling::{self, Spellings};
use super::validate;
use crate::json::{Fields, Node, Path};
use crate::model::{Fault, Json, Losses, Place, Request, Search, Text, Tool, ToolChoice, ToolKind};

/// Kinds of tools that only this format's own upstreams have.
const FOREIGN: [Spellings; 6] = [
    &["vendorMaps", "vendor_maps", "googleMaps", "google_maps"],
    &["urlContext", "url_context"],
    &["fileSearch", "file_search"],
    &["computerUse", "computer_use"],
    &["mcpServers", "mcp_servers"],
    &["retrieval"],
];

const SEARCHES: [Spellings; 2] = [
    &[
        "vendorSearch",
        "vendor_search",
        "googleSearch",
        "google_search",
    ],
    &["googleSearchRetrieval", "google_search_retrieval"],
];

pub(super) fn read_tools<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), Fault> {
    node.each(|number, node| node.fields(|fields| read_tool(number, fields, request, losses)))
}

fn read_tool<'a>(
    number: u32,
    mut fields: Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), Fault> {
    let declarations: Spellings = &["functionDeclarations", "function_declarations"];
    spelling::each(&mut fields, declarations, |at, node| {
        let tool = node.fields(|fields| read_declaration(place(number, at), fields, losses))?;
        request.tools.push(tool);
        Ok(())
    })?;
    for search in SEARCHES {
        if let Some(node) = spelling::node(&mut fields, search) {
            report_details(node, losses)?;
            request.search = Some(Search::default());
        }
    }
    if let Some(node) = spelling::node(&mut fields, &["codeExecution", "code_execution"]) {
        report_details(node, losses)?;
        request.code_execution = true;
    }
    for foreign in FOREIGN {
        if let Some(node) = spelling::node(&mut fields, foreign) {
            return Err(validate::no_counterpart(&node.path));
        }
    }
    fields.finish(losses);
    Ok(())
}

/// That the tool is there is all that other formats can be told.
fn report_details(node: Node<'_, '_>, losses: &mut Losses) -> Result<(), Fault> {
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
) -> Result<Tool<'a>, Fault> {
    let name = fields.node("name").map(read_name).transpose()?;
    let name = fields.need("name", name)?;
    let description = fields.text("description")?;
    let plain = read_schema(fields.node("parameters"), losses)?;
    let exact: Spellings = &["parametersJsonSchema", "parameters_json_schema"];
    let schema = match (plain, spelling::node(&mut fields, exact)) {
        (Some(_), Some(node)) => return Err(node.path.wrong("no parameters beside it")),
        (plain, None) => plain,
        (None, node) => read_schema(node, losses)?,
    };
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

fn read_name<'a>(node: Node<'a, '_>) -> Result<Text<'a>, Fault> {
    let path = node.path;
    let name = node.text()?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    if (1..=128).contains(&name.len()) && name.bytes().all(legal) {
        return Ok(name);
    }
    Err(path.wrong("up to 128 letters, digits, underscores, dots, colons and dashes"))
}

pub(super) fn read_schema<'a>(
    node: Option<Node<'a, '_>>,
    losses: &mut Losses,
) -> Result<Option<Json<'a>>, Fault> {
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
) -> Result<(), Fault> {
    node.fields(|mut fields| {
        let calling: Spellings = &["functionCallingConfig", "function_calling_config"];
        if let Some(node) = spelling::node(&mut fields, calling) {
            request.tool_choice = node.fields(|fields| read_choice(fields, losses))?;
        }
        let retrieval: Spellings = &["retrievalConfig", "retrieval_config"];
        validate::drop_checked(&mut fields, retrieval, validate::retrieval_config, losses)?;
        fields.finish(losses);
        Ok(())
    })
}

fn read_choice<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<ToolChoice<'a>>, Fault> {
    const MODES: &[&str] = &["AUTO", "ANY", "NONE", "VALIDATED"];
    let mode = match fields.node("mode") {
        Some(node) => validate::word(node, MODES)?,
        None => None,
    };
    let allowed: Spellings = &["allowedFunctionNames", "allowed_function_names"];
    let mut names = Vec::new();
    if let Some(node) = spelling::node(&mut fields, allowed) {
        let path = node.path.to_string();
        names = spelling::texts(node)?;
        // Names count only beside a mode that restricts.
        if !names.is_empty() && !matches!(mode, Some("ANY" | "VALIDATED")) {
            losses.dropped(Place::Path(path.into()));
        }
    }
    if mode == Some("VALIDATED") {
        let path = Path::Key(&fields.path, "mode").to_string();
        losses.approximated(Place::Path(path.into()));
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
