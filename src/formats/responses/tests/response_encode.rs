//! JSON responses to clients, by finish and by part.

use serde_json::{Value, json};

use super::*;
use crate::formats::Framing;
use crate::model::{Action, Issuer, Media, Signature, Source, TranslationState, Usage};

pub(in crate::formats::responses) fn options(model: &str) -> ResponseOptions {
    ResponseOptions {
        model: model.to_owned(),
        stream: false,
        framing: Framing::Sse,
        include_usage: false,
        request_id: "req-1".to_owned(),
        created_at: 1_760_000_009,
        translation_state: TranslationState::default(),
    }
}

fn response<'a>(parts: Vec<PartKind<'a>>, finish: Finish<'a>) -> Response<'a> {
    let parts = parts.into_iter().map(|kind| Part { kind, at: None });
    Response {
        id: "chatcmpl-1".into(),
        model: "upstream-name".into(),
        created: 1_760_000_000,
        choices: vec![Choice {
            parts: parts.collect(),
            citations: Vec::new(),
            logprobs: Vec::new(),
            finish,
        }],
        usage: None,
    }
}

fn encoded(response: &Response<'_>) -> Value {
    serde_json::from_slice(&Responses.encode_response(
        response,
        &options("m-1"),
        &mut Losses::default(),
    ))
    .expect("JSON")
}

fn text(text: &str) -> PartKind<'_> {
    PartKind::Text(text.into())
}

fn call<'a>(id: Option<&'a str>, arguments: Arguments<'a>) -> Call<'a> {
    Call {
        id: id.map(Into::into),
        name: "get_weather".into(),
        arguments,
        signature: None,
        kind: ToolKind::Function,
    }
}

#[test]
fn a_response_has_every_required_field() {
    let mut response = response(vec![text("Hi there.")], Finish::Stop);
    response.usage = Some(Usage {
        input: 100,
        cached: 80,
        cache_written: 15,
        output: 30,
        thinking: 20,
        ..Usage::default()
    });
    let bytes = Responses.encode_response(&response, &options("m-1"), &mut Losses::default());
    assert_eq!(
        String::from_utf8(bytes).expect("text"),
        concat!(
            r#"{"id":"resp_1","object":"response","created_at":1760000000,"status":"completed","#,
            r#""error":null,"incomplete_details":null,"model":"m-1","output":[{"type":"message","#,
            r#""id":"msg_1_0","status":"completed","role":"assistant","content":[{"#,
            r#""type":"output_text","text":"Hi there.","annotations":[]}]}],"#,
            r#""parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{"#,
            r#""input_tokens":100,"input_tokens_details":{"cached_tokens":80,"#,
            r#""cache_write_tokens":15},"output_tokens":30,"output_tokens_details":{"#,
            r#""reasoning_tokens":20},"total_tokens":130}}"#
        )
    );
}

#[test]
fn missing_fields_are_filled_from_the_request_except_usage() {
    let mut response = response(Vec::new(), Finish::Stop);
    (response.id, response.created) = ("".into(), 0);
    let value: Value = serde_json::from_slice(&Responses.encode_response(
        &response,
        &options(""),
        &mut Losses::default(),
    ))
    .expect("JSON");
    assert_eq!(value["id"], "resp_req-1");
    assert_eq!(value["created_at"], 1_760_000_009);
    assert_eq!(value["model"], "upstream-name");
    assert_eq!(value["usage"], Value::Null);
    assert_eq!(value["output"], json!([]));
}

#[test]
fn ids_change_their_prefix_only() {
    for (upstream, id) in [
        ("chatcmpl-a-b", "resp_a-b"),
        ("msg_7", "resp_7"),
        ("resp-1", "resp_1"),
        ("resp_1", "resp_1"),
        ("odd", "resp_odd"),
    ] {
        let mut response = response(Vec::new(), Finish::Stop);
        response.id = upstream.into();
        assert_eq!(encoded(&response)["id"], id);
    }
}

