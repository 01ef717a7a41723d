//! Every request that used tokens has one usage record, however it ended.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use omniglot::model::Money;
use omniglot_test_support::{FORMATS, Gateway, KEY, Mock, client, post, request, response_head};

use crate::last_event::{contains, last_event};
use crate::load::COST;
use crate::usage_store::{UsageRow, UsageStore, metric_value, stop, upstreams, wait_until_flushed};

#[tokio::test]
async fn every_request_with_usage_is_in_the_store_once() {
    let mock = Mock::start();
    let store = UsageStore::in_sqlite();
    let gateway = Gateway::start(&store.config(&upstreams(&mock)));
    let usage = "mock:usage=1000,400,50,20 mock:events=8";
    let (mut whole, mut broken, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (client, _) in FORMATS {
        for (upstream, _) in FORMATS {
            let model = format!("priced-{upstream}");
            let send_request = async |words: &str, stream: bool| {
                let (path, body) = request(client, &model, words, stream);
                let response = post(gateway.url(&path), body.to_string()).await;
                response.header("x-request-id").to_owned()
            };
            whole.push(send_request(usage, false).await);
            whole.push(send_request(usage, true).await);
            broken.push(send_request(&format!("{usage} mock:cut=6"), true).await);
            refused.push(send_request("mock:error=400", false).await);
        }
    }
    stop(gateway);
    let rows = store.rows().await;
    assert_eq!(rows.len(), whole.len() + broken.len());
    let of = |id: &String| -> &UsageRow {
        let found = rows.iter().find(|row| row.id == *id);
        found.unwrap_or_else(|| panic!("no row of {id}"))
    };
    for row in whole.iter().map(of) {
        assert_eq!((row.status, row.output, row.estimated), (200, 50, false));
        assert_eq!(Some(row.cost), Money::parse(COST));
    }
    for row in broken.iter().map(of) {
        assert!(row.estimated && row.stream && row.status == 200 && row.output < 20);
    }
    let is_refused = |id: &String| refused.contains(id);
    assert!(!rows.iter().any(|row| is_refused(&row.id)));
    // Nothing is left to be carried.
    let left = std::fs::read_dir(store.journal()).expect("a folder");
    assert_eq!(left.count(), 2, "the lock and the journal's own name");
}

#[tokio::test]
async fn clients_that_disconnect_have_a_usage_record() {
    let mock = Mock::start();
    let store = UsageStore::in_sqlite();
    // With a cap the upstream would not be cancelled.
    let config = store.config(&upstreams(&mock));
    let gateway = Gateway::start(&config.replace(", spending_cap: 1000000", ""));
    for (left, (format, _)) in (1..).zip(FORMATS) {
        let words = "mock:wait=never mock:name=left";
        let (path, body) = request(format, "priced-chat", words, left % 2 == 0);
        let asked = client().post(gateway.url(&path)).bearer_auth(KEY);
        let asking = tokio::spawn(asked.json(&body).send());
        mock.until_seen("left", "waiting", 1).await;
        asking.abort();
        mock.until_seen("left", "cancelled", left).await;
    }
    stop(gateway);
    let rows = store.rows().await;
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!((row.status, row.estimated), (499, true), "{row:?}");
    }
}

/// An upstream that says all of a stream and then hangs on to the connection.
fn hanging(stream: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let response = [
        response_head("200 OK", "text/event-stream"),
        stream.into_bytes(),
    ]
    .concat();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let response = response.clone();
            std::thread::spawn(move || hang(stream, &response));
        }
    });
    address
}

/// Until the other side has gone.
fn hang(mut stream: TcpStream, response: &[u8]) -> std::io::Result<()> {
    // The head of a request, and of its body what comes with it.
    stream.read_exact(&mut [0; 64])?;
    stream.write_all(response)?;
    std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
}

#[tokio::test]
async fn the_usage_record_exists_when_the_last_event_arrives() {
    let mock = Mock::start();
    let words = "mock:usage=1000,400,50,20 mock:events=4";
    let mut upstreams = Vec::new();
    for (format, prefix) in FORMATS {
        let (path, mut body) = request(format, "m", words, true);
        if format == "chat" {
            body["stream_options"] = serde_json::json!({"include_usage": true});
        }
        let text = post(mock.url(&path), body.to_string()).await;
        let address = hanging(text.text().to_owned());
        upstreams.push((format, format!("http://{address}{prefix}")));
    }
    // In the journal, that is: of a store that takes them they would be gone from there at once.
    let closed = UsageStore::unreachable();
    let gateway = Gateway::start(&closed.config(&upstreams));
    let mut open = Vec::new();
    for (format, _) in FORMATS {
        // A native stream has no last event, neither here nor there.
        let Some(last) = last_event(format) else {
            continue;
        };
        for (upstream, _) in FORMATS.iter().filter(|(format, _)| *format != "native") {
            let (path, body) = request(format, &format!("priced-{upstream}"), words, true);
            let asked = client().post(gateway.url(&path)).bearer_auth(KEY);
            let mut response = asked.json(&body).send().await.expect("an answer");
            let mut received = Vec::new();
            while !contains(&received, last) {
                let chunk = response.chunk().await.expect("a stream");
                received.extend_from_slice(&chunk.expect("more of it"));
            }
            open.push(response);
            let waiting = metric_value(&gateway, "omniglot_journal_waiting").await;
            assert_eq!(waiting, open.len() as f64, "{format} from {upstream}");
        }
    }
    let streams = open.len();
    drop(open);
    gateway.until_idle().await;
    stop(gateway);
    let store = closed.with_sqlite();
    let gateway = Gateway::start(&store.config(&upstreams));
    wait_until_flushed(&gateway).await;
    stop(gateway);
    let rows = store.rows().await;
    assert_eq!(rows.len(), streams);
    for row in rows {
        assert_eq!((row.input, row.output), (1000, 50), "{row:?}");
        assert!(!row.estimated && row.status == 200, "{row:?}");
    }
}
