//! Tests of all formats.

use std::fs;

use serde_json::Value;

use super::{Capabilities, OutputLimit, RequestHead, ResponseObserver};
use crate::model::{Format, InputMedia, Losses};

#[test]
fn the_output_is_limited_where_its_field_is_written_or_would_be() {
    let capabilities = Capabilities::default();
    for (format, bodies) in [
        (
            Format::Chat,
            &[
                r#"{"max_tokens":null}"#,
                r#"{"max_tokens":0,"n":1}"#,
                r#"{"max_completion_tokens":null,"max_tokens":null}"#,
                r#"{"model":"max_tokens"}"#,
                "{}",
            ][..],
        ),
        (Format::Messages, &[r#"{"max_tokens":null}"#, "{}"]),
        (Format::Responses, &[r#"{"max_output_tokens":null}"#, "{}"]),
        (
            Format::Native,
            &[
                r#"{"generationConfig":null}"#,
                r#"{"generation_config":{"maxOutputTokens":null}}"#,
                "{}",
            ],
        ),
    ] {
        for body in bodies {
            let (codec, body) = (format.codec(), body.as_bytes());
            let routing = codec.decode_routing_fields(body).expect("good fields");
            let edits = |may_be_written: bool| {
                let edits = codec.limit_output(body, 7, may_be_written, &capabilities);
                edits.expect("good fields")
            };
            let limited = edits(routing.output_limit.may_be_written);
            assert_eq!(limited, edits(true));
            assert!(!limited.is_empty());
        }
    }
}

#[test]
fn the_output_limit_is_decoded_in_every_format() {
    let limits = |format: Format, body: &str| {
        let fields = format.codec().decode_routing_fields(body.as_bytes());
        let OutputLimit {
            output, choices, ..
        } = fields.expect(body).output_limit;
        (output, choices)
    };
    for (format, body, output, choices) in [
        (Format::Chat, r#"{"max_tokens":7}"#, Some(7), 1),
        (
            Format::Chat,
            r#"{"max_tokens":7,"max_completion_tokens":9,"n":3}"#,
            Some(9),
            3,
        ),
        (Format::Chat, r#"{"max_tokens":1e2,"n":null}"#, Some(100), 1),
        (
            Format::Chat,
            r#"{"max_tokens":9,"max_completion_tokens":7}"#,
            Some(9),
            1,
        ),
        (Format::Chat, r#"{"max_tokens":0,"n":0}"#, None, 1),
        (
            Format::Messages,
            r#"{"max_tokens":7,"messages":[]}"#,
            Some(7),
            1,
        ),
        (Format::Responses, r#"{"max_output_tokens":7}"#, Some(7), 1),
        (
            Format::Native,
            r#"{"generationConfig":{"maxOutputTokens":7,"candidateCount":2}}"#,
            Some(7),
            2,
        ),
        (
            Format::Native,
            r#"{"generation_config":{"max_output_tokens":"7","candidate_count":2}}"#,
            Some(7),
            2,
        ),
        (Format::Native, r#"{"generationConfig":null}"#, None, 1),
    ] {
        assert_eq!(limits(format, body), (output, choices), "{body}");
    }
}

#[test]
fn an_array_in_place_of_a_response_is_refused() {
    for codec in Format::ALL.map(Format::codec) {
        let list = r#"["m",null,null,null,null,null,null,null,null]"#;
        let observer = &mut ResponseObserver::default();
        let bytes = list.as_bytes();
        assert!(codec.observe_response(bytes, observer).is_err());
        assert!(codec.observe_event(list, observer).is_err());
        assert!(
            codec
                .decode_response(bytes, &mut Losses::default())
                .is_err()
        );
        assert!(
            codec
                .stream_decoder()
                .decode_event(list, &mut |_| {})
                .is_err()
        );
    }
}

#[test]
fn a_conversation_in_text_is_recognised_in_every_format() {
    let schema = r#"{"type":"object","properties":{"file":{"type":"string"}}}"#;
    for (format, body) in [
        (
            Format::Chat,
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":null,
            "tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c",
            "content":"url"}],"tools":[{"type":"function","function":{"name":"f","parameters":SCHEMA}}],"stream":true}"#,
        ),
        (
            Format::Messages,
            r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[
            {"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"url":"u"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"b"}]}],
            "tools":[{"name":"f","input_schema":SCHEMA}],"thinking":{"type":"adaptive"}}"#,
        ),
        (
            Format::Native,
            r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"fileUri":"u"}},
            "thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"b"}}}]}],
            "tools":[{"functionDeclarations":[{"name":"f","parameters":SCHEMA}]}],"generationConfig":{"maxOutputTokens":9}}"#,
        ),
        (
            Format::Responses,
            r#"{"model":"m","instructions":"s","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},
            {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"b"}],
            "tools":[{"type":"function","name":"f","parameters":SCHEMA}],"store":false,"max_output_tokens":9}"#,
        ),
    ] {
        let body = body.replace("SCHEMA", schema);
        let findings = format.codec().findings(body.as_bytes());
        assert!(findings.has_only_text, "{body}");
    }
}

/// By the cases of the golden tests: what is recognised without decoding has nothing that a decoder would find.
#[test]
fn what_is_recognised_as_text_has_no_other_input() {
    let (mut recognised, mut others) = (0, 0);
    for (format, body) in golden_requests() {
        let (codec, text) = (format.codec(), body.to_string());
        let head = RequestHead {
            path_model: Some("m"),
            ..RequestHead::default()
        };
        let Ok(media) = codec.input_media(&head, text.as_bytes()) else {
            continue;
        };
        match codec.findings(text.as_bytes()).has_only_text {
            true => assert_eq!(media, InputMedia::default(), "{text}"),
            false => others += 1,
        }
        recognised += usize::from(media == InputMedia::default());
    }
    assert!(recognised > 50 && others > 10, "{recognised} and {others}");
}

/// The inputs of the cases of translation for one format and one kind, as they are sent.
pub(super) fn case_inputs(from: Format, kind: &str) -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    let mut inputs = Vec::new();
    for to in Format::ALL {
        let Ok(files) = fs::read_dir(format!("{root}/{}-{}", from.name(), to.name())) else {
            continue;
        };
        for file in files {
            let text = fs::read(file.expect("a file").path()).expect("cases");
            let file: Value = serde_json::from_slice(&text).expect("JSON");
            let cases = file["cases"].as_array().filter(|_| file["kind"] == kind);
            inputs.extend(cases.into_iter().flatten().map(|case| {
                let input = &case["input"];
                input
                    .as_str()
                    .map_or_else(|| input.to_string(), str::to_owned)
            }));
        }
    }
    inputs
}

fn golden_requests() -> Vec<(Format, Value)> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut requests = Vec::new();
    for format in Format::ALL {
        for upstream in Format::ALL {
            let Ok(cases) = fs::read_dir(format!("{golden}/{}-{}", format.name(), upstream.name()))
            else {
                continue;
            };
            for case in cases {
                let text = fs::read(case.expect("a case").path()).expect("a case");
                let case: Value = serde_json::from_slice(&text).expect("JSON");
                let is_request = case["kind"] == "request" && case["from"] == format.name();
                requests.extend(is_request.then(|| (format, case["input"].clone())));
            }
        }
    }
    requests
}

