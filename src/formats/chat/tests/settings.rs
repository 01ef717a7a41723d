//! Everything of a request that is not its messages.

use serde_json::{Value, json};

use super::{decode, refuse, with};
use crate::model::{Depth, Effort, OutputFormat, Request, Search, ToolChoice, ToolKind};

fn refused_at(settings: Value) -> String {
    refuse(&with(settings)).param.clone().expect("a param")
}

#[test]
fn sampling_goes_into_the_model() {
    let body = with(json!({
        "max_completion_tokens": 100, "temperature": 0.2, "top_p": 0.9, "n": 2, "stop": ["END"],
        "seed": -7, "presence_penalty": 0.5, "frequency_penalty": -2, "logprobs": true,
        "top_logprobs": 3,
    }));
    decode(&body, |request, dropped| {
        let sampling = request.sampling;
        assert_eq!(sampling.max_tokens, Some(100));
        assert_eq!(
            (sampling.temperature, sampling.top_p),
            (Some(0.2), Some(0.9))
        );
        assert_eq!((sampling.choices, sampling.seed), (Some(2), Some(-7)));
        assert_eq!(sampling.stop, ["END"]);
        assert_eq!(sampling.presence_penalty, Some(0.5));
        assert_eq!(sampling.frequency_penalty, Some(-2.0));
        assert_eq!((sampling.logprobs, sampling.top_logprobs), (true, Some(3)));
        assert!(dropped.is_empty());
    });
    decode(
        &with(json!({"max_tokens": 5, "stop": "END", "temperature": null})),
        |request, _| {
            assert_eq!(request.sampling.max_tokens, Some(5));
            assert_eq!(request.sampling.stop, ["END"]);
            assert_eq!(request.sampling.temperature, None);
        },
    );
    decode(
        &with(json!({"max_tokens": 5, "max_completion_tokens": 6})),
        |request, dropped| {
            assert_eq!(request.sampling.max_tokens, Some(6));
            assert_eq!(dropped, ["max_tokens"]);
        },
    );
}

#[test]
fn values_outside_their_range_are_refused_by_name() {
    for (key, value) in [
        ("temperature", json!(2.1)),
        ("temperature", json!("hot")),
        ("top_p", json!(-0.1)),
        ("n", json!(0)),
        ("n", json!(129)),
        ("n", json!(1.5)),
        ("stop", json!(["a", "b", "c", "d", "e"])),
        ("max_completion_tokens", json!(0)),
        ("max_tokens", json!(-1)),
        ("presence_penalty", json!(3)),
        ("frequency_penalty", json!(-3)),
        ("top_logprobs", json!(21)),
        ("top_logprobs", json!(2)),
        ("reasoning_effort", json!("enormous")),
        ("verbosity", json!("chatty")),
        ("stream", json!("yes")),
        ("metadata", json!([])),
        ("tool_choice", json!("maybe")),
        ("model", json!(7)),
        ("store", json!(1)),
    ] {
        let mut settings = json!({});
        settings[key] = value;
        assert_eq!(refused_at(settings), key);
    }
    assert_eq!(
        refused_at(json!({"modalities": ["text", "film"]})),
        "modalities[1]"
    );
    assert_eq!(refused_at(json!({"stop": ["a", 1]})), "stop[1]");
    assert_eq!(
        refused_at(json!({"metadata": {"a": "b", "c": 1}})),
        "metadata.c"
    );
}

#[test]
fn tools_keep_their_schema_grammar_and_place() {
    let body = with(json!({"tools": [
        {"type": "function", "function": {"name": "a", "description": "d", "strict": true,
            "parameters": {"type": "object", "properties": {"type": {"const": 1}}}}},
        {"type": "function", "function": {"name": "b"}},
        {"type": "custom", "custom": {"name": "c", "format": {"type": "grammar",
            "grammar": {"syntax": "lark", "definition": "start: /x/"}}}},
        {"type": "custom", "custom": {"name": "d", "format": {"type": "text"}}, "extra": 1},
    ], "parallel_tool_calls": false}));
    decode(&body, |request, dropped| {
        let tools = &request.tools;
        let schema = |at: usize| tools[at].schema.as_ref().map(ToString::to_string);
        assert_eq!(
            schema(0).as_deref(),
            Some(r#"{"properties":{"type":{"const":1}},"type":"object"}"#)
        );
        assert_eq!((tools[0].strict, tools[0].at), (Some(true), 0));
        assert_eq!(tools[0].description.as_deref(), Some("d"));
        assert_eq!((schema(1), tools[1].strict, tools[1].at), (None, None, 1));
        assert_eq!(tools[1].kind, ToolKind::Function);
        assert_eq!(
            schema(2).as_deref(),
            Some(r#"{"definition":"start: /x/","syntax":"lark"}"#)
        );
        assert_eq!((tools[2].kind, schema(3)), (ToolKind::Custom, None));
        assert_eq!(request.parallel_tools, Some(false));
        assert_eq!(dropped, ["tools[3].extra"]);
    });
    let hosted = refuse(&with(
        json!({"tools": [{"type": "mcp", "server_label": "x"}]}),
    ));
    assert_eq!(hosted.param.as_deref(), Some("tools[0].type"));
    assert!(hosted.message.contains("mcp"));
}

#[test]
fn tool_choices_of_every_spelling() {
    let one = |name: &'static str| ToolChoice::One(name.into());
    let subset = |required| ToolChoice::Subset {
        names: vec!["a".into(), "b".into()],
        required,
    };
    let allowed = |mode: &str| {
        json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [
            {"type": "function", "function": {"name": "a"}},
            {"type": "custom", "custom": {"name": "b"}},
        ]}})
    };
    for (choice, want) in [
        (json!("auto"), ToolChoice::Auto),
        (json!("none"), ToolChoice::None),
        (json!("required"), ToolChoice::Required),
        (
            json!({"type": "function", "function": {"name": "a"}}),
            one("a"),
        ),
        (json!({"type": "custom", "custom": {"name": "b"}}), one("b")),
        (allowed("required"), subset(true)),
        (allowed("auto"), subset(false)),
    ] {
        decode(&with(json!({"tool_choice": choice})), |request, dropped| {
            assert_eq!(request.tool_choice, Some(want));
            assert!(dropped.is_empty());
        });
    }
    assert_eq!(
        refused_at(json!({"tool_choice": {"type": "function"}})),
        "tool_choice.function"
    );
}

