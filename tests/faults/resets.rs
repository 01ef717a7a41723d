//! Requests that may be sent again after an HTTP/2 reset, and streams that the end of draining cuts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use omniglot_test_support::{
    Gateway, Http1Connection, Http1Upstream, KEY, Mock, every_format_config, find_bytes,
    http1_post, post, request, single_upstream_config,
};
use tokio::net::TcpStream;

const REPLY: &str = r#"{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}"#;

/// Answers every request, or resets as many as it is to.
async fn serve(stream: TcpStream, resets: Arc<AtomicUsize>, asked: Arc<AtomicUsize>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        asked.fetch_add(1, Ordering::AcqRel);
        let less = |left: usize| left.checked_sub(1);
        let reset = resets.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        if reset.is_ok() {
            respond.send_reset(h2::Reason::INTERNAL_ERROR);
            continue;
        }
        let header = http::Response::builder().header("content-type", "application/json");
        let header = header.body(()).expect("a header");
        // The gateway may have gone.
        if let Ok(mut body) = respond.send_response(header, false) {
            let _ = body.send_data(Bytes::from_static(REPLY.as_bytes()), true);
        }
    }
}

#[tokio::test]
async fn a_request_that_an_http2_upstream_resets_is_retried_at_most_once() {
    let resets = Arc::new(AtomicUsize::new(0));
    let asked = Arc::new(AtomicUsize::new(0));
    let (left, count) = (resets.clone(), asked.clone());
    let upstream = Http1Upstream::start(move |connection, _| {
        serve(connection.stream, left.clone(), count.clone())
    })
    .await;
    let settings = format!("{}, protocol: http2, breaker: off", upstream.base_url());
    let gateway = Gateway::start(&single_upstream_config("", &settings));
    let (path, body) = request("chat", "m", "hello", false);
    for round in 0..5 {
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 200, "{round}: {}", response.text());
        gateway.until_idle().await;
        // The third time it would be answered.
        resets.store(2, Ordering::Release);
        let before = asked.load(Ordering::Acquire);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 502, "{round}: {}", response.text());
        assert_eq!(response.header("x-omniglot-attempts"), "1");
        // On the connection of the request before, which might have died meanwhile, and on a new one.
        let sent = asked.load(Ordering::Acquire) - before;
        assert_eq!(sent, 2, "{round}");
        gateway.until_idle().await;
    }
}

/// The chunks of a body that may end anywhere, and whether the last one was the end.
fn chunks(mut bytes: &[u8]) -> (Vec<&[u8]>, bool) {
    let mut all = Vec::new();
    while let Some(line) = find_bytes(bytes, b"\r\n") {
        let size = std::str::from_utf8(&bytes[..line]).expect("a chunk size");
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        let rest = &bytes[line + 2..];
        if size == 0 {
            return (all, true);
        }
        if rest.len() < size + 2 {
            all.push(rest);
            break;
        }
        all.push(&rest[..size]);
        assert_eq!(
            &rest[size..size + 2],
            b"\r\n",
            "a chunk is as long as it says"
        );
        bytes = &rest[size + 2..];
    }
    (all, false)
}

#[tokio::test]
async fn the_end_of_draining_writes_no_error_into_an_incomplete_event() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = config.replace("server: {", "server: {drain_timeout: 1s, ");
    let mut gateway = Gateway::start(&config);
    let prompt = "mock:long=1000000 mock:events=1000 mock:name=long";
    let mut body = request("chat", "same-chat", prompt, true).1;
    body["n"] = serde_json::json!(4);
    let mut connection = Http1Connection::connect(gateway.address).await;
    let more = "connection: close\r\n";
    connection
        .send(http1_post("/v1/chat/completions", more, &body.to_string()))
        .await;
    assert_eq!(connection.read_head().await.expect("a head").status(), 200);
    // Nothing is read for now, so that a piece is half written when the time is up.
    gateway.process.signal("TERM");
    mock.until_seen("long", "cancelled", 1).await;
    // From here on there is room again for whatever the gateway would still say.
    let came = connection.read_until_closed().await;
    assert_eq!(gateway.process.wait().code(), Some(0));
    let (chunks, ended) = chunks(&came);
    assert!(chunks.len() > 1, "{} bytes", came.len());
    let message: Vec<_> = chunks
        .iter()
        .filter(|chunk| find_bytes(chunk, b"shutting down").is_some())
        .collect();
    assert_eq!(
        ended,
        !message.is_empty(),
        "an end without an error, or the reverse"
    );
    // Had it all fitted into buffers, the error would be a piece of its own.
    for chunk in message {
        assert!(
            chunk.starts_with(b"data: {\"error\""),
            "{}",
            String::from_utf8_lossy(chunk)
        );
    }
    assert!(!came.ends_with(b"data: [DONE]\n\n\r\n0\r\n\r\n"));
    assert!(!String::from_utf8_lossy(&came).contains(KEY));
}
