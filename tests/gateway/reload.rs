//! SIGHUP: a valid new config takes effect under load, an invalid one is refused.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use omniglot_test_support::{
    CertificateAuthority, FORMATS, Gateway, KEY, Mock, Stderr, every_format_config, new_client,
    request, wait_until,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::admin::samples_when;

const TAKEN: &str = "omniglot_config_reloads_total{outcome=\"taken\"}";
const REFUSED: &str = "omniglot_config_reloads_total{outcome=\"refused\"}";

/// Those of `cargo bench --bench soak -- reloads` are many more, and random.
const RELOADS: u32 = 50;

/// The status of a small chat request and the upstream that answered it.
async fn send_request(gateway: &Gateway, key: &str, model: &str) -> (u16, String) {
    let (path, body) = request("chat", model, "hello", false);
    let asked = new_client().post(gateway.url(&path)).bearer_auth(key);
    let response = asked.json(&body).send().await.expect("an answer");
    let upstream = response.headers().get("x-omniglot-upstream");
    let upstream = upstream.map_or("", |name| name.to_str().expect("text"));
    (response.status().as_u16(), upstream.to_owned())
}

/// An HTTP/1.1 connection that is never opened again.
pub struct Connection(pub TcpStream);

impl Connection {
    pub async fn open(gateway: &Gateway) -> Connection {
        let opened = TcpStream::connect(gateway.address).await;
        Connection(opened.expect("a connection"))
    }

    /// The head of the answer and its body.
    pub async fn send_request(&mut self, model: &str) -> (String, String) {
        let (path, body) = request("chat", model, "hello", false);
        let body = body.to_string();
        let asked = format!(
            "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let sent = self.0.write_all(asked.as_bytes()).await;
        sent.expect("the connection is open");
        let mut read = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&read);
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && body.len() == content_length(head)
            {
                return (head.to_ascii_lowercase(), body.to_owned());
            }
            let count = self.0.read_buf(&mut read).await;
            assert_ne!(count.expect("an answer"), 0, "closed after {read:?}");
        }
    }
}

fn content_length(head: &str) -> usize {
    let head = head.to_ascii_lowercase();
    let (_, rest) = head.split_once("content-length: ").expect("a length");
    let length = rest.lines().next().expect("a line");
    length.parse().expect("a number")
}

#[tokio::test]
async fn new_models_keys_and_upstreams_take_effect_on_the_same_connection() {
    let mock = Mock::start();
    let before = every_format_config(mock.address);
    let gateway = Gateway::start(&before);
    let mut connection = Connection::open(&gateway).await;
    let (head, _) = connection.send_request("same-chat").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(send_request(&gateway, KEY, "renamed").await.0, 404);
    assert_eq!(send_request(&gateway, "new-key", "same-chat").await.0, 401);

    let after = before
        .replace("mock-chat", "new-chat")
        .replace("id: other-chat", "id: renamed")
        .replace("secret: key-of-some", "secret: new-key");
    gateway.rewrite(&after);
    gateway.process.signal("HUP");
    samples_when(&gateway, TAKEN, 1.0).await;

    let new_upstream = (200, "new-chat".to_owned());
    assert_eq!(send_request(&gateway, KEY, "renamed").await, new_upstream);
    assert_eq!(send_request(&gateway, KEY, "other-chat").await.0, 404);
    assert_eq!(
        send_request(&gateway, "new-key", "same-chat").await,
        new_upstream
    );
    assert_eq!(
        send_request(&gateway, "key-of-some", "same-chat").await.0,
        401
    );
    let (head, _) = connection.send_request("same-chat").await;
    assert!(head.contains("x-omniglot-upstream: new-chat"), "{head}");
}

#[tokio::test]
async fn a_running_stream_keeps_the_config_it_began_with() {
    let mock = Mock::start();
    let before = every_format_config(mock.address);
    let gateway = Gateway::start(&before);
    let words = "one two three mock:wait=go mock:name=it";
    let (path, body) = request("chat", "other-chat", words, true);
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let response = asked.send().await.expect("a stream begins");
    mock.until_seen("it", "waiting", 1).await;

    // Its key, its model and its upstream are gone.
    gateway.rewrite("server: {listen: LISTEN, admin: ADMIN}\n");
    gateway.process.signal("HUP");
    samples_when(&gateway, TAKEN, 1.0).await;
    assert_eq!(send_request(&gateway, KEY, "other-chat").await.0, 401);

    mock.signal("go", 20).await;
    let text = response.text().await.expect("the rest");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(text.contains("\"model\":\"other-chat\""), "{text}");
    assert!(!text.contains("theirs-chat"), "{text}");
}

