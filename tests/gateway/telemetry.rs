//! Traces: the spans of requests and attempts, as a receiver reads them that has the official messages of OTLP.

mod receiver;

use std::collections::BTreeMap;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Stderr, every_format_config, free_address, new_client, request,
    wait_until,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};

use receiver::{OtlpReceiver, attributes};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN: &str = "b7ad6b7169203331";

fn traced(config: &str, receiver: &OtlpReceiver, settings: &str) -> String {
    let endpoint = receiver.endpoint();
    format!(
        "{config}telemetry: {{endpoint: \"{endpoint}\", headers: {{x-team: secret-of-the-receiver}}{settings}}}\n"
    )
}

/// Ends the gateway, which sends what it has; nothing of it may be secret or content.
async fn spans_of(mut gateway: Gateway, receiver: &OtlpReceiver) -> Vec<Span> {
    gateway.process.signal("TERM");
    let ended = tokio::task::spawn_blocking(move || gateway.process.wait());
    assert_eq!(ended.await.expect("it ends").code(), Some(0));
    for body in receiver.bodies() {
        let text = String::from_utf8_lossy(&body);
        for secret in [KEY, "secret-of", "canary"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    receiver.spans()
}

/// The spans of a kind, in the order of their starts.
fn of_kind(spans: &[Span], kind: SpanKind) -> Vec<Span> {
    let of_kind = spans.iter().filter(|span| span.kind() == kind);
    let mut of_kind: Vec<Span> = of_kind.cloned().collect();
    of_kind.sort_by_key(|span| span.start_time_unix_nano);
    of_kind
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn ask(gateway: &Gateway, model: &str, words: &str, headers: &[(&str, &str)]) -> Value {
    let (path, body) = request("chat", model, words, false);
    let mut asked = new_client().post(gateway.url(&path)).bearer_auth(KEY);
    for (name, value) in headers {
        asked = asked.header(*name, *value);
    }
    let response = asked.json(&body).send().await.expect("an answer");
    response.json().await.expect("JSON")
}

/// The headers that the upstream got, of an answer to `mock:echo`.
fn echoed_headers(answer: &Value) -> BTreeMap<String, Value> {
    let text = answer["choices"][0]["message"]["content"].as_str();
    let echoed: Value = serde_json::from_str(text.expect("a text")).expect("JSON");
    serde_json::from_value(echoed["headers"].clone()).expect("headers")
}

#[track_caller]
fn assert_attributes(span: &Span, expected: &[(&str, Value)]) {
    let own = attributes(&span.attributes);
    for (name, value) in expected {
        let found = own.get(*name).unwrap_or(&Value::Null);
        assert_eq!(found, value, "{name} in {own:?}");
    }
}

#[tokio::test]
async fn requests_of_every_format_have_a_span_and_one_for_their_attempt() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    let settings = ", resource: {deployment.environment.name: test}";
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&traced(&config, &receiver, settings));
    let words = "canary-prompt mock:usage=10,4,7,3 mock:text=canary-answer";
    let mut asked = Vec::new();
    for (format, _) in FORMATS {
        for stream in [false, true] {
            // The same format, and one that is translated.
            let other = if format == "chat" { "messages" } else { "chat" };
            for upstream in [format, other] {
                let (path, body) = request(format, &format!("other-{upstream}"), words, stream);
                let request = new_client().post(gateway.url(&path)).bearer_auth(KEY);
                let response = request.json(&body).send().await.expect("an answer");
                let id = response.headers()["x-request-id"].to_str().expect("text");
                let id = id.to_owned();
                response.text().await.expect("a body");
                asked.push((id, format, upstream, stream, path));
            }
        }
    }
    let spans = spans_of(gateway, &receiver).await;
    assert_eq!(spans.len(), 2 * asked.len());
    let (requests, attempts) = (
        of_kind(&spans, SpanKind::Server),
        of_kind(&spans, SpanKind::Client),
    );
    for ((id, format, upstream, stream, path), (whole, attempt)) in
        asked.iter().zip(requests.iter().zip(&attempts))
    {
        let operation = |format: &str| {
            if format == "native" {
                "generate_content"
            } else {
                "chat"
            }
        };
        assert_eq!(
            whole.name,
            format!("{} other-{upstream}", operation(format))
        );
        assert_attributes(
            whole,
            &[
                ("omniglot.request_id", json!(id)),
                ("omniglot.key", json!("all")),
                ("omniglot.format", json!(format)),
                ("http.request.method", json!("POST")),
                ("http.response.status_code", json!(200)),
                ("url.path", json!(path.split('?').next())),
                ("client.address", json!("127.0.0.1")),
                ("gen_ai.operation.name", json!(operation(format))),
                ("gen_ai.request.model", json!(format!("other-{upstream}"))),
                ("error.type", Value::Null),
            ],
        );
        assert_eq!(
            attempt.name,
            format!("{} theirs-{upstream}", operation(upstream))
        );
        assert_attributes(
            attempt,
            &[
                ("gen_ai.operation.name", json!(operation(upstream))),
                ("gen_ai.request.model", json!(format!("theirs-{upstream}"))),
                ("gen_ai.response.finish_reasons", json!(["stop"])),
                ("gen_ai.usage.input_tokens", json!(10)),
                ("gen_ai.usage.cache_read.input_tokens", json!(4)),
                ("gen_ai.usage.output_tokens", json!(7)),
                ("gen_ai.usage.reasoning.output_tokens", json!(3)),
                ("server.address", json!("127.0.0.1")),
                ("server.port", json!(mock.address.port())),
                ("omniglot.upstream", json!(format!("mock-{upstream}"))),
                ("error.type", Value::Null),
            ],
        );
        let provider = match *upstream {
            "messages" => "anthropic",
            "native" => "gcp.gemini",
            _ => "openai",
        };
        assert_attributes(attempt, &[("gen_ai.provider.name", json!(provider))]);
        if *upstream != "native" {
            let model = json!(format!("theirs-{upstream}"));
            assert_attributes(attempt, &[("gen_ai.response.model", model)]);
        }
        for span in [whole, attempt] {
            let own = attributes(&span.attributes);
            let first = own.get("gen_ai.response.time_to_first_chunk");
            assert_eq!(
                first.is_some_and(|time| time.as_f64() > Some(0.0)),
                *stream,
                "{own:?}"
            );
            assert!(span.start_time_unix_nano < span.end_time_unix_nano);
            assert!(span.status.is_none());
        }
        assert_eq!(attempt.trace_id, whole.trace_id);
        assert_eq!(attempt.parent_span_id, whole.span_id);
        assert!(whole.parent_span_id.is_empty());
        assert!(whole.start_time_unix_nano <= attempt.start_time_unix_nano);
        assert!(attempt.end_time_unix_nano <= whole.end_time_unix_nano);
    }
    let resource = receiver.resource();
    assert_eq!(resource["service.name"], "omniglot");
    assert_eq!(resource["deployment.environment.name"], "test");
    assert_eq!(receiver.header("x-team"), "secret-of-the-receiver");
    assert_eq!(receiver.header("content-type"), "application/x-protobuf");
}

#[tokio::test]
async fn the_trace_of_a_client_goes_on_to_the_upstream() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    let config = every_format_config(mock.address);
    // The client says that its trace is sampled.
    let gateway = Gateway::start(&traced(&config, &receiver, ", sample: 0"));
    let parent = format!("00-{TRACE}-{CLIENT_SPAN}-01");
    let headers = [("traceparent", &*parent), ("tracestate", "vendor=1, b=2")];
    let answer = ask(&gateway, "same-chat", "mock:echo", &headers).await;
    let upstream = echoed_headers(&answer);
    let spans = spans_of(gateway, &receiver).await;
    let [whole] = &of_kind(&spans, SpanKind::Server)[..] else {
        panic!("one request: {spans:?}");
    };
    let [attempt] = &of_kind(&spans, SpanKind::Client)[..] else {
        panic!("one attempt: {spans:?}");
    };
    assert_eq!(hex(&whole.trace_id), TRACE);
    assert_eq!(hex(&whole.parent_span_id), CLIENT_SPAN);
    assert_eq!(whole.trace_state, "vendor=1,b=2");
    let passed = format!("00-{TRACE}-{}-01", hex(&attempt.span_id));
    assert_eq!(upstream["traceparent"], passed);
    assert_eq!(upstream["tracestate"], "vendor=1,b=2");
}

