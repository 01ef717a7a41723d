//! Clients with a spending cap that leave: the upstream's work goes on, and is paid by its usage.

use std::sync::Arc;
use std::time::Duration;

use omniglot_test_support::{
    FORMATS, Gateway, Http1Connection, Http1Upstream, KEY, Mock, Stderr, client, http1_post,
    request, send, wait_until,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{LogLine, config, lines};

const CAPPED: &str = ", {name: capped, secret: key-capped, spending_cap: 10}";

/// What the gateway logs when it goes on without its client.
const READS_ON: &str = "has left, and its response is read to the end";

struct CappedGateway {
    gateway: Gateway,
    stderr: Stderr,
}

impl CappedGateway {
    fn start(config: &str) -> CappedGateway {
        let stderr = Stderr::new();
        let gateway = Gateway::start_with(config, |command| {
            stderr.attach(command.env("RUST_LOG", "omniglot=debug"));
        });
        CappedGateway { gateway, stderr }
    }

    async fn send(&self, path: &str, body: &Value) -> Http1Connection {
        let mut connection = Http1Connection::connect(self.gateway.address).await;
        let asked = http1_post(path, "", &body.to_string()).replace(KEY, "key-capped");
        connection.send(asked).await;
        connection
    }

    /// Sends a request, and leaves when the mock waits for a signal.
    async fn leave(&self, mock: &Mock, path: &str, body: &Value, name: &str) {
        let connection = self.send(path, body).await;
        mock.until_seen(name, "waiting", 1).await;
        drop(connection);
    }

    fn readings(&self) -> usize {
        self.stderr.text().matches(READS_ON).count()
    }

    /// Waits until the gateway has noticed that so many clients have left.
    async fn until_reading(&self, count: usize) {
        wait_until("the gateway reads on", async || self.readings() == count).await;
    }

    async fn lines(self) -> Vec<LogLine> {
        self.gateway.until_idle().await;
        lines(self.gateway)
    }
}

#[tokio::test]
async fn a_client_that_leaves_pays_by_the_usage_that_comes_later() {
    let mock = Mock::start();
    let gateway = CappedGateway::start(&config(mock.address, CAPPED, ""));
    let mut count = 0;
    for (client, _) in FORMATS {
        for (upstream, _) in FORMATS {
            for stream in [false, true] {
                // The first event of a native stream has content.
                if stream && upstream == "native" {
                    continue;
                }
                count += 1;
                let name = format!("left-{count}");
                let words = format!(
                    "mock:usage=1000,400,50,20 mock:text=hello mock:wait={name} mock:name={name}"
                );
                let model = format!("priced-{upstream}");
                let (path, body) = request(client, &model, &words, stream);
                gateway.leave(&mock, &path, &body, &name).await;
                gateway.until_reading(count).await;
                mock.signal(&name, 100).await;
                mock.until_seen(&name, "finished", 1).await;
            }
        }
    }
    let lines = gateway.lines().await;
    assert_eq!(lines.len(), count);
    for line in lines {
        assert_eq!(line.field("status"), "499");
        assert_eq!(line.field("cost"), "0.001351", "{}", line.field("model"));
        assert_eq!(line.field("estimated"), "false");
    }
}

/// A client that leaves while the body comes pays for all of it.
#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_a_body_pays_by_its_usage() {
    let response = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100}});
    let response = response.to_string();
    let (half, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (half.clone(), go.clone());
    let upstream = Http1Upstream::start(move |mut connection, _| {
        let (response, (half, go)) = (response.clone(), signals.clone());
        async move {
            let _ = connection.read_message().await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            let length = response.len();
            let (first, rest) = response.split_at(length / 2);
            connection
                .send(format!("{head}content-length: {length}\r\n\r\n{first}"))
                .await;
            half.notify_one();
            go.notified().await;
            connection.send(rest).await;
            // The gateway closes it.
            connection.read_until_closed().await;
        }
    })
    .await;
    let gateway = CappedGateway::start(&config(upstream.address, CAPPED, ""));
    let (path, body) = request("chat", "priced-chat", "hello", false);
    let connection = gateway.send(&path, &body).await;
    half.notified().await;
    drop(connection);
    gateway.until_reading(1).await;
    go.notify_one();
    let lines = gateway.lines().await;
    // 1000 × 1.25 + 100 × 10 for a million, and 0.000001.
    assert_eq!(lines[0].field("cost"), "0.002251");
    assert_eq!(lines[0].field("status"), "499");
}

