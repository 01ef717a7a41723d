//! A proxy between formats that are the same, with one deliberate defect.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use tokio::net::TcpListener;

/// A deliberate defect, and the scenario that must find it.
#[derive(Clone, Copy, Default)]
pub struct Mutation {
    pub name: &'static str,
    pub scenario: &'static str,
    /// Words of the loss that is reported.
    pub loss: &'static str,
    /// Changes the body of a request.
    pub request: Option<fn(&mut Value)>,
    /// Changes the body of a JSON response, and each event of a stream.
    pub event: Option<fn(&mut Value)>,
    /// Changes a response as a whole.
    pub reply: Option<fn(&mut ProxyReply)>,
}

/// A response on its way back.
pub struct ProxyReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub chunks: Vec<Bytes>,
    /// The connection of the upstream ended in the middle.
    pub is_cut: bool,
}

impl ProxyReply {
    pub fn is_stream(&self) -> bool {
        self.headers
            .iter()
            .any(|(_, value)| value.starts_with("text/event-stream"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.chunks.concat()).into_owned()
    }

    pub fn set_text(&mut self, text: String) {
        self.headers.retain(|(name, _)| name != "content-length");
        self.chunks = vec![text.into()];
    }

    /// Changes each event, or the body.
    fn edit(&mut self, change: fn(&mut Value)) {
        let text = self.text();
        let edited = |data: &str| match serde_json::from_str::<Value>(data) {
            Ok(mut value) => {
                change(&mut value);
                value.to_string()
            }
            Err(_) => data.to_owned(),
        };
        if !self.is_stream() {
            self.set_text(edited(&text));
            return;
        }
        let lines = text
            .split('\n')
            .map(|line| match line.strip_prefix("data: ") {
                Some(data) => format!("data: {}", edited(data)),
                None => line.to_owned(),
            });
        let lines: Vec<String> = lines.collect();
        self.set_text(lines.join("\n"));
    }
}

struct ProxyState {
    upstream: SocketAddr,
    mutation: Mutation,
    client: reqwest::Client,
}

/// Starts the proxy; it ends with the test.
pub async fn start(upstream: SocketAddr, mutation: Mutation) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let state = Arc::new(ProxyState {
        upstream,
        mutation,
        client: omniglot_test_support::new_client(),
    });
    let router = Router::new().fallback(forward).with_state(state);
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn forward(State(state): State<Arc<ProxyState>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let mut body = to_bytes(body, usize::MAX).await.expect("a body").to_vec();
    if let Some(change) = state.mutation.request {
        let mut value = serde_json::from_slice(&body).expect("JSON");
        change(&mut value);
        body = value.to_string().into_bytes();
    }
    let target = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut asked = state
        .client
        .post(format!("http://{}{target}", state.upstream));
    for (name, value) in &head.headers {
        if name != "host" && name != "content-length" {
            asked = asked.header(name, value);
        }
    }
    let mut response = asked.body(body).send().await.expect("the upstream answers");
    let kept = response
        .headers()
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "content-type" | "retry-after"));
    let kept =
        kept.map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()));
    let mut reply = ProxyReply {
        status: response.status().as_u16(),
        headers: kept.collect(),
        chunks: Vec::new(),
        is_cut: false,
    };
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => reply.chunks.push(chunk),
            Ok(None) => break,
            Err(_) => {
                reply.is_cut = true;
                break;
            }
        }
    }
    if let Some(change) = state.mutation.event {
        reply.edit(change);
    }
    if let Some(change) = state.mutation.reply {
        change(&mut reply);
    }
    sent(reply)
}

fn sent(reply: ProxyReply) -> Response {
    let mut chunks: Vec<Result<Bytes, std::io::Error>> = reply.chunks.into_iter().map(Ok).collect();
    if reply.is_cut {
        chunks.push(Err(std::io::Error::other("cut")));
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    let body = Body::from_stream(stream::iter(chunks));
    response.body(body).expect("a response")
}
