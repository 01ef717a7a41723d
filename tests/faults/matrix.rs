//! Runs every fault in every pair of formats, as JSON and as streams, alone and with a fallback.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use omniglot_test_support::{
    CertificateAuthority, FORMATS, Gateway, Mock, NATIVE_ARRAY, Response, STREAM_KINDS, Stderr,
    TlsProxy, assert_error_event, client, format_of, is_end, is_error, request, response_text,
    send, stream_events, wait_until,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use crate::fault_table::{self, BODY_LIMIT, CREDENTIAL, Fault, Outcome, UpstreamKind};
use crate::faulty_upstream::{self, GOOD_PATH, MARK};
use crate::mock_responses::{RecordedResponses, Shape};

/// Each asks one thing after the other, with a key that allows no more than that at once.
const WORKERS: usize = 12;

const UPSTREAM_KINDS: [(UpstreamKind, &str); 5] = [
    (UpstreamKind::Patient, "patient"),
    (UpstreamKind::Impatient, "impatient"),
    (UpstreamKind::Refused, "refused"),
    (UpstreamKind::Tls, "tls"),
    (UpstreamKind::Stranger, "stranger"),
];

/// More than the gateway needs for all of this, and much less than one of the bombs would take: for each of the workers
/// at once, brotli may hold a window of 32 MiB.
const MEMORY_LIMIT: u64 = 700 << 10;

struct FaultRun {
    /// Where the gateway is.
    base: String,
    faults: Arc<Vec<Fault>>,
    recorded: Arc<RecordedResponses>,
    faulty: SocketAddr,
}

/// One question, and what is asked.
#[derive(Debug, Clone)]
struct Cell {
    fault: usize,
    way: &'static str,
    stream: bool,
    upstream: usize,
    spared: bool,
}

impl Cell {
    fn upstream_format(&self) -> &'static str {
        FORMATS[self.upstream].0
    }

    fn spare_format(&self) -> &'static str {
        spare_of(self.upstream)
    }

    /// How the upstream is asked; only a native client's own upstream is asked for an array.
    fn shape(&self) -> Shape {
        match (self.stream, self.way, self.upstream_format()) {
            (false, ..) => Shape::Json,
            (true, NATIVE_ARRAY, "native") => Shape::Array,
            (true, ..) => Shape::Events,
        }
    }
}

/// The spare is of another format.
fn spare_of(upstream: usize) -> &'static str {
    FORMATS[(upstream + 1) % FORMATS.len()].0
}

fn config(faulty: SocketAddr, nobody: SocketAddr, no_tls: SocketAddr, stranger: u16) -> String {
    let mut text =
        format!("server: {{listen: LISTEN, admin: ADMIN, body_limit: {BODY_LIMIT}}}\nkeys:\n");
    for worker in 0..WORKERS {
        text += &format!(
            "  - {{name: worker-{worker}, secret: the-key-of-worker-{worker}, limits: {{concurrency: 1}}}}\n"
        );
    }
    text += "upstreams:\n";
    for (format, prefix) in FORMATS {
        for (kind, name) in UPSTREAM_KINDS {
            let base = match kind {
                UpstreamKind::Patient | UpstreamKind::Impatient => format!("http://{faulty}"),
                UpstreamKind::Refused => format!("http://{nobody}"),
                UpstreamKind::Tls => format!("https://{no_tls}"),
                UpstreamKind::Stranger => format!("https://localhost:{stranger}"),
            };
            let silence = if kind == UpstreamKind::Impatient {
                "300ms"
            } else {
                "60s"
            };
            text += &format!(
                "  - {{name: {name}-{format}, format: {format}, base_url: \"{base}{prefix}\", breaker: off, \
                 auth: {{bearer: {CREDENTIAL}}}, timeouts: {{first_byte: {silence}, idle: {silence}}}}}\n"
            );
        }
        text += &format!(
            "  - {{name: good-{format}, format: {format}, base_url: \"http://{faulty}{GOOD_PATH}{prefix}\", \
             breaker: off}}\n"
        );
    }
    text += "models:\n";
    for (number, (format, _)) in FORMATS.into_iter().enumerate() {
        let spare = spare_of(number);
        for (_, name) in UPSTREAM_KINDS {
            let upstreams = format!("upstreams: [{{name: {name}-{format}, model: theirs}}]");
            text += &format!(
                "  - {{id: {name}-{format}, {upstreams}}}\n  \
                 - {{id: {name}-{format}-spared, {upstreams}, fallbacks: [spare-{spare}]}}\n"
            );
        }
        text += &format!(
            "  - {{id: spare-{format}, upstreams: [{{name: good-{format}, model: theirs}}]}}\n"
        );
    }
    text
}

