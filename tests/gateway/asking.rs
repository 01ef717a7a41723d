//! Asking over HTTP and reading what comes back: whole answers, their events, what the mock was sent.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::Value;

use crate::stage::{Gateway, KEY, PATIENCE};

/// A whole answer.
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&self.body));
        })
    }

    /// Empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("a header of text"))
    }

    /// The message of an error body, which must have the shape of the format.
    pub fn error(&self, format: &str) -> String {
        assert_eq!(self.header("content-type"), "application/json");
        error_message(format, self.status, &self.json())
    }
}

/// Making a client reads all root certificates, so there is one for all tests. It keeps no
/// connections: they would end with the runtime of the test that opened them.
pub fn client() -> &'static reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // The first call decides; later ones find it done.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().timeout(PATIENCE);
        let builder = builder.pool_max_idle_per_host(0);
        builder.build().expect("a client")
    })
}

pub async fn send(request: RequestBuilder) -> Answer {
    let reply = request.send().await.expect("an answer");
    let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
    let body = reply.bytes().await.expect("a body that ends").to_vec();
    Answer {
        status,
        headers,
        body,
    }
}

/// A POST with JSON and the key that opens everything.
pub async fn post(url: String, body: impl Into<reqwest::Body>) -> Answer {
    let request = client().post(url).bearer_auth(KEY);
    let request = request.header("content-type", "application/json");
    send(request.body(body)).await
}

/// Fails unless the body is an error in exactly the shape that the format has for one.
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

/// The text of a JSON reply.
pub fn said(format: &str, reply: &Value) -> String {
    let text = match format {
        "chat" => &reply["choices"][0]["message"]["content"],
        "messages" => &reply["content"][0]["text"],
        "responses" => &reply["output"][0]["content"][0]["text"],
        _ => &reply["candidates"][0]["content"]["parts"][0]["text"],
    };
    let text = text.as_str();
    text.unwrap_or_else(|| panic!("no text in {reply}"))
        .to_owned()
}

/// What the mock was sent, told by a JSON reply to `mock:echo`.
pub fn echoed(format: &str, answer: &Answer) -> Value {
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    serde_json::from_str(&said(format, &answer.json())).expect("the mock echoes JSON")
}

/// Name and payload of each event of a stream, which must end with a complete one.
pub fn events(text: &str) -> Vec<(String, String)> {
    let text = text.strip_suffix("\n\n").unwrap_or_else(|| {
        panic!("a stream ends with a blank line: {text:?}");
    });
    let event = |block: &str| {
        let of = |field: &str| {
            let mut values = block.lines().filter_map(|line| line.strip_prefix(field));
            values.next().unwrap_or_default().to_owned()
        };
        (of("event: "), of("data: "))
    };
    text.split("\n\n").map(event).collect()
}

/// An upstream that says the same to everybody: the pieces, then the connection ends.
pub fn puppet(pieces: Vec<Vec<u8>>) -> SocketAddr {
    on_its_own(move |stream| answer(stream, &pieces))
}

/// A native upstream that takes everything and says what it was sent.
pub fn parrot() -> SocketAddr {
    on_its_own(|mut stream| {
        let heard = hear(&mut stream)?;
        let text = String::from_utf8_lossy(&heard).into_owned();
        let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let parts = serde_json::json!([{"text": body}]);
        let reply = serde_json::json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
        stream.write_all(&head("200 OK", "application/json"))?;
        stream.write_all(reply.to_string().as_bytes())
    })
}

/// A server of one request per connection, one after the other.
fn on_its_own(serve: impl Fn(TcpStream) -> std::io::Result<()> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A gateway that hangs up early is none of the puppet's business.
            let _ = serve(stream);
        }
    });
    address
}

fn answer(mut stream: TcpStream, pieces: &[Vec<u8>]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    hear(&mut stream)?;
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            // So that pieces are likely read one by one; nothing depends on it.
            std::thread::sleep(Duration::from_millis(10));
        }
        stream.write_all(piece)?;
    }
    Ok(())
}

/// A whole request, head and body.
fn hear(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut request = Vec::new();
    while !is_complete(&request) {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(request)
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let line = line.to_ascii_lowercase();
        line.strip_prefix("content-length: ")?.parse::<usize>().ok()
    });
    request.len() >= head.len() + 4 + length.unwrap_or(0)
}

/// The head of a puppet's answer; the end of the connection ends the body.
pub fn head(status: &str, content_type: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n")
        .into_bytes()
}

/// One gateway with a puppet behind each of the models `case-0`, `case-1` …: its format, the head
/// of its answer, and the body.
pub fn behind(cases: &[(&str, Vec<u8>, &str)]) -> Gateway {
    let (mut upstreams, mut models) = (String::new(), String::new());
    for (number, (format, head, body)) in cases.iter().enumerate() {
        let address = puppet(vec![head.clone(), body.as_bytes().to_vec()]);
        upstreams += &format!(
            "  - {{name: puppet-{number}, format: {format}, base_url: \"http://{address}\"}}\n"
        );
        models += &format!("  - {{id: case-{number}, upstreams: [{{name: puppet-{number}}}]}}\n");
    }
    Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n{upstreams}models:\n{models}"
    ))
}
