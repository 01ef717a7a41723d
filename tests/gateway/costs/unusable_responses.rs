//! Successful responses that no client can get: a key with a spending cap pays what the upstream reports of them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use omniglot_test_support::{
    Gateway, Http1Connection, KEY, Mock, Response, client, fixed_response_upstream,
    http1_post_head, request, response_head, send,
};
use serde_json::{Value, json};

use super::{config, line_of, lines};

const CAPPED: &str = ", {name: capped, secret: key-capped, spending_cap: 10}";

async fn send_with(gateway: &Gateway, key: &str, path: &str, body: &Value) -> Response {
    let asked = client().post(gateway.url(path)).bearer_auth(key);
    send(asked.json(body)).await
}

/// The clients' format, the upstream's, its body, and whether a stream is asked for. Each reports 100 tokens of input
/// and 40 of output.
fn unusable() -> Vec<(&'static str, &'static str, Value, bool)> {
    let native =
        json!({"promptTokenCount": 100, "candidatesTokenCount": 30, "thoughtsTokenCount": 10});
    let chat = json!({"prompt_tokens": 100, "completion_tokens": 40});
    let counted = json!({"input_tokens": 100, "output_tokens": 40});
    let failed = json!({"code": "server_error", "message": "Gone."});
    vec![
        ("native", "native", json!({"usageMetadata": native}), false),
        ("chat", "native", json!({"usageMetadata": native}), false),
        (
            "chat",
            "chat",
            json!({"error": failed, "usage": chat}),
            false,
        ),
        (
            "messages",
            "chat",
            json!({"error": failed, "usage": chat}),
            false,
        ),
        ("chat", "chat", json!({"choices": 7, "usage": chat}), false),
        (
            "messages",
            "messages",
            json!({"type": "message", "usage": counted}),
            false,
        ),
        (
            "chat",
            "responses",
            json!({"id": "r", "status": "failed", "error": failed, "output": [], "usage": counted}),
            false,
        ),
        // A document in place of a stream.
        ("chat", "chat", json!({"choices": [], "usage": chat}), true),
        (
            "native",
            "messages",
            json!({"content": [], "usage": counted}),
            true,
        ),
    ]
}

#[tokio::test]
async fn the_usage_of_an_unusable_response_is_paid_by_a_key_with_a_cap() {
    for (client_format, upstream, body, stream) in unusable() {
        let head = response_head("200 OK", "application/json");
        let address = fixed_response_upstream(vec![head, body.to_string().into_bytes()]);
        let gateway = Gateway::start(&config(address, CAPPED, ""));
        let model = format!("priced-{upstream}");
        let (path, asked) = request(client_format, &model, "hello", stream);
        let capped = send_with(&gateway, "key-capped", &path, &asked).await;
        let other = send_with(&gateway, KEY, &path, &asked).await;
        assert!(capped.status >= 400, "{body}: {}", capped.text());
        assert_eq!(capped.status, other.status, "{body}");
        let lines = lines(gateway);
        let paid = line_of(&lines, capped.header("x-request-id"));
        assert_eq!(paid.count("input_tokens"), 100, "{body}");
        assert_eq!(paid.count("output_tokens"), 40, "{body}");
        assert_eq!(paid.field("cost"), paid.worth(), "{body}");
        let unpaid = line_of(&lines, other.header("x-request-id"));
        assert_eq!(unpaid.field("cost"), "null", "{body}");
    }
}

