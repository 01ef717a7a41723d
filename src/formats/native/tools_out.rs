//! What the model may call and whether it must, as an upstream of this format takes it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::schema_encoder::{self, Written, report};
use crate::formats::free_text::grammar_in_words;
use crate::model::{
    FieldLocation, Json, Losses, Request, Search, Setting, Text, Tool, ToolChoice, ToolKind,
};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ToolEntry<'a> {
    Functions {
        #[serde(rename = "functionDeclarations")]
        declarations: Vec<Declaration<'a>>,
    },
    Code {
        #[serde(rename = "codeExecution")]
        options: Nothing,
    },
    /// Named after the vendor.
    Search(BTreeMap<String, Nothing>),
}

#[derive(Serialize)]
pub(super) struct Nothing {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declaration<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<Json<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    function_calling_config: CallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed_function_names: Vec<&'a str>,
}

pub(super) fn write<'a>(
    request: &'a Request<'_>,
    brand: &str,
    losses: &mut Losses,
) -> (Vec<ToolEntry<'a>>, Option<ToolConfig<'a>>) {
    let choice = request.tool_choice.as_ref();
    // Names count only for a model that must call, and none of them would mean any.
    let offered = |tool: &&Tool<'_>| match choice {
        Some(ToolChoice::Subset { names, required }) if !required || names.is_empty() => {
            names.contains(&tool.name)
        }
        _ => true,
    };
    let declared = request.tools.iter().filter(offered);
    let declarations: Vec<_> = declared.map(|tool| declare(tool, losses)).collect();
    let config = write_choice(choice, !declarations.is_empty(), losses);
    let mut tools = Vec::new();
    if !declarations.is_empty() {
        tools.push(ToolEntry::Functions { declarations });
    }
    if let Some(search) = &request.search {
        report_search(search, losses);
        let name = format!("{brand}Search");
        tools.push(ToolEntry::Search([(name, Nothing {})].into()));
    }
    if request.code_execution {
        tools.push(ToolEntry::Code {
            options: Nothing {},
        });
    }
    // Several calls at once cannot be ruled out here.
    if request.parallel_tools == Some(false) {
        losses.dropped(FieldLocation::Setting(Setting::ParallelTools));
    }
    (tools, config)
}

fn declare<'a>(tool: &'a Tool<'_>, losses: &mut Losses) -> Declaration<'a> {
    let place = FieldLocation::Tool { tool: tool.at };
    if tool.strict == Some(true) {
        losses.dropped(FieldLocation::ToolStrict { tool: tool.at });
    }
    let mut declaration = Declaration {
        name: &tool.name,
        description: tool.description.as_deref(),
        parameters: None,
        parameters_json_schema: None,
    };
    if tool.kind == ToolKind::Custom {
        losses.approximated(place);
        declaration.parameters = Some(free_text(tool.schema.as_ref()));
        return declaration;
    }
    match tool.schema.as_ref().map(schema_encoder::write) {
        None => {}
        Some(Written::Plain { schema, exact }) => {
            declaration.parameters_json_schema = Some(schema);
            report(exact, place, losses);
        }
        Some(Written::Dialect { schema, exact }) => {
            declaration.parameters = of_object(schema);
            report(exact, place, losses);
        }
    }
    declaration
}

/// Arguments are an object even where the schema does not say it; here it must, or be left out.
fn of_object(schema: Json<'_>) -> Option<Json<'_>> {
    let Json::Object(mut keywords) = schema else {
        return Some(schema);
    };
    if keywords.is_empty() {
        return None;
    }
    if keywords.get("type").is_none() && keywords.get("anyOf").is_none() {
        keywords.insert("type", "OBJECT".into());
    }
    Some(Json::Object(keywords))
}

/// A tool that takes free text gets it as its only argument.
fn free_text<'a>(grammar: Option<&Json<'_>>) -> Json<'a> {
    let object = |entries: Vec<(&'a str, Json<'a>)>| Json::Object(entries.into());
    let mut input = vec![("type", "STRING".into())];
    if let Some(words) = grammar.and_then(grammar_in_words) {
        input.push(("description", Json::Str(words.into())));
    }
    object(vec![
        ("type", "OBJECT".into()),
        ("properties", object(vec![("input", object(input))])),
        ("required", Json::Array(vec!["input".into()])),
    ])
}

/// `None`: the model is as free as it is unasked.
fn write_choice<'a>(
    choice: Option<&'a ToolChoice<'_>>,
    functions: bool,
    losses: &mut Losses,
) -> Option<ToolConfig<'a>> {
    let choice = choice?;
    let names: &[Text<'_>] = match choice {
        ToolChoice::One(name) => std::slice::from_ref(name),
        ToolChoice::Subset { names, .. } => names,
        _ => &[],
    };
    let mode = match choice {
        ToolChoice::Auto => return None,
        // Only functions can be asked for.
        ToolChoice::Hosted(_) => {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
            return None;
        }
        ToolChoice::Subset {
            required: false, ..
        } => {
            // The others were not declared.
            losses.approximated(FieldLocation::Setting(Setting::ToolChoice));
            return None;
        }
        ToolChoice::None => "NONE",
        ToolChoice::Required | ToolChoice::One(_) | ToolChoice::Subset { .. } => "ANY",
    };
    if !functions {
        if mode == "ANY" {
            losses.dropped(FieldLocation::Setting(Setting::ToolChoice));
        }
        return None;
    }
    Some(ToolConfig {
        function_calling_config: CallingConfig {
            mode,
            allowed_function_names: names.iter().map(|name| &**name).collect(),
        },
    })
}

/// Where and how much to search cannot be said.
fn report_search(search: &Search<'_>, losses: &mut Losses) {
    if *search != Search::default() {
        losses.dropped(FieldLocation::Setting(Setting::Search));
    }
}
