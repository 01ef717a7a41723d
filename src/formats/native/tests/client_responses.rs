//! Tests of encoding JSON responses for a client.

use serde_json::json;

use super::{call, choice, encode, options, part, parts_of, response, rich, signature, text};
use crate::formats::native::Native;
use crate::formats::{Framing, ResponseCodec as _};
use crate::model::{Arguments, Call, Citation, Finish, Issuer, Json, PartKind, ToolKind, Usage};

#[test]
fn a_response_with_all_fields_is_encoded() {
    assert_eq!(
        encode(&rich()),
        json!({
            "candidates": [
                {
                    "content": {"role": "model", "parts": [
                        {"text": "Let me think.", "thought": true,
                         "thoughtSignature": "b21uaWdsb3QvMSBtClJYSlZRa05yV1VsQg=="},
                        {"text": "Café open. Rome is hot."},
                        {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}, "id": "call_1"}},
                        {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
                    ]},
                    "finishReason": "STOP",
                    "index": 0,
                    "groundingMetadata": {
                        "groundingChunks": [{"web": {"uri": "https://b.example/2", "title": "B"}}],
                        "groundingSupports": [{
                            "segment": {"partIndex": 1, "startIndex": 12, "endIndex": 24, "text": "Rome is hot."},
                            "groundingChunkIndices": [0]
                        }]
                    },
                    "avgLogprobs": -0.5,
                    "logprobsResult": {
                        "topCandidates": [{"candidates": [
                            {"token": "Café", "logProbability": -0.5}, {"token": "Bar", "logProbability": -1.5}
                        ]}],
                        "chosenCandidates": [{"token": "Café", "logProbability": -0.5}]
                    }
                },
                {
                    "content": {"role": "model", "parts": [{"text": "I cannot."}]},
                    "finishReason": "SAFETY",
                    "finishMessage": "Policy.",
                    "index": 1
                }
            ],
            "usageMetadata": {
                "promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 130,
                "cachedContentTokenCount": 80, "thoughtsTokenCount": 20
            },
            "modelVersion": "m-1",
            "createTime": "2025-10-09T08:53:21Z",
            "responseId": "chatcmpl-1"
        })
    );
}

#[test]
fn absent_identity_fields_come_from_the_request() {
    let mut bare = response(vec![choice(vec![], Finish::Stop)]);
    (bare.id, bare.model, bare.created, bare.usage) = ("".into(), "".into(), 0, None);
    assert_eq!(
        encode(&bare),
        json!({
            "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP", "index": 0}],
            "modelVersion": "requested-1",
            "createTime": "2025-10-09T08:53:20Z",
            "responseId": "req-1"
        })
    );
}

#[test]
fn finish_reasons_are_encoded() {
    for (finish, reason) in [
        (Finish::Stop, "STOP"),
        (Finish::StopSequence(Some("END".into())), "STOP"),
        (Finish::Length, "MAX_TOKENS"),
        (Finish::ContextFull, "MAX_TOKENS"),
        (Finish::Tools, "STOP"),
        (Finish::Filtered(None), "SAFETY"),
        (Finish::Refused, "STOP"),
        (Finish::Paused, "OTHER"),
        (Finish::MalformedCall, "MALFORMED_FUNCTION_CALL"),
        (Finish::Other, "OTHER"),
    ] {
        let encoded = encode(&response(vec![choice(vec![text("a")], finish)]));
        assert_eq!(encoded["candidates"][0]["finishReason"], reason);
    }
}

#[test]
fn arguments_are_always_an_object() {
    let args = |arguments| {
        let one = choice(vec![call("f", arguments), text("after")], Finish::Tools);
        parts_of(&encode(&response(vec![one])), 0)[0]["functionCall"]["args"].clone()
    };
    assert_eq!(args("{\n \"b\": 1, \"a\": [2]}"), json!({"b": 1, "a": [2]}));
    assert_eq!(args(""), json!({}));
    assert_eq!(args(" \n"), json!({}));
    assert_eq!(args("{\"city\":"), json!({"_raw": "{\"city\":"}));
    assert_eq!(args("[1]"), json!({"_raw": "[1]"}));
}