#[tokio::test]
async fn every_attempt_that_reports_usage_is_paid() {
    let unusable = json!({"usageMetadata": {"promptTokenCount": 100, "thoughtsTokenCount": 40}});
    let usable = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"},
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 100, "completion_tokens": 1}});
    let [unusable, usable] = [unusable, usable].map(|body: Value| {
        let head = response_head("200 OK", "application/json");
        fixed_response_upstream(vec![head, body.to_string().into_bytes()])
    });
    let models = "  - {id: dear, pricing: {input: 1000, output: 1000}, retries: {attempts: 2, backoff: 1ms}, \
                  upstreams: [{name: native}], fallbacks: [other]}\n  \
                  - {id: other, pricing: {input: 10, output: 10}, upstreams: [{name: good}]}\n";
    let good =
        format!("upstreams:\n  - {{name: good, format: chat, base_url: \"http://{usable}\"}}\n");
    let config = config(unusable, CAPPED, models).replace("upstreams:\n", &good);
    let gateway = Gateway::start(&config);
    let (path, asked) = request("chat", "dear", "hello", false);
    for (key, cost) in [("key-capped", "0.14101"), (KEY, "0.00101")] {
        let response = send_with(&gateway, key, &path, &asked).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-omniglot-attempts"), "2");
        assert_eq!(response.header("x-omniglot-cost"), cost, "{key}");
    }
    // What the first attempt has cost leaves too little of this cap for another one.
    let tight = ", {name: tight, secret: key-capped, spending_cap: 0.3}";
    let gateway = Gateway::start(&config.replace(CAPPED, tight));
    let (path, mut asked) = request("chat", "dear", "hello", false);
    asked["max_completion_tokens"] = 100.into();
    let response = send_with(&gateway, "key-capped", &path, &asked).await;
    assert_eq!(response.status, 502, "{}", response.text());
    let lines = lines(gateway);
    assert_eq!(lines[0].field("attempts"), "1");
    assert_eq!(lines[0].field("cost"), "0.14");
}

#[tokio::test]
async fn the_usage_of_a_stream_that_begins_with_its_error_is_paid() {
    let failed = json!({"type": "response.failed", "response": {"id": "r", "status": "failed",
        "error": {"code": "server_error", "message": "Gone."},
        "usage": {"input_tokens": 100, "output_tokens": 40}}});
    for client_format in ["chat", "responses"] {
        let head = response_head("200 OK", "text/event-stream");
        let event = format!("event: response.failed\ndata: {failed}\n\n");
        let address = fixed_response_upstream(vec![head, event.into_bytes()]);
        let gateway = Gateway::start(&config(address, CAPPED, ""));
        let (path, asked) = request(client_format, "priced-responses", "hello", true);
        let response = send_with(&gateway, "key-capped", &path, &asked).await;
        assert!(response.status >= 400, "{}", response.text());
        let lines = lines(gateway);
        assert_eq!(lines[0].count("output_tokens"), 40, "{client_format}");
        assert_eq!(lines[0].field("cost"), lines[0].worth(), "{client_format}");
    }
}

#[tokio::test]
async fn embeddings_of_another_number_than_asked_for_are_paid() {
    let body = json!({"object": "list", "data": [], "model": "m",
        "usage": {"prompt_tokens": 100, "total_tokens": 100}});
    let head = response_head("200 OK", "application/json");
    let address = fixed_response_upstream(vec![head, body.to_string().into_bytes()]);
    let models = "  - {id: vectors, model_type: embedding, pricing: {input: 1000}, upstreams: [{name: chat}]}\n";
    let gateway = Gateway::start(&config(address, CAPPED, models));
    let asked = json!({"model": "vectors", "input": "hello"});
    let response = send_with(&gateway, "key-capped", "/v1/embeddings", &asked).await;
    assert_eq!(response.status, 502, "{}", response.text());
    assert_eq!(lines(gateway)[0].field("cost"), "0.1");
}

