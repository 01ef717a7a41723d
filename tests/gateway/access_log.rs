//! The access log: one line of JSON per request, with its usage and without its content.

use omniglot_test_support::{
    FORMATS, Gateway, Http1Connection, KEY, Mock, RecordingServer, Stderr, every_format_config,
    free_address, http1_post, new_client, request, single_upstream_config, wait_until,
};
use serde_json::Value;

const STRANGER: &str = "canary-of-a-stranger";

fn logged(config: &str) -> String {
    config.replace("admin: ADMIN", "admin: ADMIN, access_log: json")
}

/// Ends the gateway and reads its log.
fn lines(mut gateway: Gateway) -> Vec<Value> {
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    let lines = gateway.process.lines_to_the_end();
    for line in &lines {
        for canary in [KEY, STRANGER, "canary"] {
            assert!(!line.contains(canary), "{canary} in {line}");
        }
    }
    lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

/// The id that the client was told, and what came back.
async fn send_request(gateway: &Gateway, key: &str, path: &str, body: &Value) -> (u16, String) {
    let request = new_client().post(gateway.url(path)).bearer_auth(key);
    let response = request.json(body).send().await.expect("an answer");
    let id = response.headers()["x-request-id"].to_str().expect("text");
    let answered = (response.status().as_u16(), id.to_owned());
    response.text().await.expect("a body");
    answered
}

/// The one line of a request; the order of lines is that of endings.
fn line_of<'a>(lines: &'a [Value], id: &str) -> &'a Value {
    let mut found = lines.iter().filter(|line| line["request_id"] == id);
    let line = found.next().expect("a line for the request");
    assert!(found.next().is_none(), "only one line for {id}");
    line
}

#[track_caller]
fn assert_fields(line: &Value, expected: &[(&str, Value)]) {
    for (name, value) in expected {
        assert_eq!(line[name], *value, "{name} in {line}");
    }
}

#[track_caller]
fn assert_times(line: &Value) {
    let time = line["time"].as_str().expect("a time");
    time.parse::<jiff::Timestamp>().expect("an RFC 3339 time");
    let first = line["first_byte_ms"].as_f64().expect("a number");
    let total = line["total_ms"].as_f64().expect("a number");
    assert!(0.0 < first && first <= total, "{line}");
}

#[tokio::test]
async fn every_format_logs_all_fields() {
    let mock = Mock::start();
    let gateway = Gateway::start(&logged(&every_format_config(mock.address)));
    let words = "canary-prompt mock:usage=10,4,7,3 mock:text=canary-answer";
    let mut asked = Vec::new();
    for (format, _) in FORMATS {
        for stream in [false, true] {
            let (path, body) = request(format, &format!("other-{format}"), words, stream);
            let (status, id) = send_request(&gateway, KEY, &path, &body).await;
            assert_eq!(status, 200);
            let path = path.split('?').next().expect("a path").to_owned();
            asked.push((id, format, stream, path, body.to_string().len()));
        }
    }
    let lines = lines(gateway);
    assert_eq!(lines.len(), asked.len());
    for (id, format, stream, path, length) in asked {
        let line = line_of(&lines, &id);
        assert_fields(
            line,
            &[
                ("client", "127.0.0.1".into()),
                ("key", "all".into()),
                ("method", "POST".into()),
                ("path", path.into()),
                ("model", format!("other-{format}").into()),
                ("format", format.into()),
                ("upstream_format", format.into()),
                ("upstream", format!("mock-{format}").into()),
                ("attempts", 1.into()),
                ("status", 200.into()),
                ("stream", stream.into()),
                ("input_tokens", 10.into()),
                ("cached_tokens", 4.into()),
                ("output_tokens", 7.into()),
                ("thinking_tokens", 3.into()),
                ("received_bytes", length.into()),
            ],
        );
        assert_times(line);
    }
}