#[test]
fn free_text_input_and_a_tree_are_encoded_as_arguments() {
    let make = |kind, arguments, issuer| {
        part(PartKind::Call(Call {
            id: None,
            name: "f".into(),
            arguments,
            signature: Some(signature(issuer, "c2ln")),
            kind,
        }))
    };
    let tree: Json<'static> = serde_json::from_str("{\"x\":1}").unwrap();
    let parts = vec![
        make(
            ToolKind::Custom,
            Arguments::Text("print(1)".into()),
            Issuer::Native,
        ),
        make(ToolKind::Function, Arguments::Tree(tree), Issuer::Redacted),
    ];
    let encoded = encode(&response(vec![choice(parts, Finish::Tools)]));
    assert_eq!(
        parts_of(&encoded, 0),
        json!([
            {"functionCall": {"name": "f", "args": {"input": "print(1)"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "f", "args": {"x": 1}},
             "thoughtSignature": signature(Issuer::Redacted, "c2ln").wrap()}
        ])
    );
}

#[test]
fn a_call_that_was_cut_off_is_left_out() {
    for arguments in ["{\"city\":", ""] {
        for (finish, calls) in [
            (Finish::Length, 0),
            (Finish::ContextFull, 0),
            (Finish::Tools, 1),
        ] {
            let parts = vec![text("a"), call("f", arguments)];
            let encoded = encode(&response(vec![choice(parts, finish)]));
            assert_eq!(parts_of(&encoded, 0).as_array().unwrap().len(), 1 + calls);
        }
    }
    let parts = vec![call("f", "{\"city\":"), call("g", "{}")];
    let encoded = encode(&response(vec![choice(parts, Finish::Length)]));
    assert_eq!(parts_of(&encoded, 0).as_array().unwrap().len(), 2);
}

#[test]
fn text_parts_are_joined_only_for_citations() {
    let blocks = || vec![text("Café open."), text(" "), text("Rome is hot.")];
    let mut one = choice(blocks(), Finish::Stop);
    let plain = encode(&response(vec![one.clone()]));
    assert_eq!(parts_of(&plain, 0).as_array().unwrap().len(), 3);
    let cite = |url: &'static str, start, end| Citation {
        url: url.into(),
        title: None,
        start,
        end,
    };
    one.citations = vec![
        cite("https://a.example", 0, 10),
        cite("https://b.example", 11, 99),
        cite("https://a.example", 5, 4),
        cite("https://c.example", 99, 100),
    ];
    let cited = encode(&response(vec![one]));
    assert_eq!(
        parts_of(&cited, 0),
        json!([{"text": "Café open. Rome is hot."}])
    );
    assert_eq!(
        cited["candidates"][0]["groundingMetadata"],
        json!({
            "groundingChunks": [
                {"web": {"uri": "https://a.example"}},
                {"web": {"uri": "https://b.example"}},
                {"web": {"uri": "https://c.example"}}
            ],
            "groundingSupports": [
                {"segment": {"startIndex": 0, "endIndex": 11, "text": "Café open."}, "groundingChunkIndices": [0]},
                {"segment": {"startIndex": 12, "endIndex": 24, "text": "Rome is hot."}, "groundingChunkIndices": [1]}
            ]
        })
    );
}

#[test]
fn counts_of_zero_are_left_out() {
    let mut empty = response(vec![]);
    empty.usage = Some(Usage {
        input: 9,
        ..Usage::default()
    });
    assert_eq!(
        encode(&empty)["usageMetadata"],
        json!({"promptTokenCount": 9, "candidatesTokenCount": 0, "totalTokenCount": 9})
    );
}

#[test]
fn fields_have_the_order_of_real_responses() {
    let bytes = Native.encode_response(
        &rich(),
        &options(Framing::Sse),
        &mut crate::model::Losses::default(),
    );
    let body = String::from_utf8(bytes).unwrap();
    let positions = [
        "\"candidates\"",
        "\"usageMetadata\"",
        "\"modelVersion\"",
        "\"responseId\"",
    ]
    .map(|key| body.find(key).unwrap());
    assert!(positions.is_sorted());
}

#[test]
fn losses_of_a_response_are_reported() {
    let actions = |response: &crate::model::Response<'_>| {
        let mut losses = crate::model::Losses::default();
        Native.encode_response(response, &options(Framing::Sse), &mut losses);
        let actions = losses.0.iter().map(|loss| loss.action);
        actions.collect::<Vec<_>>()
    };
    use crate::model::Action::{Approximated, Dropped};
    let of = |parts, finish| {
        let mut response = response(vec![choice(parts, finish)]);
        response.usage = None;
        response
    };
    // Tokens written to the cache, and a refusal.
    assert_eq!(actions(&rich()), [Dropped, Approximated]);
    let custom = PartKind::Call(Call {
        id: None,
        name: "run".into(),
        arguments: Arguments::Text("ls".into()),
        signature: None,
        kind: ToolKind::Custom,
    });
    for (parts, finish, expected) in [
        (vec![text("Hi")], Finish::Stop, vec![]),
        (
            vec![],
            Finish::StopSequence(Some("END".into())),
            vec![Dropped],
        ),
        (vec![], Finish::StopSequence(None), vec![]),
        (vec![], Finish::ContextFull, vec![Approximated]),
        (vec![], Finish::Paused, vec![Approximated]),
        (vec![call("f", "")], Finish::Tools, vec![]),
        (
            vec![call("f", "{\"a\":")],
            Finish::Tools,
            vec![Approximated],
        ),
        (vec![call("f", "{\"a\":")], Finish::Length, vec![Dropped]),
        (vec![part(custom)], Finish::Tools, vec![Approximated]),
    ] {
        let description = format!("{finish:?}");
        assert_eq!(actions(&of(parts, finish)), expected, "{description}");
    }
}
