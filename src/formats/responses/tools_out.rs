//! Tools, and how the model may choose among them, for an upstream of this format.

use serde::Serialize;

use super::picture::{self, Painting};
use super::strict;
use crate::model::{
    FieldLocation, HostedTool, Json, Losses, Request, Search, Setting, Text, ToolChoice, ToolKind,
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Tool<'r> {
    Function {
        name: &'r str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'r str>,
        parameters: Parameters<'r>,
        /// Written always: left out, the upstream makes the schema strict by itself.
        strict: bool,
    },
    Custom {
        name: &'r str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'r str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<Grammar<'r>>,
    },
    WebSearch {
        #[serde(skip_serializing_if = "Option::is_none")]
        search_context_size: Option<&'r str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        filters: Option<Filters<'r>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user_location: Option<Location<'r>>,
    },
    CodeInterpreter {
        container: Container,
    },
    ImageGeneration(Painting<'r>),
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Parameters<'r> {
    Given(&'r Json<'r>),
    None(NoParameters),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "object")]
pub(super) struct NoParameters {
    properties: Empty,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(tag = "type", rename = "grammar")]
pub(super) struct Grammar<'r> {
    syntax: &'r str,
    definition: &'r str,
}

#[derive(Serialize)]
pub(super) struct Filters<'r> {
    allowed_domains: &'r [Text<'r>],
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "approximate")]
pub(super) struct Location<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'r str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "auto")]
pub(super) struct Container {}

pub(super) fn write<'r>(request: &'r Request<'_>, losses: &mut Losses) -> Vec<Tool<'r>> {
    let own = request.tools.iter().map(|tool| write_own(tool, losses));
    let mut tools: Vec<Tool<'r>> = own.collect();
    tools.extend(request.search.as_ref().map(write_search));
    if request.code_execution {
        let container = Container {};
        tools.push(Tool::CodeInterpreter { container });
    }
    if request.output.images {
        let painting = picture::write(&request.output.image_options, losses);
        tools.push(Tool::ImageGeneration(painting));
    } else {
        request.output.image_options.drop_all(losses);
    }
    tools
}

fn write_own<'r>(tool: &'r crate::model::Tool<'_>, losses: &mut Losses) -> Tool<'r> {
    let name = &*tool.name;
    let description = tool.description.as_deref();
    if tool.kind == ToolKind::Custom {
        let format = tool.schema.as_ref().and_then(grammar);
        return Tool::Custom {
            name,
            description,
            format,
        };
    }
    let asked = tool.strict == Some(true);
    let strict = asked && tool.schema.as_ref().is_some_and(strict::fits);
    if strict != asked {
        losses.approximated(FieldLocation::ToolStrict { tool: tool.at });
    }
    Tool::Function {
        name,
        description,
        parameters: match &tool.schema {
            Some(schema) => Parameters::Given(schema),
            None => Parameters::None(NoParameters {
                properties: Empty {},
            }),
        },
        strict,
    }
}

fn grammar<'r>(schema: &'r Json<'_>) -> Option<Grammar<'r>> {
    let fields = schema.as_object()?;
    Some(Grammar {
        syntax: fields.get("syntax")?.as_str()?,
        definition: fields.get("definition")?.as_str()?,
    })
}

fn write_search<'r>(search: &'r Search<'_>) -> Tool<'r> {
    let place = [
        &search.city,
        &search.region,
        &search.country,
        &search.timezone,
    ];
    let located = place.into_iter().any(Option::is_some);
    let allowed_domains = search.allowed_domains.as_slice();
    Tool::WebSearch {
        search_context_size: search.context_size.as_deref(),
        filters: (!allowed_domains.is_empty()).then_some(Filters { allowed_domains }),
        user_location: located.then_some(Location {
            city: search.city.as_deref(),
            region: search.region.as_deref(),
            country: search.country.as_deref(),
            timezone: search.timezone.as_deref(),
        }),
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Choice<'r> {
    Word(&'static str),
    One(Named<'r>),
    Hosted { r#type: &'static str },
    Subset(Allowed<'r>),
}

#[derive(Serialize)]
pub(super) struct Named<'r> {
    r#type: &'static str,
    name: &'r str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "allowed_tools")]
pub(super) struct Allowed<'r> {
    mode: &'static str,
    tools: Vec<Named<'r>>,
}

pub(super) fn choose<'r>(request: &'r Request<'_>, losses: &mut Losses) -> Option<Choice<'r>> {
    let named = |name: &'r Text<'_>| Named {
        r#type: match request.tools.iter().find(|tool| tool.name == *name) {
            Some(tool) if tool.kind == ToolKind::Custom => "custom",
            _ => "function",
        },
        name,
    };
    Some(match request.tool_choice.as_ref()? {
        ToolChoice::Auto => Choice::Word("auto"),
        ToolChoice::None => Choice::Word("none"),
        ToolChoice::Required => Choice::Word("required"),
        ToolChoice::One(name) => Choice::One(named(name)),
        ToolChoice::Hosted(tool) if !request.has(*tool) => {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            return None;
        }
        ToolChoice::Hosted(tool) => Choice::Hosted {
            r#type: match tool {
                HostedTool::Search => "web_search",
                HostedTool::CodeExecution => "code_interpreter",
            },
        },
        ToolChoice::Subset { names, required } => Choice::Subset(Allowed {
            mode: if *required { "required" } else { "auto" },
            tools: names.iter().map(named).collect(),
        }),
    })
}