#[tokio::test]
async fn refused_requests_are_logged_with_the_known_fields() {
    let mock = Mock::start();
    let gateway = Gateway::start(&logged(&every_format_config(mock.address)));
    let (path, good) = request("chat", "same-chat", "canary", false);
    let (_, unknown) = request("chat", "made-up", "canary", false);
    let (status, no_key) = send_request(&gateway, STRANGER, &path, &good).await;
    assert_eq!(status, 401);
    let (status, no_model) = send_request(&gateway, KEY, &path, &unknown).await;
    assert_eq!(status, 404);
    let (status, no_path) = send_request(&gateway, KEY, "/v1/other?key=canary", &good).await;
    assert_eq!(status, 404);
    let native = "/v1beta/models/same-native:generateContent?key=canary-in-the-query";
    let (status, in_query) = send_request(&gateway, "", native, &good).await;
    assert_eq!(status, 401);
    let (_, failing) = request("chat", "same-chat", "canary mock:error=422,canary", false);
    let (status, upstreams) = send_request(&gateway, KEY, &path, &failing).await;
    assert_eq!(status, 422);

    let lines = lines(gateway);
    assert_eq!(lines.len(), 5);
    let nothing = Value::Null;
    let made_up = Value::from("made-up");
    for (id, key, status, path, model) in [
        (no_key, nothing.clone(), 401, path.as_str(), nothing.clone()),
        (no_model, "all".into(), 404, &path, made_up),
        (no_path, nothing.clone(), 404, "/v1/other", nothing.clone()),
        (
            in_query,
            nothing.clone(),
            401,
            "/v1beta/models/same-native:generateContent",
            nothing.clone(),
        ),
    ] {
        let line = line_of(&lines, &id);
        assert_fields(
            line,
            &[
                ("key", key),
                ("status", status.into()),
                ("path", path.into()),
                ("model", model),
                ("upstream", nothing.clone()),
                ("upstream_format", nothing.clone()),
                ("attempts", 0.into()),
                ("input_tokens", nothing.clone()),
            ],
        );
        assert_times(line);
    }
    assert_fields(
        line_of(&lines, &upstreams),
        &[
            ("status", 422.into()),
            ("upstream", "mock-chat".into()),
            ("attempts", 1.into()),
        ],
    );
}

#[tokio::test]
async fn a_key_in_the_query_is_never_logged() {
    let mock = Mock::start();
    let gateway = Gateway::start(&logged(&every_format_config(mock.address)));
    let path = format!("/v1beta/models/same-native:generateContent?key={KEY}");
    let (_, body) = request("native", "same-native", "canary", false);
    let response = new_client()
        .post(gateway.url(&path))
        .json(&body)
        .send()
        .await;
    assert_eq!(response.expect("an answer").status(), 200);
    let lines = lines(gateway);
    assert_eq!(lines.len(), 1);
    assert_fields(&lines[0], &[("key", "all".into()), ("status", 200.into())]);
}

#[tokio::test]
async fn a_failover_is_one_line_with_the_upstream_that_served_it() {
    let mock = Mock::start();
    let dead = free_address();
    let config = format!(
        "{}  - {{id: twice, upstreams: [{{name: dead}}], fallbacks: [same-chat]}}\n",
        every_format_config(mock.address).replace(
            "models:\n",
            &format!("  - {{name: dead, format: chat, base_url: \"http://{dead}/v1\"}}\nmodels:\n")
        )
    );
    let gateway = Gateway::start(&logged(&config));
    let mut ids = Vec::new();
    for stream in [false, true] {
        let (path, body) = request("chat", "twice", "canary", stream);
        let (status, id) = send_request(&gateway, KEY, &path, &body).await;
        assert_eq!(status, 200);
        ids.push(id);
    }
    let lines = lines(gateway);
    assert_eq!(lines.len(), 2);
    for id in ids {
        let expected = [
            ("model", "twice".into()),
            ("upstream", "mock-chat".into()),
            ("attempts", 2.into()),
            ("status", 200.into()),
        ];
        assert_fields(line_of(&lines, &id), &expected);
    }
}

/// The status is that of the stream's beginning: what went wrong is in the field of the error alone.
#[tokio::test]
async fn an_error_that_passes_inside_a_stream_is_logged() {
    let events = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
                  \"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"}}]}\n\n\
                  data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\",\"code\":503}}\n\n";
    let upstream =
        RecordingServer::start(move |_, _| (200, "text/event-stream", events.to_owned()));
    let url = upstream.url("/v1");
    let config = single_upstream_config("access_log: json", &format!("base_url: \"{url}\""));
    let gateway = Gateway::start(&config);
    let (path, body) = request("chat", "m", "canary", true);
    let (status, id) = send_request(&gateway, KEY, &path, &body).await;
    assert_eq!(status, 200);
    let lines = lines(gateway);
    let line = line_of(&lines, &id);
    assert!(line["fault"].is_string(), "{line}");
}

#[tokio::test]
async fn a_client_that_disconnects_is_logged_as_499() {
    let mock = Mock::start();
    let gateway = Gateway::start(&logged(&every_format_config(mock.address)));
    let words = "canary mock:wait=never mock:name=left";
    let (path, body) = request("chat", "same-chat", words, true);
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let begun = asked.send().await.expect("a stream begins");
    let id = begun.headers()["x-request-id"]
        .to_str()
        .expect("text")
        .to_owned();
    drop(begun);
    mock.until_seen("left", "cancelled", 1).await;

    let (_, body) = request("chat", "same-chat", words, false);
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let waiting = tokio::spawn(asked.send());
    mock.until_seen("left", "waiting", 1).await;
    waiting.abort();
    mock.until_seen("left", "cancelled", 2).await;

    let lines = lines(gateway);
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_fields(
            line,
            &[("status", 499.into()), ("upstream", "mock-chat".into())],
        );
    }
    assert!(line_of(&lines, &id)["first_byte_ms"].is_number());
    let other = lines.iter().find(|line| line["request_id"] != id);
    assert!(other.expect("the other line")["first_byte_ms"].is_null());
}

