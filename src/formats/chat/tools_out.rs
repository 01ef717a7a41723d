//! Tools and the choice among them.

use serde::Serialize;

use super::shape_out::checked;
use crate::model::{FieldLocation, Json, Losses, Request, Setting, Tool, ToolChoice, ToolKind};

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Declared<'a> {
    Function { function: Function<'a> },
    Custom { custom: Custom<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct Custom<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Grammar<'a>>,
}

#[derive(Debug, Serialize)]
struct Grammar<'a> {
    r#type: &'static str,
    grammar: &'a Json<'a>,
}

pub(super) fn encode<'a>(tool: &'a Tool<'a>, losses: &mut Losses) -> Declared<'a> {
    let place = FieldLocation::ToolStrict { tool: tool.at };
    let name = &*tool.name;
    let description = tool.description.as_deref();
    match tool.kind {
        ToolKind::Function => Declared::Function {
            function: Function {
                name,
                description,
                parameters: tool.schema.as_ref(),
                strict: match (tool.strict, &tool.schema) {
                    (Some(strict), Some(schema)) => Some(checked(strict, schema, place, losses)),
                    (strict, _) => strict,
                },
            },
        },
        ToolKind::Custom => Declared::Custom {
            custom: Custom {
                name,
                description,
                format: tool.schema.as_ref().map(|grammar| Grammar {
                    r#type: "grammar",
                    grammar,
                }),
            },
        },
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Choice<'a> {
    Word(&'static str),
    One(Pointed<'a>),
    Subset(Subset<'a>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Pointed<'a> {
    Function { function: Name<'a> },
    Custom { custom: Name<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Name<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Subset<'a> {
    AllowedTools { allowed_tools: Allowed<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Allowed<'a> {
    mode: &'static str,
    tools: Vec<Pointed<'a>>,
}

/// A choice among no tools at all is refused upstream: it says nothing, unless it forces a call.
pub(super) fn encode_choice<'a>(
    request: &'a Request<'_>,
    losses: &mut Losses,
) -> Option<Choice<'a>> {
    let choice = request.tool_choice.as_ref()?;
    if request.tools.is_empty() {
        if !matches!(choice, ToolChoice::Auto | ToolChoice::None) {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
        }
        return None;
    }
    let pointed = |name: &'a str| {
        let is_custom = |tool: &Tool<'_>| tool.name == name && tool.kind == ToolKind::Custom;
        let is_custom = request.tools.iter().any(is_custom);
        let name = Name { name };
        if is_custom {
            Pointed::Custom { custom: name }
        } else {
            Pointed::Function { function: name }
        }
    };
    Some(match choice {
        // Only functions can be asked for.
        ToolChoice::Hosted(_) => {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            return None;
        }
        // What may be used instead is no tool here.
        ToolChoice::Subset { names, .. } if names.is_empty() => {
            losses.approximated(FieldLocation::Setting(Setting::ToolChoice));
            Choice::Word("none")
        }
        ToolChoice::Auto => Choice::Word("auto"),
        ToolChoice::None => Choice::Word("none"),
        ToolChoice::Required => Choice::Word("required"),
        ToolChoice::One(name) => Choice::One(pointed(name)),
        ToolChoice::Subset { names, required } => Choice::Subset(Subset::AllowedTools {
            allowed_tools: Allowed {
                mode: if *required { "required" } else { "auto" },
                tools: names.iter().map(|name| pointed(name)).collect(),
            },
        }),
    })
}
