//! The gateway connects to its upstreams and to no other address that a client or an upstream names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use omniglot_test_support::{
    FORMATS, Gateway, Http1Upstream, Mock, every_format_config, post, request,
    single_upstream_config,
};
use serde_json::{Value, json};

/// Somebody whom nobody should visit.
async fn bystander() -> Http1Upstream {
    Http1Upstream::start(|mut connection, _| async move {
        connection.read_until_closed().await;
    })
    .await
}

/// Requests of a format that name an address in every place where one may stand.
fn naming(format: &str, url: &str) -> Vec<Value> {
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    match format {
        "chat" => vec![
            json!({"messages": user(json!([{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": url}}]))}),
            json!({"messages": user(json!([{"type": "text", "text": "hi"}, {"type": "file", "file": {"file_data": url, "filename": "a.pdf"}}]))}),
        ],
        "messages" => vec![
            json!({"max_tokens": 9, "messages": user(json!([{"type": "image", "source": {"type": "url", "url": url}}]))}),
            json!({"max_tokens": 9, "messages": user(json!([{"type": "document", "source": {"type": "url", "url": url}}]))}),
            json!({"max_tokens": 9, "messages": user(json!("hi")), "mcp_servers": [{"type": "url", "url": url, "name": "x"}]}),
        ],
        "responses" => vec![
            json!({"input": user(json!([{"type": "input_image", "image_url": url}]))}),
            json!({"input": user(json!([{"type": "input_file", "file_url": url}]))}),
            json!({"input": "hi", "tools": [{"type": "mcp", "server_label": "x", "server_url": url}]}),
        ],
        _ => vec![
            json!({"contents": [{"role": "user", "parts": [{"text": "hi"}, {"fileData": {"mimeType": "image/png", "fileUri": url}}]}]}),
            json!({"contents": [{"role": "user", "parts": [{"text": url}]}], "tools": [{"urlContext": {}}]}),
        ],
    }
}

#[tokio::test]
async fn no_address_in_a_request_is_connected_to() {
    let (mock, bystander) = (Mock::start(), bystander().await);
    let gateway = Gateway::start(&every_format_config(mock.address));
    let url = format!("http://{}/picture.png", bystander.address);
    let mut answered = 0;
    for (format, _) in FORMATS {
        for (upstream, _) in FORMATS {
            for mut body in naming(format, &url) {
                let model = format!("same-{upstream}");
                let (path, _) = request(format, &model, "", false);
                if format != "native" {
                    body["model"] = json!(model);
                }
                let response = post(gateway.url(&path), body.to_string()).await;
                let message = [200, 400].contains(&response.status);
                assert!(
                    message,
                    "{format} to {upstream}: {body}: {}",
                    response.text()
                );
                answered += usize::from(response.status == 200);
            }
        }
    }
    assert!(answered > 10, "only {answered} of the requests went on");
    assert_eq!(bystander.connections(), 0);
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let bystander = bystander().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let (address, count) = (bystander.address, asked.clone());
    let upstream = Http1Upstream::start(move |mut connection, _| {
        let count = count.clone();
        async move {
            while connection.read_message().await.is_some() {
                let number = count.fetch_add(1, Ordering::AcqRel);
                let status = [301, 302, 303, 307, 308][number % 5];
                let location = format!("location: http://{address}/v1/chat/completions\r\n");
                connection
                    .send(format!(
                        "HTTP/1.1 {status} Away\r\n{location}content-length: 0\r\n\r\n"
                    ))
                    .await;
            }
        }
    })
    .await;
    let gateway = Gateway::start(&single_upstream_config(
        "",
        &format!("{}, breaker: off", upstream.base_url()),
    ));
    for _ in 0..5 {
        let (path, body) = request("chat", "m", "hello", false);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 502, "{}", response.text());
        let message = response.error("chat");
        assert!(!message.contains(&address.to_string()), "{message}");
    }
    assert_eq!(asked.load(Ordering::Acquire), 5, "each was asked once");
    assert_eq!(bystander.connections(), 0);
}
