//! What a key has stored counts while it is read: its memory, and a place among all requests.

use std::net::SocketAddr;

use omniglot_test_support::{
    Gateway, Http1Connection, KEY, Mock, client, every_format_config, send, wait_until,
};
use serde_json::json;
use tokio::net::TcpSocket;

const OTHER_KEY: &str = "key-of-some";

/// More than the buffers of a socket take, where the client's own is small.
const LARGE: usize = 8 << 20;

/// A client that reads nothing but the header of its response.
async fn read_header_only(address: SocketAddr, path: &str) -> Http1Connection {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let stream = socket.connect(address).await.expect("a connection");
    let mut connection = Http1Connection::new(stream);
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n");
    connection.send(request).await;
    let head = connection.read_head().await.expect("a header");
    assert_eq!(head.status(), 200, "{path}");
    connection
}

/// Stores a response with a large input; the paths where it can be read.
async fn store(gateway: &Gateway) -> [String; 2] {
    let input = "mock:long=1600000 ".to_owned() + &"x".repeat(LARGE);
    let body = json!({"model": "same-chat", "input": input});
    let asked = client().post(gateway.url("/v1/responses")).bearer_auth(KEY);
    let stored = send(asked.json(&body)).await;
    assert_eq!(stored.status, 200, "{}", stored.text());
    let id = stored.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/responses/{id}");
    [format!("{path}/input_items"), path]
}

#[tokio::test]
async fn what_is_read_of_a_stored_response_counts_among_all_bodies() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = config.replace("server: {", "server: {body_memory: 48MiB, ");
    let gateway = Gateway::start(&config);
    let paths = store(&gateway).await;
    gateway.until_idle().await;
    for path in &paths {
        let get = || send(client().get(gateway.url(path)).bearer_auth(KEY));
        let unread = read_header_only(gateway.address, path).await;
        let refused = get().await;
        assert_eq!(refused.status, 503, "{path}");
        let text = refused.text();
        assert!(text.contains("server.body_memory"), "{text}");
        assert_eq!(refused.header("retry-after"), "1");
        drop(unread);
        wait_until("its memory is free", async || get().await.status == 200).await;
    }
}

#[tokio::test]
async fn reading_what_is_stored_takes_a_place() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = config.replace("server: {", "server: {max_in_flight: 1, ");
    let gateway = Gateway::start(&config);
    let paths = store(&gateway).await;
    let list = "/v1/images/tasks";
    let get = |path: &str| send(client().get(gateway.url(path)).bearer_auth(OTHER_KEY));
    wait_until("the place is free", async || get(list).await.status == 200).await;
    let unread = read_header_only(gateway.address, &paths[0]).await;
    let refused = get(list).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    // What is small and the same for all needs none.
    assert_eq!(get("/v1/models").await.status, 200);
    drop(unread);
    wait_until("the place is free", async || get(list).await.status == 200).await;
}
