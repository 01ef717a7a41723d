//! An upstream that is killed while it serves many requests: each gets a response or an error, and no state stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, assert_error_event, client_builder, is_end, request,
    stream_events, wait_until,
};

/// Of each client format; half of the streams have begun, the others wait for their first byte.
const REQUESTS_PER_KIND: usize = 50;

/// What a gateway may keep of two hundred streams, in KiB.
const MEMORY_GROWTH: u64 = 64 << 10;

/// What a client asks for, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Begun,
    Waiting,
    /// Waiting too, and another upstream is there.
    Spared,
}

impl RequestKind {
    fn of(number: usize) -> RequestKind {
        match number % 4 {
            0 | 1 => RequestKind::Begun,
            2 => RequestKind::Waiting,
            _ => RequestKind::Spared,
        }
    }
}

fn config(doomed: &Mock, spare: &Mock) -> String {
    let mut upstreams = String::new();
    let mut models = String::new();
    for (format, prefix) in FORMATS {
        for (name, mock) in [("doomed", doomed), ("spare", spare)] {
            let base = mock.url(prefix);
            upstreams += &format!(
                "  - {{name: {name}-{format}, format: {format}, base_url: \"{base}\", breaker: off}}\n"
            );
        }
        for (name, words) in [
            ("Begun", "long=1000+pace=200ms"),
            ("Waiting", "slow=1h"),
            ("Spared", "slow=1h"),
        ] {
            let fallbacks = if name == "Spared" {
                ", fallbacks: [spare]"
            } else {
                ""
            };
            models += &format!(
                "  - {{id: {name}-{format}, upstreams: [{{name: doomed-{format}, model: m+{words}}}]{fallbacks}}}\n"
            );
        }
    }
    format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}, limits: {{concurrency: {}}}}}]\n\
         upstreams:\n{upstreams}models:\n{models}  - {{id: spare, upstreams: [{{name: spare-chat}}]}}\n",
        REQUESTS_PER_KIND * FORMATS.len()
    )
}

/// One client to the end of its stream.
async fn stream(
    client: reqwest::Client,
    base: String,
    format: &'static str,
    model: String,
    begun: Arc<AtomicUsize>,
) -> Response {
    let (path, body) = request(format, &model, "hello there", true);
    let asked = client.post(format!("{base}{path}")).bearer_auth(KEY);
    let mut response = asked.json(&body).send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.expect("a body that ends") {
        if body.is_empty() {
            begun.fetch_add(1, Ordering::AcqRel);
        }
        body.extend_from_slice(&chunk);
    }
    Response {
        status,
        headers,
        body,
    }
}

fn assert_served(request: RequestKind, format: &str, response: &Response) {
    let what = format!("{request:?} {format}");
    match request {
        RequestKind::Begun => {
            assert_eq!(response.status, 200, "{what}");
            assert!(
                assert_error_event(format, response, &what).is_some(),
                "{what}"
            );
        }
        RequestKind::Waiting => {
            assert_eq!(response.status, 502, "{what}: {}", response.text());
            response.error(format);
        }
        RequestKind::Spared => {
            assert_eq!(response.status, 200, "{what}: {}", response.text());
            assert_eq!(response.header("x-omniglot-attempts"), "2", "{what}");
            let pieces = stream_events(format, response.text());
            let ended = pieces.iter().any(|piece| is_end(format, piece));
            assert!(
                ended && response.text().contains("hello"),
                "{what}: {}",
                response.text()
            );
        }
    }
}

async fn sum(gateway: &Gateway, metric: &str) -> u64 {
    let lines = gateway.metric(metric).await;
    let values = lines.iter().filter_map(|line| line.rsplit(' ').next());
    values
        .map(|value| value.parse::<u64>().expect("a count"))
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_at_a_killed_upstream_gets_a_response_or_an_error() {
    let (doomed, spare) = (Mock::start(), Mock::start());
    let gateway = Gateway::start(&config(&doomed, &spare));
    let client = client_builder().build().expect("a client");
    let begun = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for (place, (format, _)) in FORMATS.into_iter().enumerate() {
        for number in 0..REQUESTS_PER_KIND {
            let request = RequestKind::of(number);
            // Each client format with each upstream format.
            let (upstream, _) = FORMATS[(place + number / 4) % FORMATS.len()];
            let model = format!("{request:?}-{upstream}");
            let one = stream(
                client.clone(),
                gateway.url(""),
                format,
                model,
                begun.clone(),
            );
            clients.push((request, format, tokio::spawn(one)));
        }
    }
    let all = clients.len() as u64;
    let streaming = clients
        .iter()
        .filter(|(request, ..)| *request == RequestKind::Begun)
        .count();
    wait_until("every stream is under way", async || {
        begun.load(Ordering::Acquire) == streaming
            && sum(&gateway, "omniglot_upstream_requests_in_flight").await == all
    })
    .await;
    let before = gateway.resident();
    drop(doomed);
    for (request, format, client) in clients {
        assert_served(request, format, &client.await.expect("no panic"));
    }
    gateway.until_idle().await;
    assert_eq!(
        sum(&gateway, "omniglot_upstream_requests_in_flight").await,
        0
    );
    let after = gateway.resident();
    assert!(
        after < before + MEMORY_GROWTH,
        "{before} KiB before, {after} KiB after"
    );
}
