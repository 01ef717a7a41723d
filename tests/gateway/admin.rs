//! The admin port: health, readiness, and exact metrics.

use std::collections::BTreeMap;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, every_format_config, free_address, new_client, request, wait_for,
};
use reqwest::Response;

/// Every sample of a scrape, by its name and labels as they are written.
pub type Samples = BTreeMap<String, f64>;

pub async fn samples(gateway: &Gateway) -> Samples {
    let text = admin(gateway, "/metrics").await.text().await.expect("text");
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

/// The samples once one of them has reached a value.
pub async fn samples_when(gateway: &Gateway, name: &str, value: f64) -> Samples {
    wait_for(&format!("{name} {value}"), async || {
        let samples = samples(gateway).await;
        (samples.get(name).copied().unwrap_or_default() == value).then_some(samples)
    })
    .await
}

/// The samples once so many requests are counted: a client has its last byte a little before that.
async fn samples_after(gateway: &Gateway, requests: u32) -> Samples {
    wait_for(&format!("{requests} requests are counted"), async || {
        let samples = samples(gateway).await;
        let counted = of(&samples, "omniglot_requests_total");
        let sum: f64 = counted.iter().map(|(_, count)| count).sum();
        (sum == f64::from(requests)).then_some(samples)
    })
    .await
}

pub const IN_FLIGHT: &str = "omniglot_requests_in_flight";

/// Those of one metric that are not zero.
fn of(samples: &Samples, metric: &str) -> Vec<(String, f64)> {
    let prefix = format!("{metric}{{");
    samples
        .iter()
        .filter(|(name, value)| name.starts_with(&prefix) && **value != 0.0)
        .map(|(name, value)| (name[prefix.len()..name.len() - 1].to_owned(), *value))
        .collect()
}

async fn admin(gateway: &Gateway, path: &str) -> Response {
    let response = new_client().get(gateway.admin_url(path)).send().await;
    response.expect("the admin port answers")
}

/// Status and length of what a request is answered with, and the length of its own body.
struct ExchangeSizes {
    status: u16,
    received: usize,
    sent: usize,
}

async fn exchange(
    gateway: &Gateway,
    format: &str,
    model: &str,
    words: &str,
    stream: bool,
) -> ExchangeSizes {
    with_key(gateway, KEY, format, model, words, stream).await
}

async fn with_key(
    gateway: &Gateway,
    key: &str,
    format: &str,
    model: &str,
    words: &str,
    stream: bool,
) -> ExchangeSizes {
    let (path, body) = request(format, model, words, stream);
    let body = body.to_string();
    let received = body.len();
    let response = new_client()
        .post(gateway.url(&path))
        .bearer_auth(key)
        .header("content-type", "application/json")
        .body(body);
    let response = response.send().await.expect("an answer");
    ExchangeSizes {
        status: response.status().as_u16(),
        received,
        sent: response.bytes().await.expect("a whole body").len(),
    }
}

#[tokio::test]
async fn json_and_streams_count_the_tokens_that_the_upstream_reported() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let words = "hello mock:usage=10,4,7,3";
    let mut expected = Vec::new();
    for (format, _) in FORMATS {
        for (model, stream) in [("same", false), ("other", true)] {
            let model = format!("{model}-{format}");
            let done = exchange(&gateway, format, &model, words, stream).await;
            assert_eq!(done.status, 200);
            for (kind, count) in [
                ("input", 10.0),
                ("cached", 4.0),
                ("output", 7.0),
                ("thinking", 3.0),
            ] {
                let labels = format!("model=\"{model}\",kind=\"{kind}\"");
                expected.push((labels, count));
            }
        }
    }
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    let samples = samples_after(&gateway, 8).await;
    assert_eq!(of(&samples, "omniglot_tokens_total"), expected);
}