#[tokio::test]
async fn a_client_that_leaves_before_the_next_attempt_is_logged_as_499() {
    let mock = Mock::start();
    let config = logged(&every_format_config(mock.address));
    let again = "{id: again, retries: {attempts: 2, backoff: 20s}, upstreams: [{name: mock-chat}]}";
    let gateway = Gateway::start(&format!("{config}  - {again}\n"));
    let (path, body) = request("chat", "again", "mock:error=500 mock:name=left", false);
    let mut connection = Http1Connection::connect(gateway.address).await;
    connection
        .send(http1_post(&path, "", &body.to_string()))
        .await;
    mock.until_seen("left", "started", 1).await;
    wait_until("the first attempt has failed", async || {
        let failures = gateway.metric("omniglot_upstream_failures_total").await;
        failures.iter().any(|line| line.ends_with(" 1"))
    })
    .await;
    drop(connection);

    let lines = lines(gateway);
    let expected = [
        ("status", 499.into()),
        ("upstream", "mock-chat".into()),
        ("attempts", 1.into()),
    ];
    assert_eq!(lines.len(), 1);
    assert_fields(&lines[0], &expected);
}

#[tokio::test]
async fn model_lists_are_logged() {
    let mock = Mock::start();
    let gateway = Gateway::start(&logged(&every_format_config(mock.address)));
    for path in ["/v1/models", "/api/models"] {
        let response = new_client()
            .get(gateway.url(path))
            .bearer_auth(KEY)
            .send()
            .await;
        assert_eq!(response.expect("an answer").status(), 200);
    }
    let lines = lines(gateway);
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert_fields(&line, &[("method", "GET".into()), ("status", 200.into())]);
    }
}

#[tokio::test]
async fn nothing_is_logged_by_default() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let (path, body) = request("chat", "same-chat", "canary", false);
    let (status, _) = send_request(&gateway, KEY, &path, &body).await;
    assert_eq!(status, 200);
    assert_eq!(lines(gateway), Vec::<Value>::new());
}

#[tokio::test]
async fn the_model_of_a_403_and_a_404_is_logged() {
    let mock = Mock::start();
    let gateway = Gateway::start(&logged(&every_format_config(mock.address)));
    let long = "m".repeat(100_000);
    let mut asked = Vec::new();
    for (key, model, expected) in [
        (KEY, "made-up", 404),
        ("key-of-some", "other-chat", 403),
        (KEY, &long, 404),
    ] {
        let (path, body) = request("chat", model, "hello", false);
        let (status, id) = send_request(&gateway, key, &path, &body).await;
        assert_eq!(status, expected);
        asked.push((id, model));
    }
    let lines = lines(gateway);
    for (id, model) in asked {
        let line = line_of(&lines, &id);
        let logged = line["model"].as_str().expect("a model");
        assert!(model.starts_with(logged.trim_end_matches('…')), "{line}");
        assert!(!logged.is_empty() && logged.len() < 1_000, "{line}");
    }
}

#[tokio::test]
async fn every_line_about_an_upstream_has_the_request_id() {
    let (refused, unknown) = (free_address(), "no-such-host.invalid");
    let stderr = Stderr::new();
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n  \
         - {{name: refused, format: chat, base_url: \"http://{refused}/v1\", breaker: {{failures: 1}}}}\n  \
         - {{name: unknown, format: chat, base_url: \"http://{unknown}/v1\", breaker: {{failures: 1}}}}\n\
         models: [{{id: m, upstreams: [{{name: refused}}, {{name: unknown, priority: 1}}]}}]\n"
    );
    let gateway = Gateway::start_with(&config, |command| stderr.attach(command));
    let (path, body) = request("chat", "m", "hello", false);
    let (status, id) = send_request(&gateway, KEY, &path, &body).await;
    assert_eq!(status, 502);
    lines(gateway);
    let text = stderr.text();
    let about = text.lines().filter(|line| line.contains("upstream "));
    let about: Vec<&str> = about.collect();
    // Each fails, and each opens its breaker.
    assert!(about.len() >= 4, "{text}");
    for line in about {
        assert!(line.contains(&id), "{line}");
    }
}