/// Its usage would stand at its end.
#[tokio::test]
async fn a_response_that_is_longer_than_the_gateway_reads_costs_what_was_reserved() {
    let long = "x".repeat(100 << 10);
    let document = json!({"choices": [{"message": {"content": long}}]}).to_string();
    let models = "  - {id: dear, pricing: {output: 1000}, upstreams: [{name: chat}]}\n";
    let event = format!("data: {document}");
    // Documents that cannot be read have usage too.
    let deep = "[".repeat(200) + &"]".repeat(200);
    let deep = document
        .replace(&long, &deep)
        .replace("\"[[", "[[")
        .replace("]]\"", "]]");
    let not_a_number = document.replace(&format!("\"{long}\""), "NaN");
    let other = json!({"choices": 7}).to_string();
    let several = format!("[{other},{other}]");
    for (stream, kind, body) in [
        (false, "application/json", &document),
        (true, "text/event-stream", &event),
        (false, "application/json", &deep),
        (false, "application/json", &not_a_number),
        // Another shape, without any usage.
        (false, "application/json", &several),
        (false, "application/json", &other),
        (true, "application/json", &several),
    ] {
        let body = body.clone().into_bytes();
        let address = fixed_response_upstream(vec![response_head("200 OK", kind), body]);
        let config = config(address, CAPPED, models)
            .replace("access_log: json", "access_log: json, body_limit: 64KiB");
        let gateway = Gateway::start(&config);
        let (path, mut asked) = request("chat", "dear", "hello", stream);
        asked["max_completion_tokens"] = 100.into();
        for (key, cost) in [("key-capped", "0.1"), (KEY, "null")] {
            let response = send_with(&gateway, key, &path, &asked).await;
            assert_eq!(response.status, 502, "{}", response.text());
            let line = gateway.process.line_with("request_id");
            let line = serde_json::from_str(&line).expect("JSON");
            assert_eq!(super::LogLine(line).field("cost"), cost, "{kind}: {key}");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_fails_costs_a_key_with_a_cap_nothing() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, CAPPED, ""));
    let faults = ["error=500", "error=429", "status_200_error", "cut", "html"];
    for fault in faults {
        let words = format!("mock:usage=100,0,40,0 mock:{fault}");
        let (path, asked) = request("chat", "priced-chat", &words, false);
        let response = send_with(&gateway, "key-capped", &path, &asked).await;
        assert!(response.status >= 400, "{fault}: {}", response.text());
    }
    let lines = lines(gateway);
    assert_eq!(lines.len(), faults.len());
    for line in lines {
        assert_eq!(line.field("cost"), "null");
    }
}

