//! Tools of a request and the choice among them.

use std::borrow::Cow;

use serde::Serialize;
use serde_json_borrow::ObjectAsVec;

use super::schema_out;
use super::tools::name_of;
use crate::formats::Capabilities;
use crate::formats::free_text::grammar_in_words;
use crate::model::{
    self, ApiError, FieldLocation, HostedTool, Json, Losses, PartKind, Request, Search, Setting,
    ToolChoice, ToolKind,
};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Tool<'a> {
    Declared {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        input_schema: Cow<'a, Json<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        strict: bool,
    },
    Search {
        r#type: String,
        name: &'static str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        allowed_domains: &'a [model::Text<'a>],
        #[serde(skip_serializing_if = "Option::is_none")]
        user_location: Option<Location<'a>>,
    },
    Hosted {
        r#type: &'static str,
        name: &'static str,
    },
}

#[derive(Serialize)]
pub(super) struct Location<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct Choice<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_parallel_tool_use: bool,
}

impl Choice<'_> {
    /// The model must call a tool.
    pub(super) fn is_forced(&self) -> bool {
        matches!(self.r#type, "any" | "tool")
    }
}

pub(super) fn write<'a>(
    request: &'a Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Result<(Vec<Tool<'a>>, Option<Choice<'a>>), ApiError> {
    let mut tools = Vec::new();
    for tool in &request.tools {
        if may_call(request.tool_choice.as_ref(), &tool.name) {
            tools.push(declare(tool, losses));
        }
    }
    if let Some(search) = &request.search
        && is_free(HostedTool::Search, request, losses)
    {
        tools.push(write_search(search, capabilities, losses)?);
    }
    if request.code_execution && is_free(HostedTool::CodeExecution, request, losses) {
        tools.push(Tool::Hosted {
            r#type: "code_execution_20250825",
            name: name_of(HostedTool::CodeExecution),
        });
    }
    // Without tools there is nothing to choose from, and saying so would be refused.
    let choice = match &request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::One(_) | ToolChoice::Subset { .. })
            if tools.is_empty() =>
        {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            None
        }
        Some(ToolChoice::Hosted(tool)) if !request.has(*tool) => {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            None
        }
        _ if tools.is_empty() => None,
        choice => write_choice(choice.as_ref(), request.parallel_tools, losses),
    };
    if tools.is_empty() {
        stand_ins(request, &mut tools, losses);
    }
    Ok((tools, choice))
}

/// Whether no function goes by the name of this tool: no two may.
fn is_free(tool: HostedTool, request: &Request<'_>, losses: &mut Losses) -> bool {
    let is_taken = request
        .tools
        .iter()
        .any(|known| known.name == name_of(tool));
    if is_taken {
        losses.dropped(FieldLocation::Setting(match tool {
            HostedTool::Search => Setting::Search,
            HostedTool::CodeExecution => Setting::CodeExecution,
        }));
    }
    !is_taken
}

/// The format cannot name several tools to choose from: the others are left out.
fn may_call(choice: Option<&ToolChoice<'_>>, name: &str) -> bool {
    match choice {
        Some(ToolChoice::Subset { names, .. }) => names.iter().any(|known| known == name),
        _ => true,
    }
}

fn declare<'a>(tool: &'a model::Tool<'_>, losses: &mut Losses) -> Tool<'a> {
    if tool.kind == ToolKind::Custom {
        losses.approximated(FieldLocation::Tool { tool: tool.at });
    }
    let input_schema = match tool.kind {
        ToolKind::Custom => Cow::Owned(free_text(tool.schema.as_ref())),
        ToolKind::Function => input_schema(tool.schema.as_ref()),
    };
    let wanted = tool.strict == Some(true);
    let strict = wanted && schema_out::fits(&input_schema);
    if wanted && !strict {
        losses.dropped(FieldLocation::ToolStrict { tool: tool.at });
    }
    Tool::Declared {
        name: &tool.name,
        description: tool.description.as_deref(),
        input_schema,
        strict,
    }
}

fn object<'a>(entries: Vec<(&'a str, Json<'a>)>) -> Json<'a> {
    Json::Object(ObjectAsVec::from_iter(entries))
}

/// Always that of an object, and always there.
fn input_schema<'a>(schema: Option<&'a Json<'_>>) -> Cow<'a, Json<'a>> {
    match schema {
        Some(schema) if !schema.get("type").is_null() => Cow::Borrowed(schema),
        Some(Json::Object(keywords)) if !keywords.is_empty() => {
            let kind = ("type", Json::Str("object".into()));
            let rest = keywords.iter().map(|(key, value)| (key, value.clone()));
            Cow::Owned(object(std::iter::once(kind).chain(rest).collect()))
        }
        _ => Cow::Owned(object(vec![
            ("type", Json::Str("object".into())),
            ("properties", object(Vec::new())),
        ])),
    }
}

/// Free text is the one property of an object; its grammar can only be told.
fn free_text<'a>(grammar: Option<&'a Json<'_>>) -> Json<'a> {
    let mut input = vec![("type", Json::Str("string".into()))];
    if let Some(words) = grammar.and_then(grammar_in_words) {
        input.push(("description", Json::Str(words.into())));
    }
    object(vec![
        ("type", Json::Str("object".into())),
        ("properties", object(vec![("input", object(input))])),
        ("required", Json::Array(vec![Json::Str("input".into())])),
    ])
}

fn write_search<'a>(
    search: &'a Search<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Result<Tool<'a>, ApiError> {
    let place = FieldLocation::Setting(Setting::Search);
    let Some(version) = capabilities.messages_web_search else {
        let message = "the upstream of this model cannot search the web";
        return Err(ApiError::invalid(message).at_location(place));
    };
    if search.context_size.is_some() {
        losses.dropped(place);
    }
    let location = Location {
        r#type: "approximate",
        city: search.city.as_deref(),
        region: search.region.as_deref(),
        country: search.country.as_deref(),
        timezone: search.timezone.as_deref(),
    };
    let somewhere = [
        &search.city,
        &search.region,
        &search.country,
        &search.timezone,
    ]
    .iter()
    .any(|word| word.is_some());
    Ok(Tool::Search {
        r#type: format!("web_search_{version}"),
        name: name_of(HostedTool::Search),
        allowed_domains: &search.allowed_domains,
        user_location: somewhere.then_some(location),
    })
}

fn write_choice<'a>(
    choice: Option<&'a ToolChoice<'_>>,
    parallel: Option<bool>,
    losses: &mut Losses,
) -> Option<Choice<'a>> {
    let one_at_a_time = parallel == Some(false);
    let (r#type, name) = match choice {
        None if one_at_a_time => ("auto", None),
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
    Some(Choice {
        r#type,
        name,
        // A model that may not call at all takes no further rule.
        disable_parallel_tool_use: one_at_a_time && r#type != "none",
    })
}

/// Calls of earlier turns are refused unless some tool of that name is declared.
fn stand_ins<'a>(request: &'a Request<'_>, tools: &mut Vec<Tool<'a>>, losses: &mut Losses) {
    let mut known: Vec<&str> = Vec::new();
    for part in request.turns.iter().flat_map(|turn| &turn.parts) {
        let PartKind::Call(call) = &part.kind else {
            continue;
        };
        let name = &*call.name;
        if known.contains(&name) {
            continue;
        }
        known.push(name);
        losses.added(FieldLocation::Path("tools".into()));
        tools.push(Tool::Declared {
            name,
            description: None,
            input_schema: input_schema(None),
            strict: false,
        });
    }
}
