//! Every client format on an upstream of every other one.

mod tools;

use omniglot_test_support::{
    FORMATS, Gateway, Mock, error_message, every_format_config, post, request, response_text,
    sse_events,
};
use serde_json::{Value, json};

fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = FORMATS.iter().flat_map(|(client, _)| {
        let upstreams = FORMATS.iter().map(|(upstream, _)| *upstream);
        upstreams.map(move |upstream| (*client, upstream))
    });
    all.filter(|(client, upstream)| client != upstream)
}

#[tokio::test]
async fn text_arrives_as_json_and_as_a_stream_with_the_clients_model() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (client, upstream) in pairs() {
        let model = format!("other-{upstream}");
        let (path, body) = request(client, &model, "héllo wörld 🦀", false);
        let answer = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(answer.status, 200, "{client} {upstream}: {}", answer.text());
        let response = answer.json();
        assert_eq!(response_text(client, &response), "You said: héllo wörld 🦀");
        if client != "native" {
            assert_eq!(response["model"], model, "{client} {upstream}");
        }
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(
            answer.header("x-omniglot-upstream"),
            format!("mock-{upstream}")
        );

        let (path, body) = request(client, &model, "héllo wörld 🦀", true);
        let answer = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(answer.header("content-type"), "text/event-stream");
        let joined: String = sse_events(answer.text())
            .iter()
            .filter_map(|(_, data)| serde_json::from_str(data).ok())
            .map(|event| piece(client, &event))
            .collect();
        assert_eq!(joined, "You said: héllo wörld 🦀", "{client} {upstream}");
    }
}

/// The text one event of a stream adds.
fn piece(format: &str, event: &Value) -> String {
    let text = match format {
        "chat" => &event["choices"][0]["delta"]["content"],
        "messages" => &event["delta"]["text"],
        "native" => &event["candidates"][0]["content"]["parts"][0]["text"],
        _ if event["type"] == "response.output_text.delta" => &event["delta"],
        _ => &Value::Null,
    };
    text.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn native_clients_can_stream_an_array() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for upstream in ["chat", "messages", "responses"] {
        let path = format!("/v1beta/models/same-{upstream}:streamGenerateContent");
        let (_, body) = request("native", "", "one two", true);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.header("content-type"), "application/json");
        let elements = response.json();
        let elements = elements.as_array().expect("an array");
        let joined: String = elements
            .iter()
            .map(|event| piece("native", event))
            .collect();
        assert_eq!(joined, "You said: one two", "{upstream}");
    }
}

#[tokio::test]
async fn errors_of_an_upstream_have_the_clients_shape() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (client, upstream) in pairs() {
        for status in [400, 404, 422, 429, 500] {
            let prompt = format!("mock:error={status}");
            let (path, body) = request(client, &format!("same-{upstream}"), &prompt, false);
            let response = post(gateway.url(&path), body.to_string()).await;
            assert_eq!(response.status, status, "{client} {upstream}");
            error_message(client, status, &response.json());
            if status == 429 {
                assert_eq!(response.header("retry-after"), "7", "{client} {upstream}");
            }
        }
        let overloaded = if client == "messages" { 529 } else { 503 };
        for (status, expected) in [(402, 429), (503, overloaded), (529, overloaded)] {
            let prompt = format!("mock:error={status}");
            let (path, body) = request(client, &format!("same-{upstream}"), &prompt, false);
            let response = post(gateway.url(&path), body.to_string()).await;
            assert_eq!(response.status, expected, "{client} {upstream} {status}");
        }
    }
}

#[tokio::test]
async fn a_broken_stream_never_looks_complete() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (client, upstream) in pairs() {
        for word in ["cut=4", "no_end", "garbage=4", "stream_error=2"] {
            let prompt = format!("mock:{word} one two three four");
            let (path, body) = request(client, &format!("same-{upstream}"), &prompt, true);
            let response = post(gateway.url(&path), body.to_string()).await;
            if response.status != 200 {
                error_message(client, response.status, &response.json());
                continue;
            }
            let events = sse_events(response.text());
            let message = events.iter().rev().take(2).any(|(name, data)| {
                let data: Value = serde_json::from_str(data).unwrap_or_default();
                name == "error" || data["error"].is_object()
            });
            assert!(message, "{client} {upstream} {word}: {}", response.text());
            let ends = ["[DONE]", "message_stop", "response.completed"];
            assert!(
                !ends.iter().any(|end| response.text().contains(end)),
                "{client} {upstream} {word}: {}",
                response.text()
            );
        }
    }
}

