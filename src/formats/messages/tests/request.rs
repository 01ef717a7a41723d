//! Settings, tools and labels of a request.

use super::{approximated, decode, dropped, read, refused, with};
use crate::model::{Depth, Effort, OutputFormat, Sampling, Search, Thinking, ToolChoice, ToolKind};

#[test]
fn limits_and_sampling_are_taken() {
    let body = with(
        r#""stop_sequences":["END","---"],"temperature":0.4,"top_p":1,"top_k":20.0,"stream":true,"system":null"#,
    );
    let expected = Sampling {
        max_tokens: Some(9),
        stop: vec!["END".into(), "---".into()],
        temperature: Some(0.4),
        top_p: Some(1.0),
        top_k: Some(20),
        ..Sampling::default()
    };
    assert_eq!(read(&body).sampling, expected);
}

#[test]
fn values_outside_the_format_are_refused_by_their_path() {
    for (fields, param) in [
        (r#""temperature":1.1"#, "temperature"),
        (r#""top_p":-0.1"#, "top_p"),
        (r#""top_k":-1"#, "top_k"),
        (r#""stop_sequences":"END""#, "stop_sequences"),
        (r#""stop_sequences":["a",2]"#, "stop_sequences[1]"),
        (r#""stream":"yes""#, "stream"),
        (r#""service_tier":"flex""#, "service_tier"),
        (r#""metadata":{"user_id":7}"#, "metadata.user_id"),
        (r#""thinking":{}"#, "thinking.type"),
        (r#""thinking":{"type":"deep"}"#, "thinking.type"),
        (r#""thinking":{"type":"enabled"}"#, "thinking.budget_tokens"),
        (
            r#""thinking":{"type":"enabled","budget_tokens":1023}"#,
            "thinking.budget_tokens",
        ),
        (
            r#""thinking":{"type":"adaptive","display":"full"}"#,
            "thinking.display",
        ),
        (
            r#""output_config":{"effort":"minimal"}"#,
            "output_config.effort",
        ),
        (
            r#""output_config":{"format":{"type":"json_object"}}"#,
            "output_config.format.type",
        ),
        (
            r#""output_config":{"format":{"type":"json_schema","schema":true}}"#,
            "output_config.format.schema",
        ),
    ] {
        assert_eq!(refused(&with(fields)), param, "{fields}");
    }
    assert_eq!(refused(r#"{"messages":[]}"#), "model");
    assert_eq!(refused(r#"{"model":"m-1"}"#), "messages");
    assert_eq!(refused(r#"{"model":"m-1","messages":[]}"#), "messages");
    assert_eq!(refused("[]"), "");
}

#[test]
fn token_counts_are_asked_for_without_a_limit() {
    let request = read(r#"{"model":"m-1","messages":[{"role":"user","content":"Hi"}]}"#);
    assert_eq!(request.sampling.max_tokens, None);
}

#[test]
fn thinking_and_effort_make_one_depth() {
    let show = |depth, show| Thinking {
        depth: Some(depth),
        show,
    };
    for (fields, expected) in [
        (
            r#""thinking":{"type":"adaptive"}"#,
            show(Depth::Dynamic, Some(true)),
        ),
        (
            r#""thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"xhigh"}"#,
            show(Depth::Effort(Effort::ExtraHigh), Some(false)),
        ),
        (
            r#""thinking":{"type":"enabled","budget_tokens":4096,"display":"summarized"}"#,
            show(Depth::Budget(4096), Some(true)),
        ),
        (r#""thinking":{"type":"disabled"}"#, show(Depth::Off, None)),
        (
            r#""output_config":{"effort":"low","format":null}"#,
            show(Depth::Effort(Effort::Low), None),
        ),
    ] {
        assert_eq!(read(&with(fields)).thinking, expected, "{fields}");
    }
}

#[test]
fn what_thinking_cannot_say_is_reported() {
    let body = with(r#""thinking":{"type":"between_tools"},"output_config":{"effort":"max"}"#);
    let (request, losses) = decode(&body);
    let depth = request.expect("a good request").thinking.depth;
    assert_eq!(depth, Some(Depth::Effort(Effort::Max)));
    assert_eq!(losses, [approximated("thinking")]);

    let body = with(r#""thinking":{"type":"disabled"},"output_config":{"effort":"max"}"#);
    let (request, losses) = decode(&body);
    assert_eq!(
        request.expect("a good request").thinking.depth,
        Some(Depth::Off)
    );
    assert_eq!(losses, [dropped("output_config.effort")]);
}

#[test]
fn a_schema_holds_the_model_strictly() {
    let body = with(
        r#""output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{}}}}"#,
    );
    let OutputFormat::Schema {
        name: None,
        description: None,
        schema,
        strict: Some(true),
    } = read(&body).output.format
    else {
        panic!("a nameless strict schema");
    };
    let schema = serde_json::to_string(&schema).expect("JSON");
    assert_eq!(schema, r#"{"type":"object","properties":{}}"#);
}

#[test]
fn tools_keep_their_schema_and_their_place() {
    let body = with(
        r#""tools":[{"type":"web_search_20250305","name":"web_search"},
            {"type":"custom","name":"a","description":"does a","input_schema":{"type":"object"},"strict":true},
            {"name":"b","input_schema":{"type":"object"}},
            {"type":"code_execution_20260120","name":"code_execution"}]"#,
    );
    let request = read(&body);
    let [a, b] = &request.tools[..] else {
        panic!("two functions");
    };
    assert_eq!((a.name.as_ref(), a.at, a.strict), ("a", 1, Some(true)));
    assert_eq!(a.description.as_deref(), Some("does a"));
    assert_eq!(
        a.schema.as_ref().map(ToString::to_string).as_deref(),
        Some(r#"{"type":"object"}"#)
    );
    assert_eq!((b.name.as_ref(), b.at, b.strict), ("b", 2, None));
    assert_eq!(b.kind, ToolKind::Function);
    assert_eq!(request.search, Some(Search::default()));
    assert!(request.code_execution);
}

#[test]
fn a_search_says_where_and_what_it_cannot_say_is_reported() {
    let body = with(
        r#""tools":[{"type":"web_search_20260209","name":"web_search","max_uses":3,"allowed_domains":["a.example"],"blocked_domains":null,
            "user_location":{"type":"approximate","city":"Paris","region":"IDF","country":"FR","timezone":"Europe/Paris"}}]"#,
    );
    let (request, losses) = decode(&body);
    let expected = Search {
        context_size: None,
        city: Some("Paris".into()),
        region: Some("IDF".into()),
        country: Some("FR".into()),
        timezone: Some("Europe/Paris".into()),
        allowed_domains: vec!["a.example".into()],
    };
    assert_eq!(request.expect("a good request").search, Some(expected));
    assert_eq!(losses, [dropped("tools[0].max_uses")]);
}

#[test]
fn tools_that_only_their_vendor_has_are_refused_by_name() {
    for kind in [
        "web_fetch_20250910",
        "bash_20250124",
        "text_editor_20250728",
        "memory_20250818",
        "tool_search_tool_regex_20251119",
        "computer_20251124",
        "mcp_toolset",
    ] {
        let body = with(&format!(r#""tools":[{{"type":"{kind}"}}]"#));
        let api_error = decode(&body).0.expect_err("a hosted tool");
        assert_eq!(api_error.param.as_deref(), Some("tools[0].type"));
        assert!(api_error.message.contains(kind), "{}", api_error.message);
    }
    assert_eq!(
        refused(&with(r#""tools":[{"name":"x"}]"#)),
        "tools[0].input_schema"
    );
    assert_eq!(
        refused(&with(r#""tools":[{"input_schema":{}}]"#)),
        "tools[0].name"
    );
}

#[test]
fn the_choice_among_tools_and_its_brake() {
    for (choice, expected, parallel) in [
        (r#"{"type":"auto"}"#, ToolChoice::Auto, None),
        (
            r#"{"type":"any","disable_parallel_tool_use":false}"#,
            ToolChoice::Required,
            Some(true),
        ),
        (
            r#"{"type":"tool","name":"a","disable_parallel_tool_use":true}"#,
            ToolChoice::One("a".into()),
            Some(false),
        ),
        (r#"{"type":"none"}"#, ToolChoice::None, None),
    ] {
        let body = with(&format!(r#""tool_choice":{choice}"#));
        let request = read(&body);
        assert_eq!(request.tool_choice, Some(expected));
        assert_eq!(request.parallel_tools, parallel, "{choice}");
    }
    let nameless = with(r#""tool_choice":{"type":"tool"}"#);
    assert_eq!(refused(&nameless), "tool_choice.name");
    let strange = with(r#""tool_choice":{"type":"some"}"#);
    assert_eq!(refused(&strange), "tool_choice.type");
}

#[test]
fn labels_are_taken_in_neutral_words() {
    let body = with(r#""metadata":{"user_id":"u-1"},"service_tier":"standard_only""#);
    let labels = read(&body).labels;
    assert_eq!(labels.user.as_deref(), Some("u-1"));
    assert_eq!(labels.service_tier.as_deref(), Some("default"));
}

#[test]
fn what_has_no_counterpart_is_reported_and_state_is_refused() {
    let body = with(
        r#""cache_control":{"type":"ephemeral"},"speed":"fast","context_management":{"edits":[]},
            "metadata":{"team":"x"},"mcp_servers":[],"container":null,
            "tools":[{"name":"a","input_schema":{},"defer_loading":true,"cache_control":{"type":"ephemeral"}}]"#,
    );
    let (request, losses) = decode(&body);
    assert!(request.is_ok());
    assert_eq!(
        losses,
        [
            "tools[0].defer_loading",
            "tools[0].cache_control",
            "metadata.team",
            "cache_control",
            "speed",
            "context_management"
        ]
        .map(dropped)
    );
    for (fields, param) in [
        (r#""container":"c-1""#, "container"),
        (r#""mcp_servers":[{"type":"url"}]"#, "mcp_servers"),
        (r#""thread":{"id":"t-1"}"#, "thread"),
    ] {
        assert_eq!(refused(&with(fields)), param);
    }
}