#[tokio::test]
async fn a_client_that_has_left_keeps_its_place_and_gets_no_second_attempt() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 10, limits: {concurrency: 1}}";
    let models = format!(
        "  - {{id: again, pricing: {}, retries: {{attempts: 3}}, upstreams: [{{name: chat}}]}}\n",
        super::PRICES
    );
    let gateway = CappedGateway::start(&config(mock.address, keys, &models));
    let words = "mock:error=500 mock:wait=go mock:name=left";
    let (path, body) = request("chat", "again", words, false);
    gateway.leave(&mock, &path, &body, "left").await;
    gateway.until_reading(1).await;
    let (path, body) = request("chat", "priced-chat", "hello", false);
    let next = async || {
        let asked = client().post(gateway.gateway.url(&path));
        send(asked.bearer_auth("key-capped").json(&body)).await
    };
    assert_eq!(next().await.status, 429);
    mock.signal("go", 3).await;
    mock.until_seen("left", "finished", 1).await;
    gateway.gateway.until_idle().await;
    assert_eq!(next().await.status, 200);
    assert_eq!(mock.seen("left", "started").await, 1);
    let lines = gateway.lines().await;
    let left = lines.iter().find(|line| line.field("status") == "499");
    let left = left.expect("a line");
    // An upstream that fails bills nothing.
    assert_eq!(left.field("cost"), "null");
    assert_eq!(left.field("attempts"), "1");
}

/// A stream whose client has left, and the text that it had received by then.
async fn stream_until(gateway: &CappedGateway, mock: &Mock, name: &str) -> Http1Connection {
    let words = format!(
        "mock:usage=1000,400,50,20 mock:text=hello dear world mock:wait={name} mock:name={name}"
    );
    let (path, body) = request("chat", "priced-chat", &words, true);
    let mut connection = gateway.send(&path, &body).await;
    mock.until_seen(name, "waiting", 1).await;
    mock.signal(name, 1).await;
    connection.read_head().await.expect("a head");
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("hello") {
        received.extend(connection.read_chunk().await.expect("a chunk"));
    }
    connection
}

/// What an upstream generates without showing it is billed too.
#[tokio::test]
async fn a_stream_is_read_to_its_end_without_its_client() {
    let mock = Mock::start();
    let gateway = CappedGateway::start(&config(mock.address, CAPPED, ""));
    drop(stream_until(&gateway, &mock, "left").await);
    gateway.until_reading(1).await;
    mock.signal("left", 100).await;
    mock.until_seen("left", "finished", 1).await;
    let lines = gateway.lines().await;
    assert_eq!(lines[0].field("cost"), "0.001351");
    assert_eq!(lines[0].field("estimated"), "false");
}

#[tokio::test]
async fn reading_on_ends_with_the_drain_timeout() {
    let mock = Mock::start();
    let config = config(mock.address, CAPPED, "")
        .replace("access_log: json", "access_log: json, drain_timeout: 100ms");
    let gateway = CappedGateway::start(&config);
    let mut length = 0;
    for (count, stream) in [(1, false), (2, true)] {
        let name = format!("left-{count}");
        let words = format!("mock:text=hello mock:wait=never mock:name={name}");
        let (path, body) = request("chat", "priced-chat", &words, stream);
        length = body.to_string().len();
        gateway.leave(&mock, &path, &body, &name).await;
        gateway.until_reading(count).await;
    }
    let lines = lines(gateway.gateway);
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert_eq!(line.field("status"), "499");
        assert_eq!(line.field("cost"), line.worth());
        let input = line.count("input_tokens");
        assert!(input >= length as u64 / 4, "{input}");
    }
    for name in ["left-1", "left-2"] {
        mock.until_seen(name, "cancelled", 1).await;
    }
}