#[tokio::test]
async fn what_is_not_sampled_is_not_exported_and_upstreams_are_told() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&traced(&config, &receiver, ", sample: 0"));
    let unsampled = format!("00-{TRACE}-{CLIENT_SPAN}-00");
    let answer = ask(
        &gateway,
        "same-chat",
        "mock:echo",
        &[("traceparent", &unsampled)],
    )
    .await;
    let passed = echoed_headers(&answer)["traceparent"].clone();
    let passed = passed.as_str().expect("text");
    assert!(
        passed.starts_with(&format!("00-{TRACE}-")) && passed.ends_with("-00"),
        "{passed}"
    );
    assert!(!passed.contains(CLIENT_SPAN), "{passed}");
    // What is no traceparent begins a trace, and leaves no state.
    let wrong = [("traceparent", "00-garbage-01"), ("tracestate", "vendor=1")];
    let answer = ask(&gateway, "same-chat", "mock:echo", &wrong).await;
    let headers = echoed_headers(&answer);
    let begun = headers["traceparent"].as_str().expect("text");
    assert!(begun.len() == 55 && begun.ends_with("-00"), "{begun}");
    assert!(!headers.contains_key("tracestate"), "{headers:?}");
    assert_eq!(spans_of(gateway, &receiver).await, []);
}

