//! A gateway and a mock as processes of their own, for tests over real sockets.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub const KEY: &str = "test-key-of-everything";

/// Long enough that only a hang reaches it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A child process whose stdout is read line by line; killed when dropped.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    pub fn start(command: &mut Command) -> Process {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Process { child, lines }
    }

    /// The next line of stdout that contains the words.
    pub fn line_with(&self, words: &str) -> String {
        let line = self.line_if_any(words, PATIENCE);
        line.unwrap_or_else(|| panic!("no line with {words:?} came"))
    }

    /// The same, or `None` when stdout ends without one.
    pub fn line_if_any(&self, words: &str, patience: Duration) -> Option<String> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(words) => return Some(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no line with {words:?} in {patience:?}"),
            }
        }
    }

    /// Every line up to the end of the process's stdout.
    pub fn lines_to_the_end(&self) -> Vec<String> {
        self.lines.iter().collect()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, like `HUP`.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill")
            .args([format!("-{name}"), self.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(done.success(), "the process is there to be signalled");
    }

    pub fn is_running(&mut self) -> bool {
        let left = self.child.try_wait().expect("the child can be waited for");
        left.is_none()
    }

    /// Waits for the process to leave by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            assert!(Instant::now() < until, "the process does not leave");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the process has left already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn omniglot() -> Command {
    Command::new(env!("CARGO_BIN_EXE_omniglot"))
}

/// A port that was free a moment ago, from below those that outgoing connections take.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() * 101 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + u16::try_from(number % 20_000).expect("a small number");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

pub struct Mock {
    _process: Process,
    pub address: SocketAddr,
}

impl Mock {
    pub fn start() -> Mock {
        let process = Process::start(omniglot().args(["mock", "--listen", "127.0.0.1:0"]));
        let line = process.line_with("listens on http://");
        let (_, address) = line.rsplit_once("http://").expect("an address");
        let address = address.parse().expect("an address");
        Mock {
            _process: process,
            address,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Lets so many events go, of streams that wait for the name.
    pub async fn signal(&self, name: &str, times: usize) {
        for _ in 0..times {
            let path = format!("/mock/signal/{name}");
            let sent = client().post(self.url(&path)).send().await;
            assert_eq!(sent.expect("the mock answers").status(), 204);
        }
    }

    /// One of the counts of the requests that carried a name, like `cancelled`.
    pub async fn seen(&self, name: &str, count: &str) -> u64 {
        let url = self.url(&format!("/mock/seen/{name}"));
        let seen = client().get(url).send().await.expect("an answer");
        let seen: serde_json::Value = seen.json().await.expect("JSON");
        seen[count].as_u64().expect("a count")
    }

    /// Waits until the counts of requests named so hold a number.
    pub async fn until_seen(&self, name: &str, count: &str, number: u64) {
        let what = format!("{number} {count} of {name}");
        eventually(&what, async || {
            let seen = client().get(self.url(&format!("/mock/seen/{name}")));
            let seen = seen.send().await.expect("the mock answers");
            let seen: serde_json::Value = seen.json().await.expect("counts");
            (seen[count] == number).then_some(())
        })
        .await;
    }
}

/// Asks again until there is an answer.
pub async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < until, "this never came: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What a process writes to stderr.
pub struct Stderr(tempfile::NamedTempFile);

impl Stderr {
    pub fn new() -> Stderr {
        Stderr(tempfile::NamedTempFile::new().expect("a file"))
    }

    pub fn attach(&self, command: &mut Command) {
        command.stderr(self.0.reopen().expect("the file is there"));
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(self.0.path()).expect("text")
    }
}

pub struct Gateway {
    pub process: Process,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    directory: tempfile::TempDir,
}

impl Gateway {
    /// Runs a config; `LISTEN` and `ADMIN` in it stand for free addresses.
    pub fn start(config: &str) -> Gateway {
        Gateway::start_with(config, |_| {})
    }

    /// The same, with the command prepared: environment, log level.
    pub fn start_with(config: &str, prepare: impl FnOnce(&mut Command)) -> Gateway {
        let (address, admin) = (free_address(), free_address());
        let directory = tempfile::tempdir().expect("a directory");
        let gateway_file = directory.path().join("gateway.yaml");
        std::fs::write(&gateway_file, fill(config, address, admin)).expect("the config is written");
        let mut command = omniglot();
        command.args(["run", "-c"]).arg(&gateway_file);
        prepare(&mut command);
        let process = Process::start(&mut command);
        process.line_with("omniglot listens on");
        Gateway {
            process,
            address,
            admin,
            directory,
        }
    }

    pub fn file(&self) -> PathBuf {
        self.directory.path().join("gateway.yaml")
    }

    /// Writes a new config in place of the old one; a signal makes it count.
    pub fn rewrite(&self, config: &str) {
        let next = self.directory.path().join("next.yaml");
        std::fs::write(&next, fill(config, self.address, self.admin)).expect("it is written");
        std::fs::rename(next, self.file()).expect("it is put in place");
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn admin_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.admin)
    }

    /// The lines of a metric in a scrape.
    pub async fn metric(&self, name: &str) -> Vec<String> {
        let scrape = client().get(self.admin_url("/metrics")).send().await;
        let text = scrape.expect("an answer").text().await.expect("a body");
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.map(str::to_owned).collect()
    }

    /// Waits until no request is in flight any more.
    pub async fn until_idle(&self) {
        until("no request is in flight", async || {
            let lines = self.metric("omniglot_requests_in_flight").await;
            lines == ["omniglot_requests_in_flight 0"]
        })
        .await;
    }

    /// Files and connections that the process has open.
    pub fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.process.id());
        let open = std::fs::read_dir(directory).expect("the process is there");
        open.count()
    }

    /// Memory that the process holds, in KiB.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The same by another name of the system: `VmHWM:` is the most that it ever held.
    pub fn memory(&self, name: &str) -> u64 {
        let file = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(file).expect("the process is there");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        number.and_then(|text| text.parse().ok()).expect("a number")
    }
}