/// Answers a greeting of TLS with words.
async fn no_tls() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut greeting = [0; 1024];
            // The gateway may give up at any point.
            let _ = stream.read(&mut greeting).await;
            let _ = stream.write_all(b"HTTP/1.1 400 secret-host\r\n\r\n").await;
        }
    });
    address
}

impl FaultRun {
    async fn send_request(&self, worker: usize, cell: &Cell, model: &str, word: &str) -> Response {
        let prompt = format!("{MARK}{} {word} two", cell.fault);
        let (mut path, body) = request(format_of(cell.way), model, &prompt, cell.stream);
        if cell.way == NATIVE_ARRAY {
            path = path.replace("?alt=sse", "");
        }
        loop {
            let asked = client().post(format!("{}{path}", self.base)).json(&body);
            let response = send(asked.bearer_auth(format!("the-key-of-worker-{worker}"))).await;
            // The last request's place is given back when its last byte has been sent, not when
            // it has been read. One that never comes back is a hang, and ends as such.
            if response.status == 429 && response.header("x-omniglot-attempts").is_empty() {
                tokio::task::yield_now().await;
                continue;
            }
            return response;
        }
    }

    /// The fault, and what is left of it for the next one who asks.
    async fn check(&self, worker: usize, cell: &Cell, outcome: &Outcome) {
        let fault = &self.faults[cell.fault];
        let what = format!("{} {cell:?}", fault.name);
        let (_, kind) = UPSTREAM_KINDS[fault.kind as usize];
        let format = cell.upstream_format();
        let suffix = if cell.spared { "-spared" } else { "" };
        let word = fresh_word();
        let response = self
            .send_request(worker, cell, &format!("{kind}-{format}{suffix}"), &word)
            .await;
        self.assert_answer(
            cell,
            outcome,
            &response,
            &word,
            &format!("{kind}-{format}"),
            &what,
        );
        let word = fresh_word();
        let next = Cell {
            fault: 0,
            ..cell.clone()
        };
        let name = format!("patient-{format}");
        let response = self.send_request(worker, &next, &name, &word).await;
        assert_good(cell, &response, &word, &name, "1", &format!("after {what}"));
    }

    fn assert_answer(
        &self,
        cell: &Cell,
        outcome: &Outcome,
        response: &Response,
        word: &str,
        upstream: &str,
        what: &str,
    ) {
        self.assert_tells_no_secret(response, what);
        let spare = format!("good-{}", cell.spare_format());
        if !response.header("x-omniglot-upstream").starts_with("good") {
            let says = self.faults[cell.fault].says;
            let text = String::from_utf8_lossy(&response.body);
            assert!(text.contains(says), "{what}: {text}");
        }
        match outcome {
            Outcome::Good => assert_good(cell, response, word, upstream, "1", what),
            Outcome::Refused(status) => assert_error(cell, response, &[*status], upstream, what),
            Outcome::Failed(_) if cell.spared => {
                assert_good(cell, response, word, &spare, "2", what)
            }
            Outcome::Failed(statuses) => {
                let seen: Vec<u16> = statuses.iter().map(|status| seen(cell, *status)).collect();
                assert_error(cell, response, &seen, upstream, what);
            }
            Outcome::Broken => assert_broken(cell, response, upstream, what),
            Outcome::Lost if response.header("x-omniglot-attempts") == "2" => {
                assert!(cell.spared, "{what}");
                assert_good(cell, response, word, &spare, "2", what);
            }
            Outcome::Lost if response.status == 200 => {
                assert_broken(cell, response, upstream, what)
            }
            Outcome::Lost => assert_error(cell, response, &[502], upstream, what),
        }
    }

