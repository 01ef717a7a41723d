//! Tools and choices of every kind, their losses and refusals.

use super::super::tool_choice;
use super::*;
use crate::model::{Search, ToolChoice};

fn decode_body<'a>(body: &'a str, losses: &mut Losses) -> Result<Request<'a>, ApiError> {
    let mut request = Request::default();
    let mut fields = Fields::of_body(body.as_bytes())?;
    decode(&mut fields, &mut request, losses)?;
    tool_choice::decode(&mut fields, &mut request, losses)?;
    Ok(request)
}

fn request(body: &str) -> (Request<'_>, Vec<String>) {
    let mut losses = Losses::default();
    let request = decode_body(body, &mut losses).expect("valid tools");
    let paths = losses.0.into_iter().map(|loss| match loss.location {
        FieldLocation::Path(path) => path.into_owned(),
        other => panic!("{other:?}"),
    });
    (request, paths.collect())
}

#[test]
fn functions_keep_schema_strictness_and_index() {
    let (request, losses) = request(
        r#"{"tools":[{"type":"web_search"},{"type":"function","name":"w","description":"d",
            "parameters":{"type":"object"},"strict":false},
            {"type":"function","name":"n","parameters":null,"defer_loading":true}]}"#,
    );
    assert_eq!(request.tools.len(), 2);
    let tool = &request.tools[0];
    assert_eq!((tool.name.as_ref(), tool.at), ("w", 1));
    assert_eq!(tool.description.as_deref(), Some("d"));
    assert_eq!(tool.strict, Some(false));
    assert_eq!(tool.kind, ToolKind::Function);
    let schema = tool.schema.as_ref().map(ToString::to_string);
    assert_eq!(schema.as_deref(), Some(r#"{"type":"object"}"#));
    assert_eq!(request.tools[1].schema, None);
    assert_eq!(request.search, Some(Search::default()));
    assert_eq!(losses, ["tools[2].defer_loading"]);
}

#[test]
fn free_text_tools_keep_their_grammar() {
    let (request, losses) = request(
        r#"{"tools":[{"type":"custom","name":"a","format":{"type":"text"}},
            {"type":"custom","name":"b","format":{"type":"grammar","syntax":"lark","definition":"x"}}]}"#,
    );
    let kinds: Vec<_> = request.tools.iter().map(|tool| tool.kind).collect();
    assert_eq!(kinds, [ToolKind::Custom; 2]);
    assert_eq!(request.tools[0].schema, None);
    let grammar = serde_json::to_string(&request.tools[1].schema).expect("JSON");
    assert_eq!(grammar, r#"{"syntax":"lark","definition":"x"}"#);
    assert!(losses.is_empty());
}

#[test]
fn tools_of_a_namespace_have_qualified_names() {
    let (request, losses) = request(
        r#"{"tools":[{"type":"namespace","name":"agents","description":"d","tools":[
            {"type":"function","name":"spawn","parameters":{}},
            {"type":"custom","name":"tell"}]}],
            "tool_choice":{"type":"function","namespace":"agents","name":"spawn"}}"#,
    );
    let tools: Vec<_> = request
        .tools
        .iter()
        .map(|tool| (&*tool.name, tool.at))
        .collect();
    assert_eq!(tools, [("agents__spawn", 0), ("agents__tell", 0)]);
    assert_eq!(
        request.tool_choice,
        Some(ToolChoice::One("agents__spawn".into()))
    );
    assert_eq!(losses, ["tools[0].description"]);
}

