//! Requests of clients: settings, their losses and refusals.

use super::*;
use crate::model::{Action, Depth, Effort, OutputFormat, Thinking};

fn decoded(body: &str) -> (Request<'_>, Vec<String>) {
    let mut losses = Losses::default();
    let request = Responses
        .decode_request(&RequestHead::default(), body.as_bytes(), &mut losses)
        .expect("a valid request");
    let paths = losses.0.into_iter().map(|loss| match loss.location {
        FieldLocation::Path(path) if loss.action == Action::Dropped => path.into_owned(),
        other => panic!("{other:?}"),
    });
    (request, paths.collect())
}

fn param_of_error(body: &str) -> String {
    let api_error = Responses
        .decode_request(
            &RequestHead::default(),
            body.as_bytes(),
            &mut Losses::default(),
        )
        .expect_err("a bad request");
    assert_eq!(api_error.status, 400);
    api_error.param.clone().unwrap_or_default()
}

fn text(text: &str, at: Option<u32>) -> Part<'_> {
    Part {
        kind: PartKind::Text(text.into()),
        at,
    }
}

#[test]
fn instructions_and_a_bare_string_are_fields_of_their_own() {
    let (request, losses) = decoded(r#"{"model":"m","instructions":"Be brief.","input":"Hello"}"#);
    let turns = [(Role::System, "Be brief."), (Role::User, "Hello")];
    assert_eq!(
        request.turns,
        turns.map(|(role, content)| Turn {
            role,
            parts: vec![text(content, None)],
            at: None,
        })
    );
    assert!(losses.is_empty());
    assert_eq!(
        decoded(r#"{"input":"x","instructions":""}"#).0.turns.len(),
        1
    );
}

#[test]
fn settings_are_decoded_without_a_loss() {
    let (request, losses) = decoded(
        r#"{"model":"m","input":"x","max_output_tokens":100,"temperature":2,"top_p":0.9,
            "top_logprobs":3,"include":["message.output_text.logprobs","reasoning.encrypted_content"],
            "reasoning":{"effort":"xhigh","summary":"auto"},"parallel_tool_calls":false,
            "text":{"format":{"type":"json_object"},"verbosity":"low"},
            "user":"u-1","prompt_cache_key":"k","service_tier":"flex","metadata":{"a":"b"},
            "store":false,"stream":true,"stream_options":{"include_obfuscation":false},
            "truncation":"disabled","background":false,"previous_response_id":null,"prompt":null}"#,
    );
    assert_eq!(losses, [""; 0]);
    assert_eq!(request.sampling.max_tokens, Some(100));
    assert_eq!(request.sampling.temperature, Some(2.0));
    assert_eq!(request.sampling.top_p, Some(0.9));
    assert!(request.sampling.logprobs);
    assert_eq!(request.sampling.top_logprobs, Some(3));
    let thinking = Thinking {
        depth: Some(Depth::Effort(Effort::ExtraHigh)),
        show: Some(true),
    };
    assert_eq!(request.thinking, thinking);
    assert_eq!(request.parallel_tools, Some(false));
    assert_eq!(request.output.format, OutputFormat::Json);
    assert_eq!(request.output.verbosity.as_deref(), Some("low"));
    assert_eq!(request.labels.user.as_deref(), Some("u-1"));
    assert_eq!(request.labels.cache_key.as_deref(), Some("k"));
    assert_eq!(request.labels.service_tier.as_deref(), Some("flex"));
    assert!(request.labels.metadata.is_some());
}

#[test]
fn absent_and_null_settings_stay_unset() {
    let (request, losses) =
        decoded(r#"{"input":"x","reasoning":{"effort":null},"top_logprobs":null}"#);
    assert_eq!(request.thinking, Thinking::default());
    assert_eq!(request.sampling, crate::model::Sampling::default());
    assert_eq!(request.labels, crate::model::Labels::default());
    assert!(losses.is_empty());
}

#[test]
fn every_effort_is_decoded() {
    let depth = |effort: &str| {
        let body = format!(r#"{{"input":"x","reasoning":{{"effort":"{effort}"}}}}"#);
        let (request, _) = decoded(&body);
        (request.thinking.depth, request.thinking.show)
    };
    assert_eq!(depth("none"), (Some(Depth::Off), None));
    for (name, effort) in [
        ("minimal", Effort::Minimal),
        ("low", Effort::Low),
        ("medium", Effort::Medium),
        ("high", Effort::High),
        ("max", Effort::Max),
    ] {
        assert_eq!(depth(name), (Some(Depth::Effort(effort)), None));
    }
}

#[test]
fn a_schema_is_carried_as_it_is() {
    let (request, losses) = decoded(
        r#"{"input":"x","text":{"format":{"type":"json_schema","name":"person","strict":true,
            "description":"d","schema":{"type":"object","z":1,"a":2}}}}"#,
    );
    let OutputFormat::Schema {
        name,
        description,
        schema,
        strict,
    } = request.output.format
    else {
        panic!("no schema");
    };
    assert_eq!(name.as_deref(), Some("person"));
    assert_eq!(description.as_deref(), Some("d"));
    assert_eq!(strict, Some(true));
    assert_eq!(
        serde_json::to_string(&schema).expect("JSON"),
        r#"{"type":"object","z":1,"a":2}"#
    );
    assert!(losses.is_empty());
}