#[tokio::test]
async fn a_bad_config_is_refused_with_its_problems_and_the_old_one_stays() {
    let mock = Mock::start();
    let good = every_format_config(mock.address);
    let stderr = Stderr::new();
    let gateway = Gateway::start_with(&good, |command| stderr.attach(command));
    gateway.rewrite("server: {listen: LISTEN, admin: ADMIN}\nmodles: []\nkeys: [{name: dev}]\n");
    gateway.process.signal("HUP");
    samples_when(&gateway, REFUSED, 1.0).await;
    let file = gateway.file().display().to_string();
    let message = stderr.text();
    for place in ["2:1: ", "3:8: "] {
        assert!(message.contains(&format!("{file}:{place}")), "{message}");
    }
    let verdict = format!("{file} is refused, the old config stays");
    assert!(message.contains(&verdict), "{message}");
    assert_eq!(send_request(&gateway, KEY, "same-chat").await.0, 200);

    std::fs::remove_file(gateway.file()).expect("it was there");
    gateway.process.signal("HUP");
    samples_when(&gateway, REFUSED, 2.0).await;
    assert!(stderr.text().contains("cannot read this file"));
    assert_eq!(send_request(&gateway, KEY, "same-chat").await.0, 200);

    gateway.rewrite(&good.replace("mock-chat", "new-chat"));
    gateway.process.signal("HUP");
    let samples = samples_when(&gateway, TAKEN, 1.0).await;
    assert_eq!(samples[REFUSED], 2.0);
    assert_eq!(send_request(&gateway, KEY, "same-chat").await.1, "new-chat");
}

#[tokio::test]
async fn settings_that_need_a_restart_are_named_until_they_are_restored() {
    let mock = Mock::start();
    let before = every_format_config(mock.address);
    let stderr = Stderr::new();
    let gateway = Gateway::start_with(&before, |command| stderr.attach(command));
    let needs_restart = |setting: &str| {
        let line = format!("{setting} has changed: that takes effect after a restart");
        stderr.text().matches(&line).count()
    };
    let after = before.replace(
        "{listen: LISTEN, admin: ADMIN}",
        "{listen: \"127.0.0.1:1\", admin: \"127.0.0.1:2\", access_log: json, drain_timeout: 9s}",
    );
    let after = after + "journal: {limit: 2GiB}\n";
    // Twice: what was said once is still so. Then back: nothing is left to say.
    for (config, reloads, said) in [(&after, 1.0, 1), (&after, 2.0, 2), (&before, 3.0, 2)] {
        gateway.rewrite(config);
        gateway.process.signal("HUP");
        samples_when(&gateway, TAKEN, reloads).await;
        for setting in [
            "server.listen",
            "server.admin",
            "server.access_log",
            "server.drain_timeout",
            "journal",
        ] {
            assert_eq!(needs_restart(setting), said, "{setting}");
        }
        assert_eq!(send_request(&gateway, KEY, "same-chat").await.0, 200);
    }
}