    fn assert_tells_no_secret(&self, response: &Response, what: &str) {
        let text = String::from_utf8_lossy(&response.body);
        let headers = response
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
        let all = headers.collect::<Vec<_>>().join("\n") + "\n" + &text;
        assert!(!all.contains("secret"), "{what}: {all}");
        assert!(!all.contains(&self.faulty.to_string()), "{what}: {all}");
        assert!(
            response.header("x-request-id").starts_with("req_"),
            "{what}: {all}"
        );
    }
}

async fn assert_nothing_left(gateway: &Gateway, what: &str) {
    for name in [
        "omniglot_requests_in_flight",
        "omniglot_upstream_requests_in_flight",
        "omniglot_upstream_requests_waiting",
    ] {
        wait_until(&format!("{name} is 0 after {what}"), async || {
            let lines = gateway.metric(name).await;
            !lines.is_empty() && lines.iter().all(|line| line.ends_with(" 0"))
        })
        .await;
    }
}

/// Only messages has a status of its own for too much to do; what is not translated is kept.
fn seen(cell: &Cell, status: u16) -> u16 {
    let client = format_of(cell.way);
    match status {
        503 | 529 if client != cell.upstream_format() && client == "messages" => 529,
        503 | 529 if client != cell.upstream_format() => 503,
        status => status,
    }
}

fn assert_from(response: &Response, upstream: &str, attempts: &str, what: &str) {
    let text = (
        response.header("x-omniglot-upstream"),
        response.header("x-omniglot-attempts"),
    );
    assert_eq!(text, (upstream, attempts), "{what}");
}

fn assert_good(
    cell: &Cell,
    answer: &Response,
    word: &str,
    upstream: &str,
    attempts: &str,
    what: &str,
) {
    let text = answer.text();
    assert_eq!(answer.status, 200, "{what}: {text}");
    assert_from(answer, upstream, attempts, what);
    if !cell.stream {
        let said = response_text(format_of(cell.way), &answer.json());
        assert!(said.ends_with(&format!("{word} two")), "{what}: {text}");
        return;
    }
    let pieces = stream_events(cell.way, text);
    assert!(text.contains(word), "{what}: {text}");
    let has_end = pieces.iter().any(|piece| is_end(cell.way, piece));
    let has_error = pieces.iter().any(|piece| is_error(cell.way, piece));
    assert!(has_end && !has_error, "{what}: {text}");
}

fn assert_error(cell: &Cell, response: &Response, statuses: &[u16], upstream: &str, what: &str) {
    let text = response.text();
    assert!(
        statuses.contains(&response.status),
        "{what}: {} {text}",
        response.status
    );
    assert!(
        !response.error(format_of(cell.way)).is_empty(),
        "{what}: {text}"
    );
    assert_from(response, upstream, "1", what);
    let retry_after = if response.status == 429 { "7" } else { "" };
    assert_eq!(
        response.header("retry-after"),
        retry_after,
        "{what}: {text}"
    );
}

fn assert_broken(cell: &Cell, response: &Response, upstream: &str, what: &str) {
    assert_eq!(response.status, 200, "{what}: {}", response.text());
    assert_from(response, upstream, "1", what);
    assert!(
        assert_error_event(cell.way, response, what).is_some(),
        "{what}"
    );
}