#[test]
fn what_has_no_counterpart_is_reported_with_its_path() {
    let (_, losses) = decoded(
        r#"{"input":"x","include":["reasoning.encrypted_content","web_search_call.results"],
            "reasoning":{"context":"all_turns"},"store":true,"truncation":"auto",
            "stream_options":{"include_obfuscation":true},"user":"u","safety_identifier":"s",
            "text":{"format":{"type":"text"},"novelty":1},"max_tool_calls":3,"client_metadata":{}}"#,
    );
    assert_eq!(
        losses,
        [
            "include[1]",
            "reasoning.context",
            "text.novelty",
            "stream_options.include_obfuscation",
            "store",
            "truncation",
            "safety_identifier",
            "max_tool_calls",
            "client_metadata",
        ]
    );
}

#[test]
fn safety_identifier_is_the_user_where_there_is_no_other() {
    let (request, losses) = decoded(r#"{"input":"x","safety_identifier":"s"}"#);
    assert_eq!(request.labels.user.as_deref(), Some("s"));
    assert!(losses.is_empty());
}

#[test]
fn state_and_values_out_of_range_are_refused_by_name() {
    for (setting, param) in [
        (r#""previous_response_id":"resp_1""#, "previous_response_id"),
        (r#""conversation":{"id":"c"}"#, "conversation"),
        (r#""prompt":{"id":"p"}"#, "prompt"),
        (r#""background":true"#, "background"),
        (r#""max_output_tokens":15"#, "max_output_tokens"),
        (r#""temperature":-1"#, "temperature"),
        (r#""temperature":"hot""#, "temperature"),
        (r#""top_p":1.1"#, "top_p"),
        (r#""top_logprobs":21"#, "top_logprobs"),
        (r#""reasoning":{"effort":"huge"}"#, "reasoning.effort"),
        (r#""reasoning":"high""#, "reasoning"),
        (r#""text":{"verbosity":"loud"}"#, "text.verbosity"),
        (r#""text":{"format":{"type":"xml"}}"#, "text.format.type"),
        (
            r#""text":{"format":{"type":"json_schema","name":"n"}}"#,
            "text.format.schema",
        ),
        (
            r#""text":{"format":{"type":"json_schema","name":"n","schema":-1}}"#,
            "text.format.schema",
        ),
        (r#""metadata":[]"#, "metadata"),
        (r#""metadata":{"a":"b","c":1}"#, "metadata.c"),
        (r#""include":[1]"#, "include[0]"),
        (r#""model":1"#, "model"),
    ] {
        assert_eq!(
            param_of_error(&format!(r#"{{"input":"x",{setting}}}"#)),
            param
        );
    }
    assert_eq!(param_of_error(r#"{"model":"m"}"#), "input");
    assert_eq!(param_of_error(r#"{"input":7}"#), "input");
}
