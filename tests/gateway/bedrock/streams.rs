//! Event streams that are cut or changed, and exceptions before and after the first content.

use omniglot::event_stream::{EVENT_STREAM, encode_event_stream_message};
use omniglot_test_support::{
    FORMATS, Gateway, KEY, Response, error_message, fixed_response_upstream, is_end, is_error,
    post, request, response_head, stream_events,
};
use serde_json::json;

use super::{event, with_keys};

/// The events of a short answer.
fn events() -> Vec<Vec<u8>> {
    let usage = json!({"input_tokens": 3, "output_tokens": 1});
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let text = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": "Hello."});
    let end = json!({"stop_reason": "end_turn", "stop_sequence": null});
    [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": text}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 3}}),
    ]
    .iter()
    .map(event)
    .collect()
}

fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode_event_stream_message(headers, payload.as_bytes(), &mut out);
    out
}

fn exception(kind: &str) -> Vec<u8> {
    let headers = [(":exception-type", kind), (":message-type", "exception")];
    message(&headers, r#"{"message":"bedrock-says-no"}"#)
}

/// A gateway whose models `case-0`, `case-1` … are answered with these streams; `spare` is tried after the first `spared`.
fn gateway_with_streams(streams: &[Vec<u8>]) -> Gateway {
    let (mut upstreams, mut models) = (String::new(), String::new());
    let mut add = |name: &str, body: &[u8]| {
        let chunks = vec![response_head("200 OK", EVENT_STREAM), body.to_vec()];
        let address = fixed_response_upstream(chunks);
        upstreams += &format!(
            "  - {{name: {name}, provider: bedrock, base_url: \"http://{address}\", breaker: off}}\n"
        );
    };
    for (number, stream) in streams.iter().enumerate() {
        add(&format!("up-{number}"), stream);
        models += &format!(
            "  - {{id: case-{number}, upstreams: [{{name: up-{number}, model: m}}]}}\n  \
             - {{id: spared-{number}, upstreams: [{{name: up-{number}, model: m}}, {{name: spare, model: m, priority: 1}}]}}\n"
        );
    }
    add("spare", &events().concat());
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n{upstreams}models:\n{models}"
    );
    Gateway::start_with(&config, with_keys)
}

async fn ask(gateway: &Gateway, client: &str, model: &str) -> Response {
    let (path, body) = request(client, model, "hello", true);
    post(gateway.url(&path), body.to_string()).await
}

/// A stream that is broken after its first content is never a complete response.
#[tokio::test]
async fn broken_streams_end_as_errors() {
    let good = events();
    let begun = good[..3].concat();
    let last = &good[5];
    let mut damaged = last.clone();
    damaged[40] ^= 1;
    let mut wrong_prelude = last.clone();
    wrong_prelude[9] ^= 1;
    let with = |tail: &[u8]| [&begun[..], tail].concat();
    let empty_chunk = message(&[(":event-type", "chunk"), (":message-type", "event")], "");
    let unknown_type = message(&[(":message-type", "riddle")], "{}");
    let error_message = message(
        &[
            (":message-type", "error"),
            (":error-code", "InternalFailure"),
        ],
        "",
    );
    let cases = [
        with(&last[..5]),
        with(&last[..12]),
        with(&last[..30]),
        with(&last[..last.len() - 1]),
        with(b""),
        with(&damaged),
        with(&wrong_prelude),
        with(&empty_chunk),
        with(&unknown_type),
        with(&exception("throttlingException")),
        with(&exception("modelStreamErrorException")),
        with(&error_message),
        with(&event(
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        )),
    ];
    let gateway = gateway_with_streams(&cases);
    for number in 0..cases.len() {
        for (client, _) in FORMATS {
            let response = ask(&gateway, client, &format!("case-{number}")).await;
            let case = format!("{number} {client}: {}", response.text());
            assert_eq!(response.status, 200, "{case}");
            let events = stream_events(client, response.text());
            assert!(response.text().contains("Hello."), "{case}");
            assert!(is_error(client, events.last().expect("an event")), "{case}");
            assert!(!events.iter().any(|event| is_end(client, event)), "{case}");
        }
    }
}

#[tokio::test]
async fn exceptions_before_any_content_are_statuses_and_let_another_upstream_try() {
    let start = events()[0].clone();
    let kinds = [
        ("throttlingException", 429, true),
        ("modelStreamErrorException", 500, true),
        ("internalServerException", 500, true),
        ("modelTimeoutException", 504, true),
        ("serviceUnavailableException", 503, true),
        ("validationException", 400, false),
    ];
    let cases: Vec<Vec<u8>> = kinds
        .iter()
        .flat_map(|(kind, ..)| [exception(kind), [&start[..], &exception(kind)].concat()])
        .collect();
    let gateway = gateway_with_streams(&cases);
    for number in 0..cases.len() {
        let (kind, status, is_retried) = kinds[number / 2];
        for (client, _) in FORMATS {
            let response = ask(&gateway, client, &format!("case-{number}")).await;
            let case = format!("{kind} {client}: {}", response.text());
            let status = match (client, status) {
                ("messages", 503) => 529,
                (_, status) => status,
            };
            assert_eq!(response.status, status, "{case}");
            let message = error_message(client, response.status, &response.json());
            assert_eq!(message, "bedrock-says-no", "{case}");
        }
        let response = ask(&gateway, "messages", &format!("spared-{number}")).await;
        let case = format!("{kind}: {}", response.text());
        assert_eq!(response.status == 200, is_retried, "{case}");
        if is_retried {
            assert_eq!(response.header("x-omniglot-upstream"), "spare", "{case}");
            assert!(response.text().contains("Hello."), "{case}");
        }
    }
}

#[tokio::test]
async fn what_is_broken_at_once_goes_to_another_upstream() {
    let mut damaged = events()[0].clone();
    damaged[20] ^= 1;
    let cases = [damaged, b"event: ping\ndata: {}\n\n".to_vec(), Vec::new()];
    let gateway = gateway_with_streams(&cases);
    for number in 0..cases.len() {
        let response = ask(&gateway, "chat", &format!("case-{number}")).await;
        assert_eq!(response.status, 502, "{number}: {}", response.text());
        let response = ask(&gateway, "chat", &format!("spared-{number}")).await;
        assert_eq!(response.header("x-omniglot-upstream"), "spare", "{number}");
        assert!(response.text().contains("Hello."), "{number}");
    }
}