#[test]
fn hosted_tools_with_a_counterpart_become_settings() {
    let (request, losses) = request(
        r#"{"tools":[{"type":"web_search_preview","search_context_size":"low",
            "filters":{"allowed_domains":["a.example"],"blocked_domains":["b.example"]},
            "user_location":{"type":"approximate","city":"Rome","country":"IT"}},
            {"type":"code_interpreter","container":{"type":"auto"}},
            {"type":"image_generation","quality":"high","novel":1}]}"#,
    );
    let search = request.search.expect("a search");
    assert_eq!(search.context_size.as_deref(), Some("low"));
    assert_eq!(search.city.as_deref(), Some("Rome"));
    assert_eq!(search.country.as_deref(), Some("IT"));
    assert_eq!(search.allowed_domains, ["a.example"]);
    assert!(request.code_execution);
    assert!(request.output.images);
    assert_eq!(
        request.output.image_options.quality.as_deref(),
        Some("high")
    );
    assert_eq!(
        losses,
        ["tools[0].filters.blocked_domains", "tools[2].novel"]
    );
}

#[test]
fn every_choice_is_decoded() {
    let choice = |choice: &str| {
        let body = format!(r#"{{"tool_choice":{choice}}}"#);
        let mut losses = Losses::default();
        let request = decode_body(&body, &mut losses).expect("a valid choice");
        assert_eq!(losses, Losses::default());
        format!("{:?}", request.tool_choice)
    };
    let expected = |choice: ToolChoice<'_>| format!("{:?}", Some(choice));
    assert_eq!(choice(r#""auto""#), expected(ToolChoice::Auto));
    assert_eq!(choice(r#""none""#), expected(ToolChoice::None));
    assert_eq!(choice(r#""required""#), expected(ToolChoice::Required));
    assert_eq!(
        choice(r#"{"type":"custom","name":"a"}"#),
        expected(ToolChoice::One("a".into()))
    );
    for (mode, required) in [("auto", false), ("required", true)] {
        let subset = format!(
            r#"{{"type":"allowed_tools","mode":"{mode}","tools":[{{"type":"function","name":"a"}}]}}"#
        );
        let names = vec!["a".into()];
        assert_eq!(
            choice(&subset),
            expected(ToolChoice::Subset { names, required })
        );
    }
}

#[test]
fn a_choice_of_a_hosted_tool_is_reported() {
    let (request, losses) = request(r#"{"tool_choice":{"type":"web_search_preview"}}"#);
    assert_eq!(request.tool_choice, None);
    assert_eq!(losses, ["tool_choice"]);
}

#[test]
fn invalid_tools_and_choices_are_refused_with_their_path() {
    for (body, param) in [
        (
            r#"{"tools":[{"type":"mcp","server_label":"x"}]}"#,
            "tools[0]",
        ),
        (r#"{"tools":[{"type":"file_search"}]}"#, "tools[0]"),
        (r#"{"tools":[{"type":"tool_search"}]}"#, "tools[0]"),
        (
            r#"{"tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp"}]}]}"#,
            "tools[0].tools[0]",
        ),
        (
            r#"{"tools":[{"type":"code_interpreter","container":"cntr_1"}]}"#,
            "tools[0].container",
        ),
        (r#"{"tools":[{"name":"f"}]}"#, "tools[0].type"),
        (r#"{"tools":[{"type":"function"}]}"#, "tools[0].name"),
        (
            r#"{"tools":[{"type":"function","name":"f","parameters":[]}]}"#,
            "tools[0].parameters",
        ),
        (r#"{"tools":{}}"#, "tools"),
        (r#"{"tool_choice":"maybe"}"#, "tool_choice"),
        (r#"{"tool_choice":{"type":"function"}}"#, "tool_choice.name"),
        (
            r#"{"tool_choice":{"type":"allowed_tools","mode":"any","tools":[]}}"#,
            "tool_choice.mode",
        ),
        (r#"{"parallel_tool_calls":"no"}"#, "parallel_tool_calls"),
    ] {
        let api_error = decode_body(body, &mut Losses::default()).expect_err(body);
        assert_eq!(api_error.status, 400);
        assert_eq!(api_error.param.as_deref(), Some(param), "{body}");
    }
    let api_error =
        decode_body(r#"{"tools":[{"type":"mcp"}]}"#, &mut Losses::default()).expect_err("mcp");
    assert!(api_error.message.contains("mcp"));
}
