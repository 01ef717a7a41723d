//! Chat streams are made to report their usage, and only clients that asked for it see it.

use omniglot_test_support::{Gateway, Mock, Response, every_format_config, post, sse_events};
use serde_json::Value;

const MESSAGES: &str = r#""messages":[{"role":"user","content":"mock:echo"}]"#;

async fn stream(gateway: &Gateway, body: &str) -> Response {
    post(gateway.url("/v1/chat/completions"), body.to_owned()).await
}

fn chunks(response: &Response) -> Vec<Value> {
    let mut events = sse_events(response.text());
    let (_, last) = events.pop().expect("events");
    assert_eq!(last, "[DONE]");
    let parse = |(_, data): (String, String)| serde_json::from_str(&data).expect("JSON");
    events.into_iter().map(parse).collect()
}

fn is_usage_only(chunk: &Value) -> bool {
    chunk["choices"] == serde_json::json!([]) && chunk["usage"].is_object()
}

/// The body that the mock was sent, told in a stream.
fn echoed_body(chunks: &[Value]) -> String {
    let deltas = chunks.iter();
    let deltas = deltas.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
    let echo: Value = serde_json::from_str(&deltas.collect::<String>()).expect("an echo");
    echo["body"].as_str().expect("a body").to_owned()
}

/// What a client sends and what the upstream gets.
const SHAPES: [(&str, &str); 8] = [
    (
        r#"{"stream":true,REST}"#,
        r#"{"stream_options":{"include_usage":true},"stream":true,REST}"#,
    ),
    (
        r#"{"stream":true, "stream_options" : null,REST}"#,
        r#"{"stream":true, "stream_options" : {"include_usage":true},REST}"#,
    ),
    (
        r#"{"stream_options":{},"stream":true,REST}"#,
        r#"{"stream_options":{"include_usage":true},"stream":true,REST}"#,
    ),
    (
        "{REST,\"stream_options\" :\n{ },\"stream\":true}",
        "{REST,\"stream_options\" :\n{\"include_usage\":true },\"stream\":true}",
    ),
    (
        r#"{"stream":true,"stream_options":{"include_usage" : false},REST}"#,
        r#"{"stream":true,"stream_options":{"include_usage" : true},REST}"#,
    ),
    (
        r#"{"stream":true,"stream_options":{"include_usage":null},REST}"#,
        r#"{"stream":true,"stream_options":{"include_usage":true},REST}"#,
    ),
    (
        r#"{"stream":true,"stream_options":{ "include_obfuscation":false},REST}"#,
        r#"{"stream":true,"stream_options":{"include_usage":true, "include_obfuscation":false},REST}"#,
    ),
    (
        r#"{"stream":true,"stream_options":{"include_usage":0},REST}"#,
        r#"{"stream":true,"stream_options":{"include_usage":true},REST}"#,
    ),
];

#[tokio::test]
async fn usage_is_requested_and_hidden_from_clients_that_did_not_ask() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (sent, wanted) in SHAPES {
        for (ours, theirs) in [("same-chat", "same-chat"), ("other-chat", "theirs-chat")] {
            let fill = |shape: &str, model: &str| {
                shape.replace("REST", &format!(r#""model":"{model}",{MESSAGES}"#))
            };
            let response = stream(&gateway, &fill(sent, ours)).await;
            assert_eq!(response.status, 200, "{sent}: {}", response.text());
            let chunks = chunks(&response);
            assert_eq!(echoed_body(&chunks), fill(wanted, theirs), "{sent}");
            assert!(!chunks.iter().any(is_usage_only), "{sent}");
            assert!(chunks.iter().all(|chunk| chunk["model"] == ours), "{sent}");
        }
    }
}

#[tokio::test]
async fn usage_is_shown_to_clients_that_asked() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let options =
        r#""stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true}"#;
    for model in ["same-chat", "other-chat"] {
        let body = format!(r#"{{"model":"{model}",{options},{MESSAGES}}}"#);
        let chunks = chunks(&stream(&gateway, &body).await);
        let sent = body.replace("other-chat", "theirs-chat");
        assert_eq!(echoed_body(&chunks), sent, "nothing was added");
        let last = chunks.last().expect("chunks");
        assert!(is_usage_only(last), "{last}");
        assert_eq!(last["model"], model);
        assert_eq!(last["usage"]["prompt_tokens"], 1, "{last}");
    }
}

#[tokio::test]
async fn stream_options_that_are_not_an_object_are_refused() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for options in ["true", "[]", "[true]", "7", "\"usage\""] {
        let body = format!(
            r#"{{"model":"same-chat","stream":true,"stream_options":{options},{MESSAGES}}}"#
        );
        let response = stream(&gateway, &body).await;
        assert_eq!(response.status, 400, "{options}: {}", response.text());
        response.error("chat");
        assert_eq!(
            response.json()["error"]["param"],
            "stream_options",
            "{options}"
        );
    }
}

#[tokio::test]
async fn usage_options_are_not_sent_without_a_stream() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for stream_field in ["", r#""stream":false,"#, r#""stream":null,"#] {
        let body = format!(r#"{{{stream_field}"model":"same-chat",{MESSAGES}}}"#);
        let response = stream(&gateway, &body).await;
        assert_eq!(
            omniglot_test_support::echoed_request("chat", &response)["body"],
            body
        );
        assert_eq!(response.json()["usage"]["prompt_tokens"], 1);
    }
}