/// Of the length of the recorded one.
fn fresh_word() -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    format!("word-{:07}", LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

/// All cells of a fault that can be.
fn cells(setup: &FaultRun, fault: usize) -> Vec<(Cell, Outcome)> {
    let mut all = Vec::new();
    for stream in [false, true] {
        for way in STREAM_KINDS {
            if !stream && way == NATIVE_ARRAY {
                continue;
            }
            for (upstream, (format, _)) in FORMATS.into_iter().enumerate() {
                for spared in [false, true] {
                    let cell = Cell {
                        fault,
                        way,
                        stream,
                        upstream,
                        spared,
                    };
                    let row = &setup.faults[fault];
                    let reply = setup.recorded.reply(format, cell.shape(), row.words);
                    all.extend((row.outcome)(reply).map(|outcome| (cell, outcome)));
                }
            }
        }
    }
    all
}

/// Runs the cells of one fault; what went wrong has been printed.
async fn run(setup: &Arc<FaultRun>, fault: usize) -> (usize, usize) {
    let cells = Arc::new(cells(setup, fault));
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (setup, cells) = (setup.clone(), cells.clone());
            tokio::spawn(async move {
                let mut failed = 0;
                for (cell, outcome) in cells.iter().skip(worker).step_by(WORKERS) {
                    let (setup, cell, outcome) = (setup.clone(), cell.clone(), outcome.clone());
                    // A task of its own, so that one failure does not hide the others.
                    let check = tokio::spawn(async move {
                        setup.check(worker, &cell, &outcome).await;
                    });
                    failed += usize::from(check.await.is_err());
                }
                failed
            })
        })
        .collect();
    let mut failed = 0;
    for worker in workers {
        failed += worker.await.expect("a worker");
    }
    (cells.len(), failed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_is_reported_or_retried_and_leaves_no_state() {
    let faults = Arc::new(fault_table::all());
    let words: BTreeSet<String> = faults.iter().map(|fault| fault.words.to_owned()).collect();
    let mock = Mock::start();
    let recorded = RecordedResponses::of(&mock, &words.into_iter().collect::<Vec<_>>()).await;
    let recorded = Arc::new(recorded);
    let faulty = faulty_upstream::start(faults.clone(), recorded.clone()).await;
    // Bound, so that nobody else takes it, and never listening.
    let nobody = TcpSocket::new_v4().expect("a socket");
    nobody
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let nobody_at = nobody.local_addr().expect("an address");
    let stranger = TlsProxy::start(&CertificateAuthority::new(), "localhost", faulty).await;
    let complaints = Stderr::new();
    let port = stranger.address.port();
    let config = config(faulty, nobody_at, no_tls().await, port);
    let gateway = Gateway::start_with(&config, |command| complaints.attach(command));
    let stage = Arc::new(FaultRun {
        base: gateway.url(""),
        faults,
        recorded,
        faulty,
    });
    let (mut asked, mut wrong) = (0, Vec::new());
    for number in 0..stage.faults.len() {
        let (cells, failed) = run(&stage, number).await;
        let name = &stage.faults[number].name;
        assert_nothing_left(&gateway, name).await;
        asked += cells;
        if failed > 0 {
            wrong.push(format!("{name}: {failed} of {cells}"));
        }
    }
    assert!(wrong.is_empty(), "of {asked} cells:\n{}", wrong.join("\n"));
    assert!(
        stranger.negotiated().is_empty(),
        "nothing is said to a stranger"
    );
    assert!(asked > 3000, "{asked} cells are not all there are");
    let complaints = complaints.text();
    for word in ["panicked", "secret"] {
        let line = complaints.lines().find(|line| line.contains(word));
        assert_eq!(line, None, "the log must not hold {word:?}");
    }
    let highest = gateway.memory("VmHWM:");
    assert!(highest < MEMORY_LIMIT, "{highest} KiB");
}