#[test]
fn finishes_become_status_and_reason() {
    let parts = || {
        vec![
            text("a"),
            PartKind::Call(call(Some("c"), Arguments::Text("{".into()))),
        ]
    };
    for (finish, status, reason) in [
        (Finish::Stop, "completed", Value::Null),
        (
            Finish::StopSequence(Some("END".into())),
            "completed",
            Value::Null,
        ),
        (Finish::Tools, "completed", Value::Null),
        (Finish::Refused, "completed", Value::Null),
        (Finish::Paused, "completed", Value::Null),
        (Finish::MalformedCall, "completed", Value::Null),
        (Finish::Other, "completed", Value::Null),
        (
            Finish::Length,
            "incomplete",
            json!({"reason":"max_output_tokens"}),
        ),
        (
            Finish::ContextFull,
            "incomplete",
            json!({"reason":"max_output_tokens"}),
        ),
        (
            Finish::Filtered(None),
            "incomplete",
            json!({"reason":"content_filter"}),
        ),
    ] {
        let value = encoded(&response(parts(), finish));
        assert_eq!(value["status"], status);
        assert_eq!(value["incomplete_details"], reason);
        assert_eq!(value["output"][0]["status"], "completed");
        assert_eq!(value["output"][1]["status"], status, "only the last is cut");
        assert_eq!(
            value["output"][1]["arguments"], "{",
            "a truncated call is encoded as it is"
        );
    }
}

#[test]
fn the_message_of_a_filter_is_a_refusal() {
    let finish = Finish::Filtered(Some("Prompt blocked: SAFETY".into()));
    let value = encoded(&response(Vec::new(), finish));
    assert_eq!(value["status"], "incomplete");
    assert_eq!(
        value["output"][0]["content"],
        json!([{"type":"refusal","refusal":"Prompt blocked: SAFETY"}])
    );
}

#[test]
fn calls_keep_their_ids_or_derive_one_from_the_response() {
    let tree = serde_json::from_str(r#"{"z":1,"a":"b"}"#).expect("JSON");
    let mut custom = call(Some("c2"), Arguments::Text("SELECT".into()));
    custom.kind = ToolKind::Custom;
    let mut response = response(
        vec![
            PartKind::Call(call(Some("call_1"), Arguments::Tree(tree))),
            PartKind::Call(custom),
            PartKind::Call(call(None, Arguments::Text("".into()))),
        ],
        Finish::Tools,
    );
    response.id = "resp-1".into();
    let made = crate::formats::ids::call_id("resp-1", 0, 2);
    assert_eq!(
        encoded(&response)["output"],
        json!([
            {"type":"function_call","id":"fc_call_1","call_id":"call_1","name":"get_weather",
             "arguments":"{\"z\":1,\"a\":\"b\"}","status":"completed"},
            {"type":"custom_tool_call","id":"ctc_c2","call_id":"c2","name":"get_weather",
             "input":"SELECT","status":"completed"},
            {"type":"function_call","id":format!("fc_{made}"),"call_id":made,
             "name":"get_weather","arguments":"{}","status":"completed"},
        ])
    );
}

#[test]
fn foreign_signatures_are_wrapped_and_a_calls_signature_stands_before_it() {
    let signature = |issuer, data: &'static str| {
        Some(Signature {
            issuer,
            data: data.into(),
        })
    };
    let reasoning = |text: &'static str, signature| PartKind::Reasoning {
        text: text.into(),
        signature,
    };
    let mut signed = call(Some("c"), Arguments::Text("{}".into()));
    signed.signature = signature(Issuer::Native, "Q2lRQmU5L2U=");
    let value = encoded(&response(
        vec![
            reasoning("Let me think.", signature(Issuer::Thinking, "RXJVQkNrWUlB")),
            reasoning("", signature(Issuer::Redacted, "EmwKAhgBEgy")),
            reasoning("", None),
            reasoning("own", signature(Issuer::Responses, "rs_7\ngAAAA")),
            PartKind::Call(signed),
        ],
        Finish::Tools,
    ));
    let mut output = value["output"].as_array().expect("items").clone();
    assert_eq!(output.pop().expect("a call")["type"], "function_call");
    assert_eq!(
        Value::Array(output),
        json!([
            {"type":"reasoning","id":"rs_1_0",
             "summary":[{"type":"summary_text","text":"Let me think."}],
             "encrypted_content":"b21uaWdsb3QvMSBtClJYSlZRa05yV1VsQg=="},
            {"type":"reasoning","id":"rs_1_1","summary":[],
             "encrypted_content":"b21uaWdsb3QvMSByCkVtd0tBaGdCRWd5"},
            {"type":"reasoning","id":"rs_7","summary":[{"type":"summary_text","text":"own"}],
             "encrypted_content":"gAAAA"},
            {"type":"reasoning","id":"rs_1_3","summary":[],
             "encrypted_content":"b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ=="},
        ])
    );
}