/// Asks on and on, in one way, until it is told to stop.
async fn client_loop(url: String, format: &'static str, stream: bool, load: Arc<Load>) {
    let client = new_client();
    while !load.over.load(Ordering::Relaxed) {
        let (path, body) = request(format, &format!("other-{format}"), "hello", stream);
        let asked = client.post(format!("{url}{path}")).bearer_auth(KEY);
        let response = asked.json(&body).send().await.expect("an answer");
        assert_eq!(response.status(), 200, "{format}");
        let text = response.text().await.expect("a whole body");
        let (said, end) = match (format, stream) {
            (_, false) => ("You said: hello", "}"),
            ("chat", true) => ("hello", "data: [DONE]\n\n"),
            ("messages", true) => ("hello", "data: {\"type\":\"message_stop\"}\n\n"),
            ("native", true) => ("hello", "}\n\n"),
            _ => ("response.completed", "}\n\n"),
        };
        assert!(
            text.contains(said) && text.ends_with(end),
            "{format}: {text}"
        );
        load.answered.fetch_add(1, Ordering::Relaxed);
        // Reloads need the processor too.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[derive(Default)]
struct Load {
    over: AtomicBool,
    answered: AtomicU64,
}

/// A config that differs from those before it in every part, and serves the same; with the name of its chat upstream.
fn varied(mock: SocketAddr, number: u32) -> (String, String) {
    let name = ["mock", "moved", "third"][number as usize % 3];
    let breaker = ["", ", breaker: off", ", breaker: {failures: 2}"][number as usize / 3 % 3];
    let health = ["", ", health: {path: /v1/models, interval: 5s}"][number as usize % 2];
    let balance = ["weighted", "least_in_flight", "key"][number as usize / 2 % 3];
    let mut text = every_format_config(mock)
        .replace("name: mock-", &format!("name: {name}-"))
        .replace("theirs-", &format!("theirs-{number}-"))
        .replace(
            "-messages, format: messages",
            &format!("-messages, format: messages{health}"),
        )
        .replace(", auth:", &format!("{breaker}, auth:"))
        .replace("id: same-", &format!("balance: {balance}, id: same-"));
    for extra in 0..number % 7 {
        text += &format!(
            "  - {{id: extra-{extra}, upstreams: [{{name: {name}-chat, weight: {number}}}]}}\n"
        );
    }
    (text, format!("{name}-chat"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_under_load_fail_no_request_and_leak_nothing() {
    let mock = Mock::start();
    let gateway = Gateway::start_with(&varied(mock.address, 0).0, |command| {
        command.env("RUST_LOG", "error");
    });
    let before = gateway.descriptors();
    let load = Arc::new(Load::default());
    let loops: Vec<_> = FORMATS
        .into_iter()
        .zip([true, false, true, true])
        .map(|((format, _), stream)| {
            tokio::spawn(client_loop(gateway.url(""), format, stream, load.clone()))
        })
        .collect();
    let mut connection = Connection::open(&gateway).await;
    for reload in 1..=RELOADS {
        let (config, upstream) = varied(mock.address, reload);
        gateway.rewrite(&config);
        gateway.process.signal("HUP");
        samples_when(&gateway, TAKEN, f64::from(reload)).await;
        // The same connection all along, and each config is in force as soon as it is counted.
        let (head, _) = connection.send_request("same-chat").await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let expected = format!("x-omniglot-upstream: {upstream}");
        assert!(head.contains(&expected), "{head}");
        assert!(
            loops.iter().all(|client| !client.is_finished()),
            "reload {reload}"
        );
    }
    load.over.store(true, Ordering::Relaxed);
    for client in loops {
        client.await.expect("no request failed");
    }
    let answered = load.answered.load(Ordering::Relaxed);
    assert!(answered > 20, "there was load: {answered} requests");

    gateway.until_idle().await;
    // Both ends hang up; what waits in the pool goes with the mock.
    drop((connection, mock));
    wait_until("no connection is left", async || {
        gateway.descriptors() <= before
    })
    .await;
}

/// Whether a client that trusts one authority only can list the models.
async fn is_trusted(gateway: &Gateway, authority: &CertificateAuthority) -> bool {
    let url = gateway.url("/v1/models").replace("http://", "https://");
    let client = authority.client().build().expect("a client");
    let response = client.get(url).bearer_auth(KEY).send().await;
    response.is_ok_and(|response| response.status() == 200)
}

#[tokio::test]
async fn certificates_are_read_again() {
    let (old, new) = (CertificateAuthority::new(), CertificateAuthority::new());
    let (cert, key) = old.issue_files("127.0.0.1");
    let listen = format!(
        "{{addr: LISTEN, tls: {{cert: {}, key: {}}}}}",
        cert.display(),
        key.display()
    );
    let mock = Mock::start();
    let config = every_format_config(mock.address).replace("LISTEN", &listen);
    let gateway = Gateway::start(&config);
    assert!(is_trusted(&gateway, &old).await);

    // A certificate without its key is refused, and the old one stays.
    let (new_cert, new_key) = new.issue_files("127.0.0.1");
    std::fs::copy(&new_cert, &cert).expect("a copy");
    gateway.process.signal("HUP");
    samples_when(&gateway, REFUSED, 1.0).await;
    assert!(is_trusted(&gateway, &old).await);

    std::fs::copy(&new_key, &key).expect("a copy");
    gateway.process.signal("HUP");
    samples_when(&gateway, TAKEN, 1.0).await;
    assert!(is_trusted(&gateway, &new).await);
    assert!(!is_trusted(&gateway, &old).await);
}