/// The status and the content type of a response may be others than expected, and its body all that was asked for.
#[tokio::test]
async fn a_success_of_another_kind_is_paid_by_a_key_with_a_cap() {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 40});
    let answer = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]});
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": "hi"}}]});
    let last = json!({"choices": [], "usage": usage});
    let events = format!("data: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    let counts = json!({"promptTokenCount": 100, "candidatesTokenCount": 40});
    let array = json!([{"candidates": [{"content": {"parts": [{"text": "hi"}]}}]}, {"usageMetadata": counts}]);
    let text = "Some text.".to_owned();
    // The last: the output that is paid, be it reported or reserved.
    for (upstream, stream, kind, body, output) in [
        ("chat", false, "text/plain", answer.to_string(), Some(40)),
        ("chat", false, "text/event-stream", events.clone(), Some(40)),
        ("chat", true, "text/plain", events, Some(40)),
        (
            "native",
            true,
            "application/json",
            array.to_string(),
            Some(40),
        ),
        ("native", false, "text/plain", array.to_string(), Some(40)),
        (
            "native",
            false,
            "application/json",
            array.to_string(),
            Some(40),
        ),
        (
            "native",
            false,
            "application/json",
            "[{".to_owned(),
            Some(64),
        ),
        (
            "native",
            false,
            "application/json",
            "[{\"candidates\":[]}]".to_owned(),
            Some(64),
        ),
        (
            "native",
            false,
            "application/json",
            "[{\"error\":{\"code\":503,\"message\":\"No.\"}}]".to_owned(),
            None,
        ),
        ("chat", false, "text/plain", text.clone(), Some(64)),
        ("chat", true, "text/plain", text, Some(64)),
        ("chat", false, "text/html", "<html></html>".to_owned(), None),
        ("chat", true, "text/plain", String::new(), Some(64)),
        ("chat", false, "application/json", String::new(), Some(64)),
        (
            "chat",
            false,
            "application/json",
            "garbage".to_owned(),
            Some(64),
        ),
    ] {
        let what = format!("{upstream}, {kind}: {body}");
        let head = response_head("200 OK", kind);
        let address = fixed_response_upstream(vec![head, body.into_bytes()]);
        let gateway = Gateway::start(&config(address, CAPPED, ""));
        let (path, mut asked) = request("chat", &format!("priced-{upstream}"), "hello", stream);
        asked["max_completion_tokens"] = 64.into();
        let capped = send_with(&gateway, "key-capped", &path, &asked).await;
        let status = if what.contains("503") { 503 } else { 502 };
        assert_eq!(capped.status, status, "{what}: {}", capped.text());
        let other = send_with(&gateway, KEY, &path, &asked).await;
        assert_eq!(capped.error("chat"), other.error("chat"), "{what}");
        let lines = lines(gateway);
        let paid = line_of(&lines, capped.header("x-request-id"));
        match output {
            Some(output) => assert_eq!(paid.count("output_tokens"), output, "{what}"),
            None => assert_eq!(paid.field("cost"), "null", "{what}"),
        }
        if output == Some(40) {
            assert_eq!(paid.count("input_tokens"), 100, "{what}");
            assert_eq!(paid.field("cost"), paid.worth(), "{what}");
        }
        let free = line_of(&lines, other.header("x-request-id"));
        assert_eq!(free.field("cost"), "null", "{what}");
    }
    // What was created is what was asked for.
    for status in ["201 Created", "206 Partial Content"] {
        let head = response_head(status, "application/json");
        let address = fixed_response_upstream(vec![head, answer.to_string().into_bytes()]);
        let gateway = Gateway::start(&config(address, CAPPED, ""));
        let (path, asked) = request("chat", "priced-chat", "hello", false);
        for key in ["key-capped", KEY] {
            let response = send_with(&gateway, key, &path, &asked).await;
            assert_eq!(response.status, 200, "{status}: {}", response.text());
            let cost = response.header("x-omniglot-cost");
            // 100 × 1.25 + 40 × 10 for a million, and 0.000001.
            assert_eq!(cost, "0.000526", "{status}");
        }
    }
}

#[tokio::test]
async fn a_response_that_cannot_be_decompressed_costs_what_was_reserved() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![b' '; 1 << 20]).expect("memory");
    let bomb = encoder.finish().expect("memory");
    let models = "  - {id: dear, pricing: {output: 1000}, upstreams: [{name: chat}]}\n  \
                  - {id: again, pricing: {output: 1000}, retries: {attempts: 2, backoff: 1ms}, upstreams: [{name: chat}]}\n";
    for (coding, body) in [
        ("gzip", bomb),
        ("br", b"{}".to_vec()),
        ("zstd", b"{}".to_vec()),
    ] {
        for (status, kind, stream, paid) in [
            ("200 OK", "application/json", false, "0.1"),
            ("200 OK", "text/event-stream", true, "0.1"),
            (
                "500 Internal Server Error",
                "application/json",
                false,
                "null",
            ),
        ] {
            let kind = format!("{kind}\r\ncontent-encoding: {coding}");
            let head = response_head(status, &kind);
            let address = fixed_response_upstream(vec![head, body.clone()]);
            let config = config(address, CAPPED, models)
                .replace("access_log: json", "access_log: json, body_limit: 64KiB");
            let gateway = Gateway::start(&config);
            let (path, mut asked) = request("chat", "dear", "hello", stream);
            asked["max_completion_tokens"] = 100.into();
            let twice = if paid == "null" { "null" } else { "0.2" };
            for (key, model, cost) in [
                ("key-capped", "dear", paid),
                // Each attempt costs what was reserved for it.
                ("key-capped", "again", twice),
                (KEY, "dear", "null"),
            ] {
                asked["model"] = model.into();
                let response = send_with(&gateway, key, &path, &asked).await;
                assert!(response.status >= 500, "{coding}: {}", response.text());
                let line = gateway.process.line_with("request_id");
                let line = serde_json::from_str(&line).expect("JSON");
                let found = super::LogLine(line).field("cost").to_owned();
                assert_eq!(found, cost, "{status}, {kind}: {key}, {model}");
            }
        }
    }
}

