//! One receipt for every request that took something, of whatever became of it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::asking::{client, head, post};
use crate::ledger::{Gateway, Options, entries, left_in, upstreams};
use crate::reading::{holds, last_words};
use crate::stage::{FORMATS, KEY, Mock, request, until};

#[tokio::test]
async fn every_request_that_took_something_is_in_the_books_once() {
    let mock = Mock::start();
    let folder = tempfile::tempdir().expect("a folder");
    let books = folder.path().join("books");
    let journal = folder.path().join("journal");
    let options = Options {
        books: Some(&books),
        ..Options::default()
    };
    let gateway = Gateway::start(&upstreams(&mock), &journal, &options);
    let usage = "mock:usage=1000,400,50,20 mock:events=8";
    let (mut whole, mut broken, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (client, _) in FORMATS {
        for (upstream, _) in FORMATS {
            let model = format!("priced-{upstream}");
            let ask = async |words: &str, stream: bool| {
                let (path, body) = request(client, &model, words, stream);
                let answer = post(gateway.url(&path), body.to_string()).await;
                answer.header("x-request-id").to_owned()
            };
            whole.push(ask(usage, false).await);
            whole.push(ask(usage, true).await);
            broken.push(ask(&format!("{usage} mock:cut=6"), true).await);
            refused.push(ask("mock:error=400", false).await);
        }
    }
    gateway.leave();
    let entries = entries(&books);
    assert_eq!(entries.len(), whole.len() + broken.len());
    let of = |id: &String| {
        let mut found = entries.iter().filter(|entry| entry.id == *id);
        let entry = found.next().unwrap_or_else(|| panic!("no receipt of {id}"));
        assert_eq!(found.next(), None, "only one of {id}");
        entry
    };
    for entry in whole.iter().map(of) {
        assert_eq!((entry.status, entry.output), (200, 50));
        // 1000 × 1.25 + 50 × 10 for a million.
        assert_eq!((&*entry.cost, entry.estimated), ("0.00175", false));
    }
    for entry in broken.iter().map(of) {
        assert!(entry.estimated && entry.status == 200 && entry.output < 20);
    }
    let is_refused = |id: &String| refused.contains(id);
    assert!(!entries.iter().any(|entry| is_refused(&entry.id)));
    // Nothing is left to be carried.
    let left = std::fs::read_dir(&journal).expect("a folder").count();
    assert_eq!(left, 1, "the lock alone");
}

#[tokio::test]
async fn clients_that_leave_have_a_receipt_too() {
    let mock = Mock::start();
    let folder = tempfile::tempdir().expect("a folder");
    let books = folder.path().join("books");
    let options = Options {
        books: Some(&books),
        ..Options::default()
    };
    let gateway = Gateway::start(&upstreams(&mock), &folder.path().join("journal"), &options);
    for (left, (format, _)) in (1..).zip(FORMATS) {
        let words = "mock:wait=never mock:name=left";
        let (path, body) = request(format, "priced-chat", words, left % 2 == 0);
        let asked = client().post(gateway.url(&path)).bearer_auth(KEY);
        let asking = tokio::spawn(asked.json(&body).send());
        mock.until_seen("left", "waiting", 1).await;
        asking.abort();
        mock.until_seen("left", "cancelled", left).await;
    }
    gateway.leave();
    let entries = entries(&books);
    assert_eq!(entries.len(), 4);
    for entry in entries {
        assert_eq!((entry.status, entry.estimated), (499, true), "{entry:?}");
    }
}

/// An upstream that says all of a stream and then hangs on to the connection.
fn hanging(stream: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let answer = [head("200 OK", "text/event-stream"), stream.into_bytes()].concat();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || hang(stream, &answer));
        }
    });
    address
}

/// Until the other side has gone.
fn hang(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    // The head of a request, and of its body what comes with it.
    stream.read_exact(&mut [0; 64])?;
    stream.write_all(answer)?;
    std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
}

#[tokio::test]
async fn who_stops_at_the_last_event_has_a_receipt_by_then() {
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
    let folder = tempfile::tempdir().expect("a folder");
    let gateway = Gateway::start(&upstreams, folder.path(), &Options::default());
    let mut open = Vec::new();
    for (format, _) in FORMATS {
        // A native stream has no last event, neither here nor there.
        let Some(last) = last_words(format) else {
            continue;
        };
        for (upstream, _) in FORMATS.iter().filter(|(format, _)| *format != "native") {
            let (path, body) = request(format, &format!("priced-{upstream}"), words, true);
            let asked = client().post(gateway.url(&path)).bearer_auth(KEY);
            let mut reply = asked.json(&body).send().await.expect("an answer");
            let mut heard = Vec::new();
            while !holds(&heard, last) {
                let chunk = reply.chunk().await.expect("a stream");
                heard.extend_from_slice(&chunk.expect("more of it"));
            }
            open.push(reply);
            let waiting = gateway.metric("omniglot_journal_waiting").await;
            assert_eq!(waiting, Some(open.len() as f64), "{format} from {upstream}");
        }
    }
    let streams = open.len();
    drop(open);
    until("the gateway has noticed", async || {
        gateway.metric("omniglot_requests_in_flight").await == Some(0.0)
    })
    .await;
    gateway.leave();
    let receipts = left_in(folder.path()).await;
    assert_eq!(receipts.len(), streams);
    for receipt in receipts {
        let usage = receipt.usage;
        assert_eq!((usage.input, usage.output), (1000, 50), "{receipt:?}");
        assert!(!receipt.estimated && receipt.status == 200, "{receipt:?}");
    }
}