#[tokio::test]
async fn requests_are_counted_by_format_model_upstream_and_status_with_their_bytes() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let mut bytes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (format, _) in FORMATS {
        let (same, other) = (format!("same-{format}"), format!("other-{format}"));
        for (key, model, words, stream, status) in [
            (KEY, same.as_str(), "hello", false, 200),
            (KEY, &same, "hello again", true, 200),
            (KEY, &other, "mock:error=422", false, 422),
            (KEY, "made-up", "hello", false, 404),
            ("wrong", &same, "hello", false, 401),
            ("key-of-some", &other, "hello", false, 403),
        ] {
            let done = with_key(&gateway, key, format, model, words, stream).await;
            assert_eq!(done.status, status, "{format} {words}");
            let (received, sent) = bytes.entry(format).or_default();
            // A key is refused before the body is read.
            *received += if status == 401 { 0 } else { done.received };
            *sent += done.sent;
        }
    }
    let samples = samples_after(&gateway, 24).await;
    let mut expected = Vec::new();
    for (format, _) in FORMATS {
        for (model, upstream, status, count) in [
            (format!("same-{format}"), format!("mock-{format}"), 200, 2.0),
            (
                format!("other-{format}"),
                format!("mock-{format}"),
                422,
                1.0,
            ),
            (String::new(), String::new(), 404, 1.0),
            (String::new(), String::new(), 401, 1.0),
            (String::new(), String::new(), 403, 1.0),
        ] {
            let labels = format!(
                "format=\"{format}\",model=\"{model}\",upstream=\"{upstream}\",status=\"{status}\""
            );
            expected.push((labels, count));
        }
        let (received, sent) = bytes[format];
        let label = format!("{{format=\"{format}\"}}");
        let counted = |metric: &str| samples[&format!("omniglot_{metric}_bytes_total{label}")];
        assert_eq!(counted("received"), received as f64, "{format}");
        assert_eq!(counted("sent"), sent as f64, "{format}");
        let times = format!("_count{{format=\"{format}\",model=\"same-{format}\"}}");
        assert_eq!(samples[&format!("omniglot_request_seconds{times}")], 2.0);
        assert_eq!(samples[&format!("omniglot_first_byte_seconds{times}")], 2.0);
    }
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(of(&samples, "omniglot_requests_total"), expected);
    let version = format!(
        "omniglot_build_info{{version=\"{}\"}}",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(samples[&version], 1.0);
}