#[tokio::test]
async fn a_task_that_is_cancelled_is_paid_by_its_usage() {
    let mock = Mock::start();
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN, access_log: json}}\n\
         keys: [{{name: capped, secret: key-capped, spending_cap: 10}}]\n\
         upstreams: [{{name: art, format: images, base_url: \"http://{}/v1\"}}]\n\
         models: [{{id: art, model_type: image, pricing: {{image_output: 1000}}, upstreams: [{{name: art}}]}}]\n",
        mock.address
    );
    let gateway = CappedGateway::start(&config);
    let words = "a cat mock:usage=10,0,70,0 mock:wait=go mock:name=task";
    let body = json!({"model": "art", "prompt": words, "size": "1024x1024", "async": true});
    let asked = client().post(gateway.gateway.url("/v1/images/generations"));
    let accepted = send(asked.bearer_auth("key-capped").json(&body)).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    mock.until_seen("task", "waiting", 1).await;
    let task = client().delete(gateway.gateway.url(accepted.header("location")));
    let cancelled = send(task.bearer_auth("key-capped")).await;
    assert_eq!(cancelled.json()["status"], "cancelled");
    gateway.until_reading(1).await;
    mock.signal("go", 1).await;
    mock.until_seen("task", "finished", 1).await;
    let lines = gateway.lines().await;
    let ran = lines.iter().find(|line| line.field("status") == "499");
    assert_eq!(ran.expect("a line").field("cost"), "0.07");
}

/// An upstream that breaks off has not told how much it has read: what was reserved for it is paid.
#[tokio::test]
async fn a_client_that_leaves_pays_for_input_that_it_only_refers_to() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 1000}";
    let models = "  - {id: dear-chat, pricing: {input: 1000}, max_input_tokens: 20000, upstreams: [{name: chat}]}\n  \
                  - {id: dear-native, pricing: {input: 1000}, max_input_tokens: 20000, upstreams: [{name: native}]}\n";
    let gateway = CappedGateway::start(&config(mock.address, keys, models));
    let long = json!({"type": "string", "description": "x".repeat(9000)});
    let refer = json!({"$ref": "#/$defs/long"});
    let tool = |name: &str, properties: Value| {
        json!([{"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": properties, "$defs": {"long": long}}}}])
    };
    let mut expected = Vec::new();
    for (number, (model, stream, field, value)) in [
        ("dear-chat", false, "plugins", json!([{"id": "web"}])),
        ("dear-chat", true, "plugins", json!([{"id": "web"}])),
        // The schema is sent three times, and was sent to the gateway once.
        (
            "dear-native",
            false,
            "tools",
            tool("f", json!({"a": refer, "b": refer, "c": refer})),
        ),
        ("dear-chat", false, "user", json!("u")),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("left-{number}");
        // It breaks off before its usage.
        let words = format!("mock:text=hello mock:wait={name} mock:cut=2 mock:name={name}");
        let (path, mut body) = request("chat", model, &words, stream);
        body[field] = value;
        let length = body.to_string().len() as u64;
        expected.push(match field {
            // The upstream may read it eleven times, for tools of its own.
            "plugins" => 220_000..=220_000,
            "tools" => length.div_ceil(4) + 3800..=length.div_ceil(4) + 5100,
            // Its structure weighs more than its words.
            _ => length.div_ceil(4)..=length.div_ceil(2),
        });
        gateway.leave(&mock, &path, &body, &name).await;
        gateway.until_reading(number + 1).await;
        mock.signal(&name, 100).await;
        gateway.gateway.until_idle().await;
    }
    let lines = gateway.lines().await;
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(expected) {
        let input = line.count("input_tokens");
        assert!(expected.contains(&input), "{input} is not {expected:?}");
        assert_eq!(line.field("status"), "499");
    }
}