/// A client that nobody knows does not decide what is exported, nor how much of it.
#[tokio::test]
async fn the_sampled_flag_counts_with_a_right_key_alone() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&traced(&config, &receiver, ", sample: 0"));
    let parent = format!("00-{TRACE}-{CLIENT_SPAN}-01");
    let path = format!("/v1/models/{}", "x".repeat(4000));
    for key in ["", "wrong", KEY] {
        let asked = new_client().get(gateway.url(&path)).bearer_auth(key);
        let asked = asked.header("traceparent", &parent);
        let status = asked.send().await.expect("an answer").status();
        assert_eq!(status == 401, key != KEY, "{key}: {status}");
    }
    let spans = spans_of(gateway, &receiver).await;
    let [only] = &spans[..] else {
        panic!("that with the key: {spans:?}");
    };
    let path = attributes(&only.attributes)["url.path"].clone();
    assert_eq!(path.as_str().expect("a path").len(), 1024);
}

#[tokio::test]
async fn content_is_in_spans_only_if_it_is_switched_on() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&traced(&config, &receiver, ", content: true"));
    let mut asked = Vec::new();
    for (format, _) in FORMATS {
        let other = if format == "chat" { "messages" } else { "chat" };
        for (upstream, stream) in [
            (format, false),
            (format, true),
            (other, false),
            (other, true),
        ] {
            let (path, body) = request(format, &format!("same-{upstream}"), "a question", stream);
            let request = new_client().post(gateway.url(&path)).bearer_auth(KEY);
            let response = request.json(&body).send().await.expect("an answer");
            response.text().await.expect("a body");
            asked.push((format, upstream, stream));
        }
    }
    let spans = spans_of(gateway, &receiver).await;
    let attempts = of_kind(&spans, SpanKind::Client);
    assert_eq!(attempts.len(), asked.len());
    for (what, attempt) in asked.iter().zip(&attempts) {
        let own = attributes(&attempt.attributes);
        let messages = |name: &str| -> Value {
            let text = own[name]
                .as_str()
                .unwrap_or_else(|| panic!("{what:?}: {own:?}"));
            serde_json::from_str(text).expect("JSON")
        };
        let text = |text: &str| json!([{"type": "text", "content": text}]);
        let input = messages("gen_ai.input.messages");
        assert_eq!(
            input,
            json!([{"role": "user", "parts": text("a question")}]),
            "{what:?}"
        );
        let answer = text("You said: a question");
        let output = json!([{"role": "assistant", "parts": answer, "finish_reason": "stop"}]);
        assert_eq!(messages("gen_ai.output.messages"), output, "{what:?}");
    }
    for request in of_kind(&spans, SpanKind::Server) {
        let own = attributes(&request.attributes);
        assert!(!own.contains_key("gen_ai.input.messages"), "{own:?}");
    }
}

#[tokio::test]
async fn without_telemetry_no_trace_goes_to_upstreams() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let parent = format!("00-{TRACE}-{CLIENT_SPAN}-01");
    let answer = ask(
        &gateway,
        "same-chat",
        "mock:echo",
        &[("traceparent", &parent)],
    )
    .await;
    let headers = echoed_headers(&answer);
    assert!(!headers.contains_key("traceparent"), "{headers:?}");
}