#[tokio::test]
async fn upstream_failures_are_counted_by_cause_also_after_a_failover() {
    let mock = Mock::start();
    let (dead, mock_address) = (free_address(), mock.address);
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n  \
         - {{name: good, format: chat, base_url: \"http://{mock_address}/v1\"}}\n  \
         - {{name: dead, format: chat, base_url: \"http://{dead}/v1\"}}\n  \
         - {{name: plain, format: chat, base_url: \"https://{mock_address}/v1\"}}\n  \
         - {{name: slow, format: chat, base_url: \"http://{mock_address}/v1\", timeouts: {{first_byte: 50ms}}}}\nmodels:\n  \
         - {{id: good, upstreams: [{{name: good}}]}}\n  \
         - {{id: dead, upstreams: [{{name: dead}}], fallbacks: [good]}}\n  \
         - {{id: plain, upstreams: [{{name: plain}}], fallbacks: [good]}}\n  \
         - {{id: slow, upstreams: [{{name: slow}}]}}\n"
    );
    let gateway = Gateway::start(&config);
    for (model, words, stream, status) in [
        ("dead", "hello", false, 200),
        ("plain", "hello", true, 200),
        ("slow", "mock:wait=never", false, 504),
        ("good", "mock:error=503", false, 503),
        ("good", "mock:error=400", false, 400),
        ("good", "mock:garbage", false, 502),
        ("good", "mock:html", true, 502),
        ("good", "mock:no_end", true, 200),
        ("good", "mock:cut", false, 502),
    ] {
        let done = exchange(&gateway, "chat", model, words, stream).await;
        assert_eq!(done.status, status, "{model} {words}");
    }
    let samples = samples_after(&gateway, 9).await;
    let failures = of(&samples, "omniglot_upstream_failures_total");
    let expected = [
        ("dead", "connect", 1.0),
        ("good", "cut", 1.0),
        ("good", "reset", 1.0),
        ("good", "status", 1.0),
        ("good", "unreadable", 2.0),
        ("plain", "tls", 1.0),
        ("slow", "timeout", 1.0),
    ];
    let expected = expected.map(|(upstream, cause, count)| {
        (format!("upstream=\"{upstream}\",cause=\"{cause}\""), count)
    });
    assert_eq!(failures, expected);
}

#[tokio::test]
async fn a_stream_is_in_flight_until_it_ends() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    assert_eq!(samples(&gateway).await[IN_FLIGHT], 0.0);
    let (path, body) = request(
        "chat",
        "same-chat",
        "one two mock:wait=go mock:name=it",
        true,
    );
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let response = asked.send().await.expect("a stream begins");
    mock.until_seen("it", "waiting", 1).await;
    assert_eq!(samples(&gateway).await[IN_FLIGHT], 1.0);
    mock.signal("go", 20).await;
    let text = response.text().await.expect("the rest");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    samples_when(&gateway, IN_FLIGHT, 0.0).await;
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_no_request_in_flight() {
    const TASKS: &str = "omniglot_tasks";
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let before = wait_for("tasks are counted", async || {
        let tasks = samples(&gateway).await[TASKS];
        (tasks > 0.0).then_some(tasks)
    })
    .await;
    let mut streams = Vec::new();
    for (format, _) in FORMATS {
        let words = "one two three mock:wait=never";
        let (path, body) = request(format, &format!("same-{format}"), words, true);
        let asked = new_client().post(gateway.url(&path)).bearer_auth(KEY);
        let response = asked.json(&body).send().await.expect("a stream begins");
        streams.push(response);
    }
    let during = samples(&gateway).await[TASKS];
    assert!(during >= streams.len() as f64, "{during} tasks");
    drop(streams);
    wait_for("the tasks are those of before", async || {
        let tasks = samples(&gateway).await[TASKS];
        (tasks <= before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn health_and_readiness_follow_the_state_of_the_process() {
    let mock = Mock::start();
    let mut gateway = Gateway::start(&every_format_config(mock.address));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(admin(&gateway, path).await.status(), 200, "{path}");
    }
    let (path, body) = request("chat", "same-chat", "mock:wait=go mock:name=it", true);
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let response = asked.send().await.expect("a stream begins");
    gateway.process.signal("TERM");
    wait_for("not ready any more", async || {
        (admin(&gateway, "/readyz").await.status() == 503).then_some(())
    })
    .await;
    assert_eq!(admin(&gateway, "/healthz").await.status(), 200);
    assert_eq!(samples(&gateway).await[IN_FLIGHT], 1.0);
    mock.signal("go", 20).await;
    response.text().await.expect("the rest");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[tokio::test]
async fn each_port_serves_only_its_own_paths() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for path in ["/healthz", "/readyz", "/metrics"] {
        let asked = new_client().get(gateway.url(path)).bearer_auth(KEY);
        let response = asked.send().await.expect("an answer");
        assert_eq!(response.status(), 404, "{path}");
        let body: serde_json::Value = response.json().await.expect("an error of the chat format");
        assert!(body["error"]["message"].is_string(), "{body}");
    }
    for path in ["/v1/models", "/api/models", "/v1beta/models", "/"] {
        let asked = new_client().get(gateway.admin_url(path)).bearer_auth(KEY);
        let response = asked.send().await.expect("an answer");
        assert_eq!(response.status(), 404, "{path}");
    }
    let (path, body) = request("chat", "same-chat", "hello", false);
    let asked = new_client().post(gateway.admin_url(&path)).bearer_auth(KEY);
    let response = asked.json(&body).send().await.expect("an answer");
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn without_an_admin_address_there_is_no_admin_port() {
    let mock = Mock::start();
    let config = every_format_config(mock.address).replace(", admin: ADMIN", "");
    let gateway = Gateway::start(&config);
    let refused = new_client().get(gateway.admin_url("/healthz")).send().await;
    assert!(refused.expect_err("nobody listens").is_connect());
}