#[tokio::test]
async fn losses_are_reported_or_refused() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&config);
    let strict = config.replace("server: {", "server: {on_unsupported: reject, ");
    let strict = Gateway::start(&strict);
    let body = json!({
        "model": "same-messages", "seed": 7,
        "messages": [{"role": "user", "content": "hello"}],
    });
    let response = post(gateway.url("/v1/chat/completions"), body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("x-omniglot-dropped"), "seed");
    assert_eq!(
        response.header("x-omniglot-adjusted"),
        "max_completion_tokens"
    );
    let response = post(strict.url("/v1/chat/completions"), body.to_string()).await;
    assert_eq!(response.status, 400);
    assert!(
        response.error("chat").contains("seed"),
        "{}",
        response.text()
    );

    let audio = json!({
        "model": "same-messages",
        "messages": [{"role": "user", "content": [
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ]}],
    });
    let response = post(gateway.url("/v1/chat/completions"), audio.to_string()).await;
    assert_eq!(response.status, 400);
    let message = response.error("chat");
    assert!(message.contains("messages[0].content[0]"), "{message}");
}

#[tokio::test]
async fn an_upstream_of_another_format_takes_over() {
    let mock = Mock::start();
    let config = every_format_config(mock.address)
        + "  - {id: two, upstreams: [{name: mock-chat, model: \"m+error=503\"}], fallbacks: [same-messages]}\n";
    let gateway = Gateway::start(&config);
    let (path, body) = request("chat", "two", "hello", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("x-omniglot-upstream"), "mock-messages");
    assert_eq!(response.header("x-omniglot-attempts"), "2");
    assert_eq!(response_text("chat", &response.json()), "You said: hello");
    assert_eq!(response.json()["model"], "two");
}

#[tokio::test]
async fn a_stream_with_content_is_not_retried_at_a_fallback() {
    let mock = Mock::start();
    for (client, upstream) in [
        ("chat", "chat"),
        ("chat", "messages"),
        ("messages", "native"),
    ] {
        for word in ["garbage=4", "no_end", "stream_error=2", "cut=4"] {
            let model = format!(
                "  - {{id: two, upstreams: [{{name: mock-{upstream}, model: \"m+{word}\"}}], fallbacks: [spare]}}\n  \
                 - {{id: spare, upstreams: [{{name: mock-{client}}}]}}\n"
            );
            let gateway = Gateway::start(&(every_format_config(mock.address) + &model));
            let (path, body) = request(client, "two", "one two three four", true);
            let response = post(gateway.url(&path), body.to_string()).await;
            let said: String = sse_events(response.text())
                .iter()
                .filter_map(|(_, data)| serde_json::from_str(data).ok())
                .map(|event| piece(client, &event))
                .collect();
            let starts = said.matches("You ").count();
            assert_eq!(starts, 1, "{client} {upstream} {word}: {said}");
            let whole = said == "You said: one two three four";
            let spare = response.header("x-omniglot-attempts") == "2";
            assert!(
                !whole || spare || word == "no_end",
                "{client} {upstream} {word}"
            );
        }
    }
}

#[tokio::test]
async fn an_upstream_that_supports_the_whole_request_is_preferred() {
    let mock = Mock::start();
    let model =
        "  - {id: two, upstreams: [{name: mock-messages, weight: 1000000}, {name: mock-chat}]}\n";
    let gateway = Gateway::start(&(every_format_config(mock.address) + model));
    let audio = json!({
        "model": "two",
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "hello"},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ]}],
    });
    for _ in 0..8 {
        let response = post(gateway.url("/v1/chat/completions"), audio.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-omniglot-upstream"), "mock-chat");
        assert_eq!(response.header("x-omniglot-attempts"), "1");
    }
}
