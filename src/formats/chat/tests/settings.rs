//! Settings of a request: sampling, reasoning effort, output, web search, labels.

use serde_json::{Value, json};

use super::{decode, encoded, rejected_setting, setting, translate, with};
use crate::model::{Action, Depth, Effort, Format, OutputFormat, Request, Search, Setting};

#[test]
fn sampling_parameters_are_decoded() {
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
fn values_out_of_range_are_rejected_with_their_path() {
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
        assert_eq!(rejected_setting(settings), key);
    }
    assert_eq!(
        rejected_setting(json!({"modalities": ["text", "film"]})),
        "modalities[1]"
    );
    assert_eq!(rejected_setting(json!({"stop": ["a", 1]})), "stop[1]");
    assert_eq!(
        rejected_setting(json!({"metadata": {"a": "b", "c": 1}})),
        "metadata.c"
    );
}

#[test]
fn max_tokens_is_clamped_to_the_range_of_the_format() {
    let turns = json!([{"role": "user", "content": "A"}]);
    for (options, sent) in [(0, 1), (u64::from(u32::MAX) + 1, u32::MAX)] {
        let body = json!({"model": "m", "max_tokens": options, "messages": turns});
        let (encoded_body, losses) = encoded(Format::Messages, body);
        assert_eq!(encoded_body["max_completion_tokens"], sent);
        assert_eq!(losses, [setting(Action::Approximated, Setting::MaxTokens)]);
    }
}

#[test]
fn capabilities_change_roles_fields_and_efforts() {
    let capabilities = [
        ("chat_system_role", "developer"),
        ("chat_max_field", "max_tokens"),
        ("sampling", "false"),
        ("parallel_switch", "false"),
        ("efforts", "low,high"),
    ];
    let body = json!({
        "model": "m", "instructions": "A", "input": "B", "max_output_tokens": 20,
        "temperature": 1, "top_p": 0.5, "parallel_tool_calls": false,
        "reasoning": {"effort": "medium"},
        "tools": [{"type": "function", "name": "f", "strict": false}],
    });
    let (body, losses) = translate(Format::Responses, &body, &capabilities).expect("encoded");
    assert_eq!(
        body,
        json!({
            "model": "m", "max_tokens": 20, "reasoning_effort": "low",
            "messages": [{"role": "developer", "content": "A"}, {"role": "user", "content": "B"}],
            "tools": [{"type": "function", "function": {"name": "f", "strict": false}}],
        })
    );
    assert_eq!(
        losses,
        [
            setting(Action::Dropped, Setting::ParallelTools),
            setting(Action::Dropped, Setting::Temperature),
            setting(Action::Dropped, Setting::TopP),
            setting(Action::Approximated, Setting::Thinking),
        ]
    );
}

#[test]
fn response_formats_are_decoded() {
    let shape = |format: Value, expected: fn(&Request<'_>) -> bool| {
        decode(
            &with(json!({"response_format": format})),
            |request, dropped| {
                assert!(expected(&request), "{:?}", request.output);
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
        rejected_setting(
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
fn schemas_are_strict_only_if_they_meet_the_rules() {
    let shape = |mime: &str, schema: Value| {
        let body = json!({"contents": [{"parts": [{"text": "A"}]}],
            "generationConfig": {"responseMimeType": mime, "responseJsonSchema": schema}});
        let (body, losses) = encoded(Format::Native, body);
        let actions: Vec<_> = losses.into_iter().map(|(action, _)| action).collect();
        (body["response_format"].clone(), actions)
    };
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let (format, losses) = shape("application/json", closed.clone());
    assert_eq!(
        format,
        json!({"type": "json_schema", "json_schema":
            {"name": "response", "schema": closed, "strict": true}})
    );
    assert_eq!(losses, [Action::Added]);
    let text = json!({"type": "string", "enum": ["a", "b"]});
    let (format, losses) = shape("text/x.enum", text.clone());
    assert_eq!(format["json_schema"]["schema"], text);
    assert_eq!(losses, [Action::Approximated, Action::Added]);
}

#[test]
fn reasoning_effort_is_decoded() {
    for (effort, depth) in [
        ("none", Depth::Off),
        ("minimal", Depth::Effort(Effort::Minimal)),
        ("xhigh", Depth::Effort(Effort::ExtraHigh)),
        ("max", Depth::Effort(Effort::Max)),
    ] {
        decode(&with(json!({"reasoning_effort": effort})), |request, _| {
            assert_eq!(request.thinking.depth, Some(depth));
            assert_eq!(request.thinking.show, None);
        });
    }
}

#[test]
fn a_thinking_budget_becomes_a_reasoning_effort() {
    let effort = |config: Value| {
        let body = json!({"contents": [{"parts": [{"text": "A"}]}],
            "generationConfig": {"thinkingConfig": config}});
        let (body, losses) = encoded(Format::Native, body);
        (body["reasoning_effort"].clone(), losses)
    };
    let approximated = || vec![setting(Action::Approximated, Setting::Thinking)];
    assert_eq!(
        effort(json!({"thinkingBudget": 0})),
        (json!("none"), vec![])
    );
    assert_eq!(effort(json!({"thinkingBudget": -1})), (Value::Null, vec![]));
    assert_eq!(
        effort(json!({"thinkingBudget": 1024})),
        (json!("low"), approximated())
    );
    assert_eq!(
        effort(json!({"thinkingBudget": 8193})),
        (json!("high"), approximated())
    );
    let off = json!({"model": "m", "input": "A", "reasoning": {"effort": "none"}});
    let (body, losses) =
        translate(Format::Responses, &off, &[("efforts", "low,high")]).expect("ok");
    assert_eq!(
        (&body["reasoning_effort"], losses),
        (&json!("low"), approximated())
    );
}

#[test]
fn web_search_and_user_location_are_decoded() {
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
fn web_search_keeps_the_location_and_drops_the_domains() {
    let (body, losses) = encoded(
        Format::Messages,
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "A"}],
            "service_tier": "standard_only", "metadata": {"user_id": "u"},
            "tools": [{"type": "web_search_20250305", "name": "web_search",
                "allowed_domains": ["a.example"],
                "user_location": {"type": "approximate", "city": "Rome"}}]}),
    );
    assert_eq!(
        body["web_search_options"],
        json!({"user_location": {"type": "approximate", "approximate": {"city": "Rome"}}})
    );
    assert_eq!(
        (&body["service_tier"], &body["user"]),
        (&json!("default"), &json!("u"))
    );
    assert_eq!(losses, [setting(Action::Dropped, Setting::Search)]);
}

#[test]
fn labels_and_stream_options_are_decoded() {
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
fn fields_without_a_counterpart_are_reported_with_their_path() {
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