/// Asks again and again until it holds.
pub async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let since = Instant::now();
    while !holds().await {
        assert!(since.elapsed() < PATIENCE, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn fill(config: &str, address: SocketAddr, admin: SocketAddr) -> String {
    config
        .replace("LISTEN", &address.to_string())
        .replace("ADMIN", &admin.to_string())
}

/// One upstream per format on the mock, each with a model of the same name at both ends
/// (`same-chat` …) and one whose upstream calls it otherwise (`other-chat` → `theirs-chat` …).
pub fn every_format(mock: SocketAddr) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys:\n  - {{name: all, secret: {KEY}}}\n  \
         - {{name: some, secret: key-of-some, models: [\"same-*\"]}}\nupstreams:\n"
    );
    for (format, prefix) in FORMATS {
        text += &format!(
            "  - {{name: mock-{format}, format: {format}, base_url: \"http://{mock}{prefix}\", \
             auth: {{bearer: secret-of-the-upstream}}}}\n"
        );
    }
    text += "models:\n";
    for (format, _) in FORMATS {
        text += &format!(
            "  - {{id: same-{format}, upstreams: [{{name: mock-{format}}}]}}\n  \
             - {{id: other-{format}, upstreams: [{{name: mock-{format}, model: theirs-{format}}}]}}\n"
        );
    }
    text
}

/// One model `m` at one chat upstream `up`. The settings are those of the server and of the
/// upstream, as YAML in braces would say them.
pub fn single(server: &str, upstream: &str) -> String {
    format!(
        "server: {{listen: LISTEN, admin: ADMIN, {server}}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: up, format: chat, {upstream}}}]\n\
         models: [{{id: m, upstreams: [{{name: up}}]}}]\n"
    )
}

/// Each format with what its base URL ends in.
pub const FORMATS: [(&str, &str); 4] = [
    ("chat", "/v1"),
    ("messages", ""),
    ("native", ""),
    ("responses", "/v1"),
];

/// Path and body of a small request in a format.
pub fn request(
    format: &str,
    model: &str,
    prompt: &str,
    stream: bool,
) -> (String, serde_json::Value) {
    use serde_json::json;
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

pub fn client() -> reqwest::Client {
    client_builder().build().expect("a client")
}

pub fn client_builder() -> reqwest::ClientBuilder {
    // The first call decides; later ones find it done.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        // Reading the machine's certificates would take longer than most requests.
        .tls_certs_only([])
        .timeout(PATIENCE)
}