#[test]
fn the_deprecated_functions_are_tools() {
    let body = with(json!({
        "functions": [{"name": "f", "parameters": {}}], "function_call": {"name": "f"},
    }));
    decode(&body, |request, dropped| {
        assert_eq!(request.tools[0].name, "f");
        assert_eq!(request.tool_choice, Some(ToolChoice::One("f".into())));
        assert!(dropped.is_empty());
    });
    decode(&with(json!({"function_call": "none"})), |request, _| {
        assert_eq!(request.tool_choice, Some(ToolChoice::None));
    });
}

#[test]
fn the_shape_of_the_answer() {
    let shape = |format: Value, want: fn(&Request<'_>) -> bool| {
        decode(
            &with(json!({"response_format": format})),
            |request, dropped| {
                assert!(want(&request), "{:?}", request.output);
                assert!(dropped.is_empty());
            },
        );
    };
    shape(json!({"type": "text"}), |request| {
        request.output.format == OutputFormat::Text
    });
    shape(json!({"type": "json_object"}), |request| {
        request.output.format == OutputFormat::Json
    });
    shape(
        json!({"type": "json_schema", "json_schema": {"name": "p", "description": "d",
            "schema": {"type": "object"}, "strict": true}}),
        |request| {
            matches!(&request.output.format, OutputFormat::Schema { name: Some(name), description: Some(_),
                schema, strict: Some(true) }
                if name == "p" && schema.to_string() == r#"{"type":"object"}"#)
        },
    );
    assert_eq!(
        refused_at(
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "p"}}})
        ),
        "response_format.json_schema.schema"
    );
    let output = json!({"modalities": ["text", "image"], "verbosity": "low"});
    decode(&with(output), |request, dropped| {
        assert!(request.output.images);
        assert_eq!(request.output.verbosity.as_deref(), Some("low"));
        assert!(dropped.is_empty());
    });
}

#[test]
fn effort_is_how_deep_to_think() {
    for (word, depth) in [
        ("none", Depth::Off),
        ("minimal", Depth::Effort(Effort::Minimal)),
        ("xhigh", Depth::Effort(Effort::ExtraHigh)),
        ("max", Depth::Effort(Effort::Max)),
    ] {
        decode(&with(json!({"reasoning_effort": word})), |request, _| {
            assert_eq!(request.thinking.depth, Some(depth));
            assert_eq!(request.thinking.show, None);
        });
    }
}

#[test]
fn search_and_where_the_searcher_is() {
    decode(&with(json!({"web_search_options": {}})), |request, _| {
        assert_eq!(request.search, Some(Search::default()));
    });
    let options = json!({"search_context_size": "low", "user_location": {"type": "approximate",
        "approximate": {"city": "Rome", "country": "IT", "region": "Lazio", "timezone": "Europe/Rome"}}});
    decode(
        &with(json!({"web_search_options": options})),
        |request, dropped| {
            let search = request.search.expect("a search");
            assert_eq!(search.context_size.as_deref(), Some("low"));
            assert_eq!(
                (search.city, search.country),
                (Some("Rome".into()), Some("IT".into()))
            );
            assert_eq!(search.region.as_deref(), Some("Lazio"));
            assert_eq!(search.timezone.as_deref(), Some("Europe/Rome"));
            assert!(dropped.is_empty());
        },
    );
}

#[test]
fn labels_and_delivery() {
    let body = with(json!({
        "service_tier": "flex", "metadata": {"k": "v"}, "user": "u", "prompt_cache_key": "c",
        "stream": true, "stream_options": {"include_usage": true, "include_obfuscation": false},
        "store": false,
    }));
    decode(&body, |request, dropped| {
        let labels = request.labels;
        assert_eq!(
            (labels.user, labels.cache_key),
            (Some("u".into()), Some("c".into()))
        );
        assert_eq!(labels.service_tier.as_deref(), Some("flex"));
        assert_eq!(
            labels.metadata.map(|map| map.to_string()).as_deref(),
            Some(r#"{"k":"v"}"#)
        );
        assert!(dropped.is_empty());
    });
    decode(
        &with(json!({"safety_identifier": "s"})),
        |request, dropped| {
            assert_eq!(request.labels.user.as_deref(), Some("s"));
            assert!(dropped.is_empty());
        },
    );
}

#[test]
fn what_has_no_counterpart_is_reported_with_its_path() {
    let body = with(json!({
        "logit_bias": {"1": 2}, "prediction": {"type": "content", "content": "x"}, "store": true,
        "moderation": null, "prompt_cache_retention": "24h", "made_up": 1,
        "stream_options": {"include_obfuscation": true},
    }));
    decode(&body, |_, mut dropped| {
        dropped.sort();
        assert_eq!(
            dropped,
            [
                "logit_bias",
                "made_up",
                "prediction",
                "prompt_cache_retention",
                "store",
                "stream_options.include_obfuscation",
            ]
        );
    });
}