/// Clouds count the input in words of their own, or not at all.
#[tokio::test]
async fn unusable_embeddings_of_clouds_are_paid() {
    let vertex = json!({"predictions": [{"embeddings": {"values": [1, 2], "statistics": {"token_count": 100}}}]});
    for (upstream, model, body, cost) in [
        ("vertex", "text-embedding-005", vertex, "0.1"),
        (
            "vertex",
            "text-embedding-005",
            json!({"predictions": 7}),
            "reserved",
        ),
        (
            "bedrock",
            "amazon.titan-embed-text-v2:0",
            json!({"embedding": [], "inputTextTokenCount": 100}),
            "0.1",
        ),
        (
            "bedrock",
            "cohere.embed-english-v3",
            json!({"embeddings": [[1]]}),
            "reserved",
        ),
        (
            "bedrock",
            "cohere.embed-english-v3",
            json!({"error": {"message": "Gone."}}),
            "null",
        ),
    ] {
        let head = response_head("200 OK", "application/json");
        let address = fixed_response_upstream(vec![head, body.to_string().into_bytes()]);
        let config = format!(
            "server: {{listen: LISTEN, admin: ADMIN, access_log: json}}\n\
             keys: [{{name: capped, secret: key-capped, spending_cap: 10}}]\nupstreams:\n  \
             - {{provider: vertex, base_url: \"http://{address}\", project: p, location: global, auth: {{bearer: token-of-google}}}}\n  \
             - {{provider: bedrock, base_url: \"http://{address}\", region: us-east-1, auth: {{bearer: key-of-aws}}}}\n\
             models: [{{id: vectors, model_type: embedding, pricing: {{input: 1000}}, upstreams: [{{name: {upstream}, model: \"{model}\"}}]}}]\n"
        );
        let gateway = Gateway::start(&config);
        // One input for Titan, which takes no more.
        let input = match model.contains("titan") {
            true => json!("hello"),
            false => json!(["hello", "world"]),
        };
        let asked = json!({"model": "vectors", "input": input});
        let reserved = format!("0.0{}", asked.to_string().len());
        let response = send_with(&gateway, "key-capped", "/v1/embeddings", &asked).await;
        assert!(response.status >= 500, "{body}: {}", response.text());
        let expected = if cost == "reserved" { &reserved } else { cost };
        let lines = lines(gateway);
        assert_eq!(lines[0].field("cost"), expected, "{body}");
    }
}

/// Other keys may hold all of the memory when a response comes: it was generated all the same.
#[tokio::test]
async fn a_response_for_which_there_is_no_memory_costs_what_was_reserved() {
    let document = json!({"choices": [{"message": {"content": "x".repeat(600 << 10)}}]});
    let head = response_head("200 OK", "application/json");
    let address = fixed_response_upstream(vec![head, document.to_string().into_bytes()]);
    let models = "  - {id: dear, pricing: {output: 1000}, upstreams: [{name: chat}]}\n";
    let config = config(address, CAPPED, models)
        .replace("access_log: json", "access_log: json, body_memory: 1MiB");
    let gateway = Gateway::start(&config);
    let mut other = Http1Connection::connect(gateway.address).await;
    let announced = "content-length: 700000\r\nexpect: 100-continue\r\n";
    other
        .send(http1_post_head("/v1/chat/completions", announced))
        .await;
    assert_eq!(other.read_head().await.expect("a head").status(), 100);
    let (path, mut asked) = request("chat", "dear", "hello", false);
    asked["max_completion_tokens"] = 100.into();
    let response = send_with(&gateway, "key-capped", &path, &asked).await;
    assert_eq!(response.status, 503, "{}", response.text());
    let line = gateway.process.line_with("request_id");
    let line = super::LogLine(serde_json::from_str(&line).expect("JSON"));
    assert_eq!(line.field("cost"), "0.1");
}
