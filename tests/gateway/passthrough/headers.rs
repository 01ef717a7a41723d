//! The headers and the query of a request that an upstream gets, and the response headers that a client gets.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, echoed_request, every_format_config, request,
    send,
};
use serde_json::Value;

/// A header that only the upstream's settings name.
fn config(mock: &Mock) -> String {
    every_format_config(mock.address).replace(
        "auth: {bearer: secret-of-the-upstream}",
        "auth: {bearer: secret-of-the-upstream}, headers: {x-team: search, x-second: \"two words\"}",
    )
}

async fn send_request(
    gateway: &Gateway,
    format: &str,
    query: &str,
    headers: &[(&str, &str)],
) -> Response {
    let (path, body) = request(format, &format!("other-{format}"), "mock:echo", false);
    let mut asked = client()
        .post(gateway.url(&format!("{path}{query}")))
        .json(&body);
    for (name, value) in headers {
        asked = asked.header(*name, *value);
    }
    send(asked).await
}

const BEARER: (&str, &str) = ("authorization", "Bearer test-key-of-everything");

#[tokio::test]
async fn the_clients_key_does_not_reach_an_upstream() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let carriers = [
        BEARER,
        ("x-api-key", KEY),
        ("x-goog-api-key", KEY),
        ("x-vendor-api-key", KEY),
        ("cookie", "session=test-key-of-everything"),
        ("proxy-authorization", "Basic dGVzdA=="),
        ("x-forwarded-for", "10.1.2.3"),
        ("user-agent", "the-clients-own/1.0"),
        ("x-anything-else", "1"),
    ];
    for (format, _) in FORMATS {
        let query = "?key=test-key-of-everything&k%65y=test-key-of-everything&x=y";
        let response = send_request(&gateway, format, query, &carriers).await;
        let echo = echoed_request(format, &response);
        let all = echo.to_string();
        assert!(!all.contains(KEY), "{all}");
        let headers = echo["headers"].as_object().expect("headers");
        let names = headers.keys().map(String::as_str);
        let names: Vec<&str> = names.filter(|name| *name != "anthropic-version").collect();
        assert_eq!(
            names,
            [
                "accept-encoding",
                "authorization",
                "content-length",
                "content-type",
                "host",
                "user-agent",
                "x-second",
                "x-team"
            ],
            "{format}"
        );
        assert_eq!(headers["authorization"], "Bearer secret-of-the-upstream");
        assert_eq!(headers["x-team"], "search");
        assert_eq!(headers["x-second"], "two words");
        assert_eq!(headers["host"], mock.address.to_string());
        assert_eq!(headers["accept-encoding"], "identity");
        assert!(!headers["user-agent"].to_string().contains("clients-own"));
    }
}

#[tokio::test]
async fn credentials_may_be_sent_in_a_header_of_any_name() {
    let mock = Mock::start();
    let config = every_format_config(mock.address).replace(
        "auth: {bearer: secret-of-the-upstream}",
        "auth: {header: {name: x-api-key, value: the-upstreams-own}}",
    );
    let gateway = Gateway::start(&config);
    for (format, _) in FORMATS {
        let response = send_request(&gateway, format, "", &[("x-api-key", KEY)]).await;
        let echo = echoed_request(format, &response);
        assert_eq!(
            echo["headers"]["x-api-key"], "the-upstreams-own",
            "{format}"
        );
        assert_eq!(echo["headers"]["authorization"], Value::Null, "{format}");
    }
}

#[tokio::test]
async fn of_a_query_only_what_the_format_needs_passes() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (format, query, passed, dropped) in [
        ("chat", "?beta=true", "", "?beta"),
        ("messages", "?beta=true", "?beta=true", ""),
        ("messages", "?beta=false", "", "?beta"),
        (
            "messages",
            "?a=%20b&beta=true&key=1&a=c",
            "?beta=true",
            "?a",
        ),
        // The key itself, under a name of another vendor.
        ("chat", "?api_key=test-key-of%2Deverything", "", "?api_key"),
        ("responses", "?key=x", "", ""),
        ("responses", "?", "", ""),
        // These would leave the usage out of the response, or replace the upstream's credentials.
        (
            "native",
            "?fields=candidates&alt=json&access_token=x",
            "",
            "?fields, ?access_token",
        ),
    ] {
        let response = send_request(&gateway, format, query, &[BEARER]).await;
        let echo = echoed_request(format, &response);
        let path = echo["path"].as_str().expect("a path");
        let sent = path.find('?').map_or("", |at| &path[at..]);
        assert_eq!(sent, passed, "{format} {query}");
        let reported = response.header("x-omniglot-dropped");
        assert_eq!(reported, dropped, "{format} {query}");
    }
}

#[tokio::test]
async fn a_native_stream_is_asked_for_as_events() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let (path, body) = request("native", "same-native", "mock:echo", true);
    let url = gateway.url(&format!("{path}&x=y&key={KEY}"));
    let response = send(client().post(url).json(&body)).await;
    let text = response.text();
    assert_eq!(response.header("content-type"), "text/event-stream");
    assert!(text.contains("streamGenerateContent?alt=sse\\\""), "{text}");
    assert!(!text.contains(KEY), "{text}");
}

