//! Retries, circuit breakers, queues, timeouts and rate limits.

mod circuit_breakers;
mod queues;
mod rate_limits;
mod retries;
mod unknown_paths;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use omniglot_test_support::{Gateway, Http1Upstream, KEY, Response, post, request};

use crate::bodies::CHAT;

/// A reply in the chat format.
const GOOD: &str = r#"{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

fn reply(status: u16, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\n{more}\
         content-length: {length}\r\n\r\n{body}"
    )
}

fn good() -> String {
    reply(200, "", GOOD)
}

fn failure(status: u16) -> String {
    reply(
        status,
        "",
        r#"{"error":{"message":"no","type":"server_error","param":null,"code":null}}"#,
    )
}

/// Gives its answers in turn, whoever asks, and the last one for ever; empty: silence.
struct ScriptedUpstream {
    upstream: Http1Upstream,
    asked: Arc<AtomicUsize>,
}

impl ScriptedUpstream {
    async fn start(answers: Vec<String>) -> ScriptedUpstream {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let upstream = Http1Upstream::start(move |mut connection, _| {
            let (answers, count) = (answers.clone(), count.clone());
            async move {
                while connection.read_message().await.is_some() {
                    let number = count.fetch_add(1, Ordering::AcqRel);
                    let response = answers.get(number).or(answers.last());
                    match response.map(String::as_str) {
                        None | Some("") => {
                            // Until the gateway gives up.
                            connection.read_until_closed().await;
                            return;
                        }
                        Some(response) => connection.send(response).await,
                    }
                }
            }
        })
        .await;
        ScriptedUpstream { upstream, asked }
    }

    fn request_count(&self) -> usize {
        self.asked.load(Ordering::Acquire)
    }
}

/// Upstreams `u0`, `u1` … with settings, each with the next priority, behind the model `m`.
fn config(upstreams: &[&ScriptedUpstream], upstream: &str, model: &str) -> String {
    let entries: String = upstreams
        .iter()
        .enumerate()
        .map(|(number, one)| {
            let base = one.upstream.base_url();
            format!("  - {{name: u{number}, format: chat, {base}, {upstream}}}\n")
        })
        .collect();
    let targets: Vec<String> = (0..upstreams.len())
        .map(|number| format!("{{name: u{number}, priority: {number}}}"))
        .collect();
    let targets = targets.join(", ");
    format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n{entries}models: [{{id: m, upstreams: [{targets}], {model}}}]\n"
    )
}

async fn send_request(gateway: &Gateway) -> Response {
    let (_, body) = request("chat", "m", "hello", false);
    post(gateway.url(CHAT), body.to_string()).await
}

/// Status, attempts and the upstream that answered.
fn outcome(response: &Response) -> (u16, &str, &str) {
    let attempts = response.header("x-omniglot-attempts");
    (
        response.status,
        attempts,
        response.header("x-omniglot-upstream"),
    )
}