#[test]
fn texts_between_calls_are_joined_and_citations_count_from_their_start() {
    let mut response = response(
        vec![
            text("Café open."),
            text(" "),
            text("Rome is hot."),
            PartKind::Call(call(Some("c"), Arguments::Text("{}".into()))),
            text("Done."),
            PartKind::Refusal("No.".into()),
        ],
        Finish::Stop,
    );
    let citation = |start, end, title: Option<&'static str>| Citation {
        url: "https://a.example/1".into(),
        title: title.map(Into::into),
        start,
        end,
    };
    response.choices[0].citations = vec![citation(11, 23, Some("A")), citation(23, 28, None)];
    let output = encoded(&response)["output"].clone();
    assert_eq!(
        output[0]["content"],
        json!([{"type":"output_text","text":"Café open. Rome is hot.","annotations":[
            {"type":"url_citation","start_index":11,"end_index":23,
             "url":"https://a.example/1","title":"A"}]}])
    );
    assert_eq!(
        output[2]["content"],
        json!([{"type":"output_text","text":"Done.","annotations":[
            {"type":"url_citation","start_index":0,"end_index":5,
             "url":"https://a.example/1","title":""}]},
            {"type":"refusal","refusal":"No."}])
    );
}

#[test]
fn log_probabilities_and_images_are_encoded() {
    let image = |mime: &'static str, source| {
        PartKind::Media(Media {
            mime: mime.into(),
            source,
            name: None,
            detail: None,
        })
    };
    let mut response = response(
        vec![
            image("image/png", Source::Base64("AAAA".into())),
            image("audio/wav", Source::Base64("BBBB".into())),
            text("é"),
        ],
        Finish::Stop,
    );
    response.choices[0].logprobs = vec![Logprob {
        token: "é".into(),
        logprob: -0.5,
        top: vec![("e".into(), -1.0)],
    }];
    assert_eq!(
        encoded(&response)["output"],
        json!([
            {"type":"image_generation_call","id":"ig_1_0","result":"AAAA","status":"completed"},
            {"type":"message","id":"msg_1_1","status":"completed","role":"assistant","content":[
                {"type":"output_text","text":"é","annotations":[],"logprobs":[
                    {"token":"é","bytes":[195,169],"logprob":-0.5,"top_logprobs":[
                        {"token":"e","bytes":[101],"logprob":-1.0}]}]}]},
        ])
    );
}

#[test]
fn fields_without_counterpart_are_reported() {
    let actions = |response: &Response<'_>| {
        let mut losses = Losses::default();
        Responses.encode_response(response, &options("m-1"), &mut losses);
        losses.0.iter().map(|loss| loss.action).collect::<Vec<_>>()
    };
    for (finish, expected) in [
        (Finish::Stop, vec![]),
        (Finish::StopSequence(None), vec![]),
        (
            Finish::StopSequence(Some("END".into())),
            vec![Action::Dropped],
        ),
        (Finish::Paused, vec![Action::Approximated]),
        (Finish::ContextFull, vec![Action::Approximated]),
        (Finish::Filtered(Some("No.".into())), vec![]),
    ] {
        assert_eq!(actions(&response(vec![text("Hi")], finish)), expected);
    }
    let sound = PartKind::Media(Media {
        mime: "audio/wav".into(),
        source: Source::Base64("AAAA".into()),
        name: None,
        detail: None,
    });
    let mut response = response(vec![sound], Finish::Stop);
    response.choices.push(response.choices[0].clone());
    assert_eq!(actions(&response), [Action::Dropped, Action::Dropped]);
}
