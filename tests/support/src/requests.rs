//! Requests over HTTP and whole responses.

use std::sync::OnceLock;

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::config::KEY;
use crate::wait::TIMEOUT;

/// A response that has been read to its end.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body, decoded from its chunks.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    /// Parses the body.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&self.body));
        })
    }

    /// Returns a header, empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("a header of text"))
    }

    /// Returns the message of an error body, which must have the shape of the format.
    pub fn error(&self, format: &str) -> String {
        assert_eq!(self.header("content-type"), "application/json");
        error_message(format, self.status, &self.json())
    }
}

/// Returns the client that all tests of a binary share, since making one reads all root certificates. It keeps no
/// connections: they would end with the runtime of the test that opened them.
pub fn client() -> &'static reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // The first call decides; later ones find it done.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
        let builder = builder.pool_max_idle_per_host(0);
        builder.build().expect("a client")
    })
}

/// Sends a request and reads the response to its end.
pub async fn send(request: RequestBuilder) -> Response {
    let response = request.send().await.expect("a response");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await.expect("a body that ends").to_vec();
    Response {
        status,
        headers,
        body,
    }
}

/// Sends a POST with JSON and [`KEY`].
pub async fn post(url: String, body: impl Into<reqwest::Body>) -> Response {
    let request = client().post(url).bearer_auth(KEY);
    let request = request.header("content-type", "application/json");
    send(request.body(body)).await
}

/// Returns the message of an error body, and fails unless the body has exactly the shape that the format has for errors.
pub fn error_message(format: &str, status: u16, body: &Value) -> String {
    let keys = |value: &Value| -> Vec<String> {
        let object = value.as_object().unwrap_or_else(|| panic!("{body}"));
        object.keys().cloned().collect()
    };
    let error = &body["error"];
    match format {
        "messages" => {
            assert_eq!(keys(body), ["error", "request_id", "type"], "{body}");
            assert_eq!(keys(error), ["message", "type"], "{body}");
            assert_eq!(body["type"], "error");
            assert!(body["request_id"].is_string(), "{body}");
        }
        "native" => {
            assert_eq!(keys(body), ["error"], "{body}");
            let plain = ["code", "message", "status"];
            let known = keys(error);
            assert!(
                known == plain || known == ["code", "details", "message", "status"],
                "{body}"
            );
            assert_eq!(error["code"], status, "{body}");
            assert!(error["status"].is_string(), "{body}");
        }
        _ => {
            assert_eq!(keys(body), ["error"], "{body}");
            assert_eq!(keys(error), ["code", "message", "param", "type"], "{body}");
        }
    }
    error["message"].as_str().expect("a message").to_owned()
}

/// Returns the text of a JSON response.
pub fn response_text(format: &str, response: &Value) -> String {
    let text = match format {
        "chat" => &response["choices"][0]["message"]["content"],
        "messages" => &response["content"][0]["text"],
        "responses" => &response["output"][0]["content"][0]["text"],
        _ => &response["candidates"][0]["content"]["parts"][0]["text"],
    };
    let text = text.as_str();
    text.unwrap_or_else(|| panic!("no text in {response}"))
        .to_owned()
}

/// Returns the request that the mock was sent, from the JSON response to a prompt with `mock:echo`.
pub fn echoed_request(format: &str, response: &Response) -> Value {
    assert_eq!(
        response.status,
        200,
        "{}",
        String::from_utf8_lossy(&response.body)
    );
    serde_json::from_str(&response_text(format, &response.json())).expect("the mock echoes JSON")
}

/// Returns path and body of a small request in a format.
pub fn request(format: &str, model: &str, prompt: &str, stream: bool) -> (String, Value) {
    let user = json!([{"role": "user", "content": prompt}]);
    match format {
        "chat" => (
            "/v1/chat/completions".to_owned(),
            json!({"model": model, "messages": user, "stream": stream}),
        ),
        "messages" => (
            "/v1/messages".to_owned(),
            json!({"model": model, "max_tokens": 64, "messages": user, "stream": stream}),
        ),
        "responses" => (
            "/v1/responses".to_owned(),
            json!({"model": model, "input": prompt, "stream": stream}),
        ),
        _ => {
            let verb = if stream {
                "streamGenerateContent?alt=sse"
            } else {
                "generateContent"
            };
            (
                format!("/v1beta/models/{model}:{verb}"),
                json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]}),
            )
        }
    }
}

/// Creates a client with connections of its own.
pub fn new_client() -> reqwest::Client {
    client_builder().build().expect("a client")
}

/// Prepares a client that trusts no certificate.
pub fn client_builder() -> reqwest::ClientBuilder {
    // The first call decides; later ones find it done.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        // Reading the machine's certificates would take longer than most requests.
        .tls_certs_only([])
        // A busy machine may need minutes for the largest bodies, with all that it does at once.
        .timeout(4 * TIMEOUT)
}
