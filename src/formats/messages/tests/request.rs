//! The top level, the settings and the output format of a request.

use serde_json::json;

use super::{decode, decode_lossless, dropped, encode_chat, encode_from, refused, with};
use crate::model::{Action, FieldLocation, Format, OutputFormat, Sampling, Setting};

#[test]
fn max_tokens_and_sampling_are_decoded() {
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
    assert_eq!(decode_lossless(&body).sampling, expected);
}

#[test]
fn invalid_values_are_refused_by_their_path() {
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
fn max_tokens_is_optional() {
    let request = decode_lossless(r#"{"model":"m-1","messages":[{"role":"user","content":"Hi"}]}"#);
    assert_eq!(request.sampling.max_tokens, None);
}

#[test]
fn an_output_schema_is_strict() {
    let body = with(
        r#""output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{}}}}"#,
    );
    let OutputFormat::Schema {
        name: None,
        description: None,
        schema,
        strict: Some(true),
    } = decode_lossless(&body).output.format
    else {
        panic!("a nameless strict schema");
    };
    let schema = serde_json::to_string(&schema).expect("JSON");
    assert_eq!(schema, r#"{"type":"object","properties":{}}"#);
}

#[test]
fn metadata_and_service_tier_are_decoded() {
    let body = with(r#""metadata":{"user_id":"u-1"},"service_tier":"standard_only""#);
    let labels = decode_lossless(&body).labels;
    assert_eq!(labels.user.as_deref(), Some("u-1"));
    assert_eq!(labels.service_tier.as_deref(), Some("default"));
}

#[test]
fn unsupported_fields_are_reported_and_state_is_refused() {
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

#[test]
fn settings_that_the_format_lacks_are_reported() {
    let (body, losses) = encode_chat(
        json!({
            "n": 2, "seed": 1, "presence_penalty": 1, "frequency_penalty": 1, "logprobs": true,
            "top_logprobs": 2, "verbosity": "low", "metadata": {"a": "b"}, "prompt_cache_key": "k",
            "temperature": 0.5, "top_p": 0.5, "response_format": {"type": "json_object"},
            "stop": ["END", " "], "service_tier": "default",
        }),
        &[],
    );
    assert_eq!(losses, [Action::Dropped; 12]);
    assert_eq!(body["stop_sequences"], json!(["END"]));
    assert_eq!(body["service_tier"], "standard_only");
    assert_eq!(encode_chat(json!({"n": 1}), &[]).1, []);
    let (body, losses) = encode_chat(json!({"service_tier": "flex"}), &[]);
    assert_eq!(body["service_tier"], "auto");
    assert_eq!(losses, [Action::Approximated]);
}

#[test]
fn the_first_version_takes_sampling_unless_it_thinks() {
    let first = ("messages_version", "2023-06-01");
    let sampling = json!({"temperature": 0.5, "top_p": 0.5});
    let (body, losses) = encode_chat(sampling.clone(), &[first]);
    assert_eq!(
        (&body["temperature"], &body["top_p"]),
        (&json!(0.5), &json!(0.5))
    );
    assert_eq!(losses, []);
    let (_, losses) = encode_chat(sampling.clone(), &[first, ("messages_sampling", "false")]);
    assert_eq!(losses, [Action::Dropped; 2]);
    let mut thinking = sampling;
    thinking["reasoning_effort"] = json!("high");
    let (body, losses) = encode_chat(thinking, &[first]);
    assert_eq!(body.get("temperature"), None);
    assert_eq!(losses, [Action::Dropped]);
}

#[test]
fn schemas_are_closed_and_unsupported_keywords_described() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "type": {"type": "string", "maxLength": 9, "description": "Kind."},
            "pick": {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "many": {"type": "array", "minItems": 1,
                "items": {"type": "object", "properties": {}, "additionalProperties": true}},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["type"],
    });
    let (body, losses) = encode_chat(
        json!({"response_format":
            {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}),
        &[],
    );
    assert_eq!(
        body["output_config"]["format"],
        json!({"type": "json_schema", "schema": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "description": "Kind.\n\n{maxLength: 9}"},
                "pick": {"anyOf": [
                    {"type": "integer", "description": "{minimum: 1}"}, {"type": "null"}]},
                "many": {"type": "array", "minItems": 1,
                    "items": {"type": "object", "properties": {}, "additionalProperties": false}},
                "when": {"type": "string", "format": "date"},
            },
            "required": ["type"],
            "additionalProperties": false,
        }})
    );
    assert_eq!(
        losses,
        [Action::Dropped, Action::Added, Action::Approximated]
    );
}

#[test]
fn an_enum_is_encoded_as_a_schema() {
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}],
        "generationConfig": {"maxOutputTokens": 9, "responseMimeType": "text/x.enum",
            "responseSchema": {"type": "STRING", "enum": ["a", "b"]}}});
    let (sent, losses) = encode_from(Format::Native, &body, &[], None).expect("a good request");
    let schema = json!({"type": "string", "enum": ["a", "b"]});
    assert_eq!(sent["output_config"]["format"]["schema"], schema);
    assert_eq!(losses.len(), 1);
}

#[test]
fn locations_have_the_paths_of_the_format() {
    let part = |turn, part| FieldLocation::Part { turn, part };
    for (location, path) in [
        (FieldLocation::Path("a.b".into()), "a.b"),
        (FieldLocation::Setting(Setting::Stop), "stop_sequences"),
        (
            FieldLocation::Setting(Setting::OutputFormat),
            "output_config.format",
        ),
        (FieldLocation::Turn { turn: Some(3) }, "messages[3]"),
        (FieldLocation::Turn { turn: None }, "system"),
        (part(Some(3), Some(1)), "messages[3].content[1]"),
        (part(Some(3), None), "messages[3].content"),
        (part(None, Some(1)), "system[1]"),
        (part(None, None), "system"),
        (FieldLocation::Tool { tool: 2 }, "tools[2]"),
    ] {
        assert_eq!(Format::Messages.codec().path_of(&location), path);
    }
}
