//! Signals that end the process: requests in flight finish, new ones are refused, and it exits as soon as it can.

use std::io::ErrorKind;
use std::time::Duration;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Process, client_builder, every_format_config, free_address,
    new_client, omniglot, request, wait_for,
};
use reqwest::{Client, Response};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::reload::Connection;

/// A gateway that would wait for its streams longer than any test does: one that leaves did not time out.
fn patient(mock: &Mock) -> Gateway {
    with_drain_timeout(mock, "10m")
}

fn with_drain_timeout(mock: &Mock, timeout: &str) -> Gateway {
    let setting = format!("admin: ADMIN, drain_timeout: {timeout}");
    Gateway::start(&every_format_config(mock.address).replace("admin: ADMIN", &setting))
}

fn http2() -> Client {
    let client = client_builder().http2_prior_knowledge().build();
    client.expect("a client")
}

/// A stream that waits for `go` after its first event.
async fn waiting_stream(client: &Client, gateway: &Gateway, mock: &Mock, format: &str) -> Response {
    let words = format!("one two three mock:wait=go mock:name={format}");
    let (path, body) = request(format, &format!("same-{format}"), &words, true);
    let asked = client.post(gateway.url(&path)).bearer_auth(KEY);
    let response = asked.json(&body).send().await.expect("a stream begins");
    assert_eq!(response.status(), 200);
    mock.until_seen(format, "waiting", 1).await;
    response
}

async fn until_draining(gateway: &Gateway) {
    wait_for("draining", async || {
        let ready = new_client().get(gateway.admin_url("/readyz")).send().await;
        let ready = ready.expect("the admin port stays open");
        (ready.status() == 503).then_some(())
    })
    .await;
}

pub async fn until_refused(gateway: &Gateway) {
    wait_for("new connections are refused", async || {
        let error = TcpStream::connect(gateway.address).await.err()?;
        (error.kind() == ErrorKind::ConnectionRefused).then_some(())
    })
    .await;
}

/// What a stream of each format ends with when it ends well.
fn proper_end(format: &str) -> &'static str {
    match format {
        "chat" => "data: [DONE]",
        "messages" => "event: message_stop",
        "responses" => "event: response.completed",
        _ => "\"finishReason\":\"STOP\"",
    }
}