/// While a write waits, nothing is read of what the upstream goes on to generate.
#[tokio::test]
async fn a_client_that_does_not_read_its_stream_and_leaves_pays_for_all_of_it() {
    let mock = Mock::start();
    let gateway = CappedGateway::start(&config(mock.address, CAPPED, ""));
    let words = "mock:usage=1000,0,50,0 mock:long=4000000 mock:events=400";
    let (path, body) = request("chat", "priced-chat", words, true);
    let mut connection = gateway.send(&path, &body).await;
    assert_eq!(connection.read_head().await.expect("a head").status(), 200);
    // More than the buffers of both sockets take is on its way.
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(connection);
    gateway.until_reading(1).await;
    let lines = gateway.lines().await;
    assert_eq!(lines[0].count("output_tokens"), 50);
    assert_eq!(lines[0].field("estimated"), "false");
}

/// Requests without a client take places that other keys need.
#[tokio::test]
async fn one_key_has_few_requests_that_are_finished_without_their_clients() {
    let mock = Mock::start();
    let gateway = CappedGateway::start(&config(mock.address, CAPPED, ""));
    for number in 1..=33 {
        let name = format!("many-{number}");
        let words = format!("mock:usage=1000,0,50,0 mock:wait={name} mock:name={name}");
        let (path, body) = request("chat", "priced-chat", &words, false);
        gateway.leave(&mock, &path, &body, &name).await;
        if number <= 32 {
            gateway.until_reading(number).await;
        }
    }
    mock.until_seen("many-33", "cancelled", 1).await;
    for number in 1..=32 {
        mock.signal(&format!("many-{number}"), 100).await;
    }
    let lines = gateway.lines().await;
    assert_eq!(lines.len(), 33);
    // The one too many costs what was reserved.
    let reserved = |line: &&LogLine| line.count("output_tokens") == 4096;
    assert_eq!(lines.iter().filter(reserved).count(), 1);
    let reported = |line: &&LogLine| line.count("output_tokens") == 50;
    assert_eq!(lines.iter().filter(reported).count(), 32);
}