#[tokio::test]
async fn every_attempt_has_a_span_with_its_error() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    let gone = free_address();
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n  \
         - {{name: gone, format: messages, base_url: \"http://{gone}\"}}\n  \
         - {{name: up, format: chat, base_url: \"http://{}/v1\"}}\n\
         models: [{{id: m, upstreams: [{{name: gone, model: first}}, {{name: up, model: second, priority: 1}}]}}]\n",
        mock.address
    );
    let gateway = Gateway::start(&traced(&config, &receiver, ""));
    let answer = ask(&gateway, "m", "mock:usage=5,0,6,0 canary", &[]).await;
    assert!(answer["choices"].is_array(), "{answer}");
    let spans = spans_of(gateway, &receiver).await;
    let [whole] = &of_kind(&spans, SpanKind::Server)[..] else {
        panic!("one request: {spans:?}");
    };
    let [first, second] = &of_kind(&spans, SpanKind::Client)[..] else {
        panic!("two attempts: {spans:?}");
    };
    assert_attributes(
        first,
        &[
            ("omniglot.upstream", json!("gone")),
            ("gen_ai.request.model", json!("first")),
            ("gen_ai.provider.name", json!("anthropic")),
            ("server.port", json!(gone.port())),
            ("error.type", json!("bad_gateway")),
            ("gen_ai.usage.input_tokens", Value::Null),
        ],
    );
    assert_eq!(first.status.as_ref().map(|status| status.code), Some(2));
    assert_attributes(
        second,
        &[
            ("omniglot.upstream", json!("up")),
            ("gen_ai.request.model", json!("second")),
            ("error.type", Value::Null),
            ("gen_ai.usage.input_tokens", json!(5)),
            ("gen_ai.usage.output_tokens", json!(6)),
        ],
    );
    for attempt in [first, second] {
        assert_eq!(attempt.parent_span_id, whole.span_id);
    }
    assert!(first.end_time_unix_nano <= second.start_time_unix_nano);
    assert!(whole.status.is_none() && second.status.is_none());
}

#[tokio::test]
async fn errors_have_their_type_and_only_those_of_the_server_count_as_errors() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&traced(&config, &receiver, ""));
    let (path, body) = request("chat", "same-chat", "canary", false);
    let stranger = new_client()
        .post(gateway.url(&path))
        .bearer_auth("canary-of-a-stranger");
    let refused = stranger.json(&body).send().await.expect("an answer");
    assert_eq!(refused.status(), 401);
    ask(&gateway, "same-chat", "canary mock:error=500", &[]).await;
    let (path, body) = request("chat", "same-chat", "canary mock:stream_error=1", true);
    let broken = new_client().post(gateway.url(&path)).bearer_auth(KEY);
    let broken = broken.json(&body).send().await.expect("a stream begins");
    broken.text().await.expect("it ends with an error");
    let spans = spans_of(gateway, &receiver).await;
    let [refused, failed, broken] = &of_kind(&spans, SpanKind::Server)[..] else {
        panic!("three requests: {spans:?}");
    };
    assert_eq!(of_kind(&spans, SpanKind::Client).len(), 2);
    assert_eq!(refused.name, "POST");
    assert_attributes(
        refused,
        &[
            ("http.response.status_code", json!(401)),
            ("error.type", json!("unauthenticated")),
            ("omniglot.key", Value::Null),
        ],
    );
    assert!(refused.status.is_none());
    assert_attributes(failed, &[("http.response.status_code", json!(500))]);
    assert_eq!(failed.status.as_ref().map(|status| status.code), Some(2));
    assert_attributes(broken, &[("http.response.status_code", json!(200))]);
    let error = attributes(&broken.attributes)["error.type"].clone();
    assert!(error.is_string(), "{error}");
    assert_eq!(broken.status.as_ref().map(|status| status.code), Some(2));
}

#[tokio::test]
async fn spans_that_the_receiver_cannot_take_now_are_sent_again() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    receiver.fail_next(503);
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&traced(&config, &receiver, ""));
    ask(&gateway, "same-chat", "hello", &[]).await;
    wait_until("the spans are exported", async || {
        let lines = gateway.metric("omniglot_telemetry_spans_total").await;
        lines
            .iter()
            .any(|line| line.ends_with("outcome=\"exported\"} 2"))
    })
    .await;
    assert_eq!(receiver.bodies().len(), 2);
    assert_eq!(receiver.spans().len(), 2);
}

#[tokio::test]
async fn spans_that_are_refused_are_counted_and_logged_without_secrets() {
    let (mock, receiver) = (Mock::start(), OtlpReceiver::start().await);
    receiver.fail_next(400);
    let config = every_format_config(mock.address);
    let stderr = Stderr::new();
    let mut gateway = Gateway::start_with(&traced(&config, &receiver, ""), |command| {
        stderr.attach(command);
    });
    ask(&gateway, "same-chat", "hello", &[]).await;
    wait_until("the spans are lost", async || {
        let lines = gateway.metric("omniglot_telemetry_spans_total").await;
        lines
            .iter()
            .any(|line| line.ends_with("outcome=\"failed\"} 2"))
    })
    .await;
    assert_eq!(receiver.bodies().len(), 1);
    let line = stderr.line_with("telemetry: ", &mut gateway.process);
    let line = line.expect("the log says so");
    assert!(
        line.contains("2 spans could not be sent") && line.contains("400"),
        "{line}"
    );
    assert!(!stderr.text().contains("secret-of"), "{}", stderr.text());
}