#[tokio::test]
async fn a_gateway_that_is_not_ready_any_more_still_serves_for_the_delay() {
    let mock = Mock::start();
    let delayed = |delay: &str| {
        let setting = format!("admin: ADMIN, shutdown_delay: {delay}, drain_timeout: 10m");
        Gateway::start(&every_format_config(mock.address).replace("admin: ADMIN", &setting))
    };
    let gateway = delayed("10m");
    gateway.process.signal("TERM");
    until_draining(&gateway).await;
    let (path, body) = request("chat", "same-chat", "hello", false);
    let asked = new_client().post(gateway.url(&path)).bearer_auth(KEY);
    let response = asked.json(&body).send().await.expect("it is still open");
    assert_eq!(response.status(), 200);

    let mut gateway = delayed("100ms");
    gateway.process.signal("TERM");
    until_refused(&gateway).await;
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[tokio::test]
async fn streams_in_flight_finish_while_new_connections_are_refused() {
    let mock = Mock::start();
    let mut gateway = patient(&mock);
    let mut streams = Vec::new();
    for (format, _) in FORMATS {
        let stream = waiting_stream(&new_client(), &gateway, &mock, format).await;
        streams.push((format, stream));
    }
    gateway.process.signal("TERM");
    until_refused(&gateway).await;
    assert!(gateway.process.is_running(), "four streams are in flight");
    mock.signal("go", 100).await;
    for (format, stream) in streams {
        let text = stream.text().await.expect("the rest");
        assert!(text.contains(proper_end(format)), "{format}: {text}");
        assert!(!text.contains("shutting down"), "{format}: {text}");
    }
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[tokio::test]
async fn a_json_response_in_flight_arrives() {
    let mock = Mock::start();
    let mut gateway = patient(&mock);
    let words = "hello mock:wait=go mock:name=json";
    let (path, body) = request("messages", "same-messages", words, false);
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let waiting = tokio::spawn(asked.send());
    mock.until_seen("json", "waiting", 1).await;
    gateway.process.signal("TERM");
    until_refused(&gateway).await;
    mock.signal("go", 1).await;
    let response = waiting.await.expect("no panic").expect("an answer");
    assert_eq!(response.status(), 200);
    assert!(response.text().await.expect("a body").contains("hello"));
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[tokio::test]
async fn an_http2_stream_in_flight_finishes() {
    let mock = Mock::start();
    let mut gateway = patient(&mock);
    let http2 = http2();
    let stream = waiting_stream(&http2, &gateway, &mock, "chat").await;
    assert_eq!(stream.version(), reqwest::Version::HTTP_2);
    gateway.process.signal("TERM");
    until_refused(&gateway).await;
    mock.signal("go", 20).await;
    let text = stream.text().await.expect("the rest");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[tokio::test]
async fn a_slow_reader_gets_all_of_its_stream() {
    let mock = Mock::start();
    for client in [new_client(), http2()] {
        let mut gateway = patient(&mock);
        let (path, body) = request("chat", "same-chat", "mock:long=20000", true);
        let asked = client.post(gateway.url(&path)).bearer_auth(KEY);
        let mut stream = asked.json(&body).send().await.expect("a stream begins");
        let first = stream.chunk().await.expect("a stream");
        assert!(first.is_some_and(|first| first.starts_with(b"data: ")));
        gateway.process.signal("TERM");
        until_refused(&gateway).await;
        // Whatever fits into buffers is written meanwhile, and the process may be gone.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let text = stream.text().await.expect("the rest");
        assert!(text.ends_with("data: [DONE]\n\n"));
        assert_eq!(gateway.process.wait().code(), Some(0));
    }
}

#[tokio::test]
async fn with_no_request_in_flight_the_process_exits_at_once() {
    let mock = Mock::start();
    for signal in ["TERM", "INT"] {
        let mut gateway = patient(&mock);
        gateway.process.signal(signal);
        assert_eq!(gateway.process.wait().code(), Some(0), "{signal}");
    }
}

#[tokio::test]
async fn idle_connections_are_closed_and_do_not_delay_the_exit() {
    let mock = Mock::start();
    let mut gateway = patient(&mock);
    let mut fresh = Connection::open(&gateway).await;
    let mut used = Connection::open(&gateway).await;
    let (head, _) = used.send_request("same-chat").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(!head.contains("connection: close"), "{head}");
    let http2 = http2();
    let listed = http2.get(gateway.url("/v1/models")).bearer_auth(KEY);
    assert_eq!(listed.send().await.expect("an answer").status(), 200);

    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    for connection in [&mut fresh, &mut used] {
        let mut rest = Vec::new();
        // Closed or reset, but over.
        let _ = connection.0.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{rest:?}");
    }
}

#[tokio::test]
async fn a_stream_beyond_the_drain_timeout_ends_with_an_error_of_its_format() {
    let mock = Mock::start();
    let mut gateway = with_drain_timeout(&mock, "100ms");
    let mut streams = Vec::new();
    for (format, _) in FORMATS {
        let stream = waiting_stream(&new_client(), &gateway, &mock, format).await;
        streams.push((format, stream));
    }
    let (path, body) = request("chat", "same-chat", "mock:wait=never mock:name=two", true);
    let asked = http2().post(gateway.url(&path));
    let asked = asked.bearer_auth(KEY).json(&body);
    streams.push(("chat", asked.send().await.expect("a stream begins")));
    let (path, body) = request("chat", "same-chat", "mock:wait=never mock:name=json", false);
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let json = tokio::spawn(asked.send());
    mock.until_seen("json", "waiting", 1).await;

    gateway.process.signal("TERM");
    for (format, stream) in streams {
        let text = stream.text().await.expect("a body that is not cut off");
        let (_, last) = text.trim_end().rsplit_once("\n\n").unwrap_or(("", &text));
        let error = match format {
            "messages" => "event: error\ndata: {\"type\":\"error\",\"error\":{",
            "responses" => "event: response.failed\ndata: {\"type\":\"response.failed\",",
            _ => "data: {\"error\":{",
        };
        assert!(last.starts_with(error), "{format}: {last}");
        assert!(last.contains("shutting down"), "{format}: {last}");
        assert!(!text.contains(proper_end(format)), "{format}: {text}");
    }
    let json = json.await.expect("no panic").expect("an answer");
    assert_eq!(json.status(), 503);
    let body: serde_json::Value = json.json().await.expect("an error of the format");
    assert!(body["error"]["message"].is_string(), "{body}");
    assert_eq!(gateway.process.wait().code(), Some(0));
    for format in ["chat", "messages", "native", "responses", "two", "json"] {
        mock.until_seen(format, "cancelled", 1).await;
    }
}

#[tokio::test]
async fn further_signals_while_draining_are_ignored() {
    let mock = Mock::start();
    let mut gateway = patient(&mock);
    let stream = waiting_stream(&new_client(), &gateway, &mock, "chat").await;
    gateway.process.signal("TERM");
    until_draining(&gateway).await;
    for signal in ["TERM", "INT", "HUP"] {
        gateway.process.signal(signal);
    }
    until_refused(&gateway).await;
    mock.signal("go", 20).await;
    let text = stream.text().await.expect("the rest");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[tokio::test]
async fn an_interrupt_drains_and_a_second_one_leaves_at_once() {
    let mock = Mock::start();
    let mut gateway = patient(&mock);
    let stream = waiting_stream(&new_client(), &gateway, &mock, "chat").await;
    gateway.process.signal("INT");
    until_draining(&gateway).await;
    mock.signal("go", 20).await;
    let text = stream.text().await.expect("the rest");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(gateway.process.wait().code(), Some(0));

    // Another mock: the first has signals left.
    let mock = Mock::start();
    let mut gateway = patient(&mock);
    let _stream = waiting_stream(&new_client(), &gateway, &mock, "chat").await;
    gateway.process.signal("INT");
    until_draining(&gateway).await;
    gateway.process.signal("INT");
    assert_eq!(gateway.process.wait().code(), Some(130));
}

#[tokio::test]
async fn signals_without_a_meaning_do_not_kill() {
    let mock = Mock::start();
    let mut gateway = patient(&mock);
    for signal in ["USR1", "PIPE"] {
        gateway.process.signal(signal);
        let listed = new_client().get(gateway.url("/v1/models")).bearer_auth(KEY);
        assert_eq!(listed.send().await.expect("an answer").status(), 200);
    }
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

/// The start waits for a Redis that does not answer, so that the signal comes before the listeners are open.
#[tokio::test]
async fn a_signal_during_the_start_exits_with_0() {
    for signal in ["TERM", "INT", "QUIT"] {
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let redis = silent.local_addr().expect("an address");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("gateway.yaml");
        let listen = free_address();
        let config =
            format!("server: {{listen: \"{listen}\"}}\nlimits_store: \"redis://{redis}\"\n");
        std::fs::write(&file, config).expect("the config is written");
        let mut process = Process::start(omniglot().args(["run", "-c"]).arg(&file));
        let _connection = silent.accept().await.expect("the gateway connects");
        process.signal(signal);
        let status = process.wait();
        assert_eq!(status.code(), Some(0), "{signal}: {status}");
    }
}
