//! Tools and the choice among them, in today's spelling and in the deprecated one of functions.

use super::request::{needed, object, one_of};
use crate::json::{Fields, Node};
use crate::model::{ApiError, Json, Losses, Text, Tool, ToolChoice, ToolKind};

pub(super) const KINDS: [(&str, ToolKind); 2] = [
    ("function", ToolKind::Function),
    ("custom", ToolKind::Custom),
];

pub(super) fn read<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Tool<'a>>, ApiError> {
    let mut tools = Vec::new();
    fields.each("tools", |at, node| {
        tools.push(node.fields(|tool| read_tool(tool, at, losses))?);
        Ok(())
    })?;
    fields.each("functions", |at, node| {
        tools.push(node.fields(|function| read_function(function, at, losses))?);
        Ok(())
    })?;
    Ok(tools)
}

fn read_tool<'a>(
    mut fields: Fields<'a, '_>,
    at: u32,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let tool = match one_of(needed(&mut fields, "type")?, &KINDS)? {
        ToolKind::Function => needed(&mut fields, "function")?
            .fields(|function| read_function(function, at, losses))?,
        ToolKind::Custom => {
            needed(&mut fields, "custom")?.fields(|custom| read_custom(custom, at, losses))?
        }
    };
    fields.finish(losses);
    Ok(tool)
}

fn read_function<'a>(
    mut fields: Fields<'a, '_>,
    at: u32,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let tool = Tool {
        name: needed(&mut fields, "name")?.text()?,
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

fn read_custom<'a>(
    mut fields: Fields<'a, '_>,
    at: u32,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let name = needed(&mut fields, "name")?.text()?;
    let description = fields.text("description")?;
    let grammar = match fields.node("format") {
        Some(format) => format.fields(|format| read_grammar(format, losses))?,
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

fn read_grammar<'a>(
    mut format: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Json<'a>>, ApiError> {
    let kinds = [("text", false), ("grammar", true)];
    let grammar = if one_of(needed(&mut format, "type")?, &kinds)? {
        Some(object(needed(&mut format, "grammar")?)?)
    } else {
        None
    };
    format.finish(losses);
    Ok(grammar)
}

pub(super) fn read_choice<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<ToolChoice<'a>>, ApiError> {
    if let Some(node) = fields.node("tool_choice") {
        return match node.value {
            Json::Object(_) => node.fields(|choice| read_object_choice(choice, losses)),
            _ => read_word_choice(node),
        }
        .map(Some);
    }
    let Some(node) = fields.node("function_call") else {
        return Ok(None);
    };
    match node.value {
        Json::Object(_) => node
            .fields(|function| read_name(function, losses))
            .map(ToolChoice::One),
        _ => read_word_choice(node),
    }
    .map(Some)
}

fn read_word_choice<'a>(node: Node<'a, '_>) -> Result<ToolChoice<'a>, ApiError> {
    #[derive(Clone, Copy)]
    enum Word {
        None,
        Auto,
        Required,
    }
    let words = [
        ("none", Word::None),
        ("auto", Word::Auto),
        ("required", Word::Required),
    ];
    Ok(match one_of(node, &words)? {
        Word::None => ToolChoice::None,
        Word::Auto => ToolChoice::Auto,
        Word::Required => ToolChoice::Required,
    })
}

fn read_object_choice<'a>(
    mut choice: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, ApiError> {
    let kinds = [
        ("function", "function"),
        ("custom", "custom"),
        ("allowed_tools", "allowed_tools"),
    ];
    let kind = one_of(needed(&mut choice, "type")?, &kinds)?;
    let inner = needed(&mut choice, kind)?;
    let read = if kind == "allowed_tools" {
        inner.fields(|allowed| read_allowed(allowed, losses))?
    } else {
        ToolChoice::One(inner.fields(|tool| read_name(tool, losses))?)
    };
    choice.finish(losses);
    Ok(read)
}

fn read_allowed<'a>(
    mut allowed: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, ApiError> {
    let modes = [("auto", false), ("required", true)];
    let required = one_of(needed(&mut allowed, "mode")?, &modes)?;
    let mut names = Vec::new();
    needed(&mut allowed, "tools")?.each(|_, node| {
        names.push(node.fields(|mut tool| {
            let key = match one_of(needed(&mut tool, "type")?, &KINDS)? {
                ToolKind::Function => "function",
                ToolKind::Custom => "custom",
            };
            let name = needed(&mut tool, key)?.fields(|tool| read_name(tool, losses))?;
            tool.finish(losses);
            Ok(name)
        })?);
        Ok(())
    })?;
    allowed.finish(losses);
    Ok(ToolChoice::Subset { names, required })
}

fn read_name<'a>(mut tool: Fields<'a, '_>, losses: &mut Losses) -> Result<Text<'a>, ApiError> {
    let name = needed(&mut tool, "name")?.text()?;
    tool.finish(losses);
    Ok(name)
}