#[tokio::test]
async fn a_version_is_sent_for_clients_that_leave_it_out() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (sent, expected) in [(None, "2023-06-01"), (Some("2099-01-01"), "2099-01-01")] {
        let version = sent.map(|version| ("anthropic-version", version));
        let headers: Vec<(&str, &str)> = [BEARER].into_iter().chain(version).collect();
        let response = send_request(&gateway, "messages", "", &headers).await;
        let echo = echoed_request("messages", &response);
        assert_eq!(echo["headers"]["anthropic-version"], expected);
    }
}

#[tokio::test]
async fn headers_of_the_format_pass() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let sent = [
        BEARER,
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "one-2025-01-01"),
        ("anthropic-beta", "two-2025-01-01"),
        ("openai-beta", "assistants=v2"),
    ];
    for (format, own, foreign) in [
        ("messages", "anthropic-version", "openai-beta"),
        ("messages", "anthropic-beta", "openai-beta"),
        ("chat", "openai-beta", "anthropic-beta"),
        ("responses", "openai-beta", "anthropic-version"),
    ] {
        let response = send_request(&gateway, format, "", &sent).await;
        let echo = echoed_request(format, &response);
        let expected: Vec<&str> = sent
            .iter()
            .filter(|sent| sent.0 == own)
            .map(|sent| sent.1)
            .collect();
        assert_eq!(echo["headers"][own], expected.join(", "), "{format}");
        assert_eq!(echo["headers"][foreign], Value::Null, "{format}");
    }
}

/// To an upstream all keys are one: the same idempotency key of two of them must not be the same there.
#[tokio::test]
async fn an_idempotency_key_is_scoped_to_the_key_that_sends_it() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for format in ["chat", "messages", "responses"] {
        let (path, body) = request(format, &format!("same-{format}"), "mock:echo", false);
        let mut seen = Vec::new();
        for key in [KEY, KEY, "key-of-some"] {
            let asked = client().post(gateway.url(&path)).bearer_auth(key);
            let asked = asked.header("idempotency-key", "my-request-1");
            let response = send(asked.json(&body)).await;
            let echo = echoed_request(format, &response);
            let value = echo["headers"]["idempotency-key"].as_str().expect(format);
            assert!(
                !value.contains("my-request") && value.len() == 32,
                "{value}"
            );
            seen.push(value.to_owned());
        }
        assert_eq!(seen[0], seen[1]);
        assert_ne!(seen[0], seen[2]);
    }
}

#[tokio::test]
async fn only_the_content_type_of_an_upstreams_headers_passes() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            let (path, body) =
                request(format, &format!("same-{format}"), "mock:headers hi", stream);
            let direct = send(client().post(mock.url(&path)).json(&body)).await;
            assert!(
                !direct.header("set-cookie").is_empty(),
                "the mock sends them"
            );
            let asked = client()
                .post(gateway.url(&path))
                .bearer_auth(KEY)
                .json(&body);
            let response = send(asked).await;
            let names = response.headers.keys().map(|name| name.as_str());
            // `connection` is of this hop, not of the upstream's.
            let mut names: Vec<&str> = names.filter(|name| *name != "connection").collect();
            names.sort_unstable();
            let (kind, framing): (_, &[&str]) = if stream {
                (
                    "text/event-stream",
                    &["cache-control", "content-type", "date", "transfer-encoding"],
                )
            } else {
                (
                    "application/json",
                    &["content-length", "content-type", "date"],
                )
            };
            let ours = ["x-omniglot-attempts", "x-omniglot-upstream", "x-request-id"];
            // The name that this format's SDKs look for; the upstream's own value stays behind.
            let theirs: &[&str] = match format {
                "messages" => &["request-id"],
                _ => &[],
            };
            let mut expected = [framing, &ours, theirs].concat();
            expected.sort_unstable();
            assert_eq!(names, expected, "{format}");
            if !theirs.is_empty() {
                assert_eq!(
                    response.header("request-id"),
                    response.header("x-request-id")
                );
            }
            assert_eq!(response.header("content-type"), kind);
            assert_eq!(
                response.header("x-omniglot-upstream"),
                format!("mock-{format}")
            );
            assert_eq!(response.header("x-omniglot-attempts"), "1");
        }
    }
}

#[tokio::test]
async fn every_response_has_its_own_request_id() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let mut ids = Vec::new();
    for (format, _) in FORMATS {
        for headers in [&[][..], &[BEARER, ("x-request-id", "req_mine")][..]] {
            let response = send_request(&gateway, format, "", headers).await;
            ids.push(response.header("x-request-id").to_owned());
            if format == "messages" && headers.is_empty() {
                assert_eq!(
                    response.json()["request_id"],
                    response.header("x-request-id")
                );
            }
        }
    }
    assert!(
        ids.iter()
            .all(|id| id.starts_with("req_") && id != "req_mine"),
        "{ids:?}"
    );
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "none is used twice");
}