/// One choice may come after the other, each with the usage so far.
#[tokio::test]
async fn a_stream_of_several_choices_is_read_until_all_have_come() {
    let (some, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (some.clone(), go.clone());
    let upstream = Http1Upstream::start(move |mut connection, _| {
        let (some, go) = signals.clone();
        async move {
            let _ = connection.read_message().await;
            let chunk = |index: usize, count: usize| {
                let choice = json!({"index": index, "delta": {"content": "hi"}, "finish_reason": "stop"});
                let usage = json!({"prompt_tokens": 1000, "completion_tokens": count});
                let event = json!({"object": "chat.completion.chunk", "choices": [choice], "usage": usage});
                let event = format!("data: {event}\n\n");
                format!("{:x}\r\n{event}\r\n", event.len())
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            connection.send(format!("{head}{}", chunk(0, 1))).await;
            some.notify_one();
            go.notified().await;
            let done = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
            connection.send(format!("{}{done}", chunk(1, 100))).await;
            connection.read_until_closed().await;
        }
    })
    .await;
    let gateway = CappedGateway::start(&config(upstream.address, CAPPED, ""));
    for (count, client) in ["chat", "native"].into_iter().enumerate() {
        let (path, mut body) = request(client, "priced-chat", "hello", true);
        match client {
            "chat" => body["n"] = json!(2),
            _ => body["generationConfig"]["candidateCount"] = json!(2),
        }
        let mut connection = gateway.send(&path, &body).await;
        assert_eq!(connection.read_head().await.expect("a head").status(), 200);
        some.notified().await;
        let _ = connection.read_chunk().await;
        drop(connection);
        gateway.until_reading(count + 1).await;
        go.notify_one();
        gateway.gateway.until_idle().await;
    }
    for line in gateway.lines().await {
        assert_eq!(line.count("output_tokens"), 100);
    }
}

/// Some upstreams count each choice for itself until the end, where the sum comes.
#[tokio::test]
async fn several_choices_are_paid_by_the_sum_that_follows_the_last_of_them() {
    let (some, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (some.clone(), go.clone());
    let upstream = Http1Upstream::start(move |mut connection, _| {
        let (some, go) = signals.clone();
        async move {
            let _ = connection.read_message().await;
            let chunk = |choices: Value, count: usize| {
                let usage = json!({"prompt_tokens": 1000, "completion_tokens": count});
                let event = json!({"object": "chat.completion.chunk", "choices": choices, "usage": usage});
                let event = format!("data: {event}\n\n");
                format!("{:x}\r\n{event}\r\n", event.len())
            };
            let choice = |index: usize| json!([{"index": index, "delta": {"content": "hi"}, "finish_reason": "stop"}]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            let choices: String = (0..3).map(|index| chunk(choice(index), 400)).collect();
            connection.send(format!("{head}{choices}")).await;
            some.notify_one();
            go.notified().await;
            let done = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
            connection.send(format!("{}{done}", chunk(json!([]), 1200))).await;
            connection.read_until_closed().await;
        }
    })
    .await;
    let gateway = CappedGateway::start(&config(upstream.address, CAPPED, ""));
    let mut readings = 0;
    for (client, choices, reads_on) in [("chat", 3, true), ("native", 3, true), ("chat", 1, false)]
    {
        let (path, mut body) = request(client, "priced-chat", "hello", true);
        match client {
            "chat" => body["n"] = json!(choices),
            _ => body["generationConfig"]["candidateCount"] = json!(choices),
        }
        let mut connection = gateway.send(&path, &body).await;
        assert_eq!(connection.read_head().await.expect("a head").status(), 200);
        some.notified().await;
        let _ = connection.read_chunk().await;
        drop(connection);
        if reads_on {
            readings += 1;
            gateway.until_reading(readings).await;
        }
        go.notify_one();
        gateway.gateway.until_idle().await;
    }
    for line in gateway.lines().await {
        assert_eq!(line.count("output_tokens"), 1200);
        assert_eq!(line.field("estimated"), "false");
    }
}

/// A native stream may have a finish reason and usage in each chunk: what comes after them is paid as well.
#[tokio::test]
async fn a_stream_without_a_mark_of_its_end_is_read_until_it_ends() {
    let (some, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (some.clone(), go.clone());
    let upstream = Http1Upstream::start(move |mut connection, _| {
        let (some, go) = signals.clone();
        async move {
            let _ = connection.read_message().await;
            let chunk = |count: usize| {
                let candidate = json!({"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"});
                let usage = json!({"promptTokenCount": 1000, "candidatesTokenCount": count});
                let event = json!({"candidates": [candidate], "usageMetadata": usage});
                let event = format!("data: {event}\n\n");
                format!("{:x}\r\n{event}\r\n", event.len())
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            connection.send(format!("{head}{}", chunk(1))).await;
            some.notify_one();
            go.notified().await;
            connection.send(format!("{}0\r\n\r\n", chunk(100))).await;
            connection.read_until_closed().await;
        }
    })
    .await;
    let gateway = CappedGateway::start(&config(upstream.address, CAPPED, ""));
    let (path, body) = request("native", "priced-native", "hello", true);
    let mut connection = gateway.send(&path, &body).await;
    assert_eq!(connection.read_head().await.expect("a head").status(), 200);
    some.notified().await;
    let _ = connection.read_chunk().await;
    drop(connection);
    gateway.until_reading(1).await;
    go.notify_one();
    let lines = gateway.lines().await;
    assert_eq!(lines[0].count("output_tokens"), 100);
}
