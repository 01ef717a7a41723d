//! Attempts to sign in to the console: how many are tried, whom they keep waiting, and bodies that never come.

use std::net::{IpAddr, Ipv4Addr};

use futures_util::future::join_all;
use omniglot_test_support::{Gateway, Http1Connection, client_builder, free_address};
use reqwest::{Client, Response};
use serde_json::json;

use super::console::{PASSWORD, TestConsole};

async fn sign_in(console: &TestConsole, client: &Client, login: &str, password: &str) -> Response {
    let body = json!({"login": login, "password": password});
    let request = client.post(console.url("/api/v1/session")).json(&body);
    request.send().await.expect("an answer")
}

/// A client of another network.
fn elsewhere() -> Client {
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
    let client = client_builder().local_address(address);
    client.build().expect("a client")
}

#[tokio::test]
async fn wrong_passwords_at_once_are_counted_and_keep_nobody_out_elsewhere() {
    let console = TestConsole::start("");
    console.account("ada", "member").await;
    let wrong = (0..60).map(|_| sign_in(&console, &console.client, "ada", "a wrong password"));
    let mut tried = 0;
    for response in join_all(wrong).await {
        match response.status().as_u16() {
            401 => tried += 1,
            status => {
                assert_eq!(status, 429);
                let wait = response.headers()["retry-after"].to_str().expect("text");
                let wait: u64 = wait.parse().expect("seconds");
                assert!(wait <= 6, "{wait}");
            }
        }
    }
    // Ten at once, and one more every six seconds, which a slow machine may need.
    assert!((1..=15).contains(&tried), "{tried}");
    let right = sign_in(&console, &elsewhere(), "ada", PASSWORD).await;
    assert_eq!(right.status(), 201);
}

#[tokio::test]
async fn a_body_that_never_comes_ends_its_connection() {
    let address = free_address();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display();
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN, timeouts: {{body: 1s}}}}\n\
         store: \"sqlite:{path}/store.db\"\njournal: {{path: \"{path}/journal\"}}\n\
         console: {{listen: \"{address}\"}}\n\
         upstreams: [{{name: nobody, format: chat, base_url: \"http://127.0.0.1:9/v1\"}}]\n\
         models: [{{id: m, upstreams: [{{name: nobody}}]}}]\n"
    );
    let _gateway = Gateway::start(&config);
    let mut connection = Http1Connection::connect(address).await;
    let header = "POST /api/v1/session HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                  content-length: 100\r\n\r\n{";
    connection.send(header).await;
    let answer = connection.read_message().await.expect("an answer");
    assert_eq!(answer.status(), 408, "{}", answer.text());
    assert!(connection.read_head().await.is_none(), "it is closed");
}