/// Requests of real clients reserve their own length of a spending cap; those with a tool of the upstream reserve more.
#[test]
fn requests_of_recorded_clients_have_known_fields_only() {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/recordings");
    let mut count = 0;
    for file in fs::read_dir(recordings).expect("recordings") {
        let text = fs::read(file.expect("a file").path()).expect("a recording");
        let recording: Value = serde_json::from_slice(&text).expect("JSON");
        let format = Format::ALL
            .into_iter()
            .find(|format| recording["format"] == format.name());
        let codec = format.expect("a format").codec();
        for request in recording["requests"].as_array().expect("requests") {
            let mut body = request["body"].clone();
            if let Some(tools) = body.get_mut("tools").and_then(Value::as_array_mut) {
                tools.retain(|tool| tool["type"] != "web_search");
            }
            let body = body.to_string();
            let findings = codec.findings(body.as_bytes());
            let unknown = findings.unknown_field;
            assert_eq!(unknown, None, "{}: {body}", recording["client"]);
            assert_eq!(findings.other_model, None, "{body}");
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn a_second_model_is_found_where_an_upstream_looks_for_it() {
    for (format, body, path) in [
        (
            Format::Chat,
            r#"{"model":"m","models":["a"]}"#,
            Some("models"),
        ),
        (Format::Chat, r#"{"Models":["a"]}"#, Some("Models")),
        (Format::Chat, r#"{"fallbacks":["a"]}"#, Some("fallbacks")),
        (
            Format::Chat,
            r#"{"context_window_fallbacks":[{"m":["a"]}]}"#,
            Some("context_window_fallbacks"),
        ),
        (Format::Chat, r#"{"route":"fallback"}"#, Some("route")),
        (
            Format::Chat,
            r#"{"extra_body":{"model":"a"}}"#,
            Some("extra_body"),
        ),
        (
            Format::Chat,
            r#"{"plugins":[{"id":"x","allowed_models":["a"]}]}"#,
            Some("plugins[0].allowed_models"),
        ),
        (
            Format::Chat,
            r#"{"models":null,"moderation":{"model":"a"},"metadata":{"model":"a"}}"#,
            None,
        ),
        (
            Format::Chat,
            r#"{"messages":[{"role":"assistant","content":"x","model":"m"}],"provider":{"allow_fallbacks":true},
            "tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"model":{}}}}}]}"#,
            None,
        ),
        (
            Format::Responses,
            r#"{"tools":[{"type":"image_generation","model":"a"}]}"#,
            Some("tools[0].model"),
        ),
        (
            Format::Responses,
            r#"{"input":[{"type":"additional_tools","tools":[{"type":"image_generation","model":"a"}]}]}"#,
            Some("input[0].tools[0].model"),
        ),
        (
            Format::Responses,
            r#"{"input":[{"type":"function_call","arguments":"{\"model\":1}"}],"client_metadata":{"model":"a"}}"#,
            None,
        ),
        (
            Format::Messages,
            r#"{"tools":[{"type":"advisor_20260301","name":"advisor","model":"a"}]}"#,
            Some("tools[0].model"),
        ),
        (
            Format::Messages,
            r#"{"fallbacks":[{"model":"a"}]}"#,
            Some("fallbacks"),
        ),
        (
            Format::Messages,
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"model":"a"}}]}]}"#,
            None,
        ),
        (
            Format::Native,
            r#"{"generationConfig":{"routingConfig":{"manualMode":{"modelName":"a"}}}}"#,
            Some("generationConfig.routingConfig.manualMode.modelName"),
        ),
        (
            Format::Native,
            r#"{"model":"m","contents":[{"role":"model","parts":[{"functionCall":{"args":{"model":1}}}]}]}"#,
            None,
        ),
        (
            Format::Images,
            r#"{"model":"m","prompt":"x","models":["a"]}"#,
            Some("models"),
        ),
    ] {
        let findings = format.codec().findings(body.as_bytes());
        assert_eq!(findings.other_model.as_deref(), path, "{body}");
    }
}
