//! A gateway that is killed under load, again and again: who has a whole reply has a receipt.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::ledger::{Gateway, Options, left_in, upstreams};
use crate::reading::{holds, last_words};
use crate::stage::{FORMATS, KEY, Mock, client_builder, request};

const KILLS: usize = 50;
const CLIENTS: usize = 8;

/// Requests whose replies were read to the end, with what their headers said that they cost.
type Whole = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// One request to its end. `None`: there was none.
async fn ask(
    client: &reqwest::Client,
    base: &str,
    number: usize,
) -> Option<(String, Option<String>)> {
    let (format, _) = FORMATS[number % FORMATS.len()];
    let (upstream, _) = FORMATS[number / FORMATS.len() % FORMATS.len()];
    let stream = (number / 16).is_multiple_of(2);
    let words = "mock:usage=1000,400,50,20 mock:events=4";
    let (path, body) = request(format, &format!("priced-{upstream}"), words, stream);
    let asked = client
        .post(format!("{base}{path}"))
        .bearer_auth(KEY)
        .json(&body);
    let mut reply = asked.send().await.ok()?;
    assert_eq!(reply.status(), 200);
    let header = |name: &str| {
        let value = reply.headers().get(name)?;
        Some(value.to_str().expect("text").to_owned())
    };
    let (id, cost) = (header("x-request-id")?, header("x-omniglot-cost"));
    let last = last_words(format).filter(|_| stream);
    let mut body = Vec::new();
    loop {
        match reply.chunk().await.ok()? {
            Some(chunk) => body.extend_from_slice(&chunk),
            None => return Some((id, cost)),
        }
        if last.is_some_and(|words| holds(&body, words)) {
            return Some((id, cost));
        }
    }
}

/// Asks on and on. Whoever has read the last of so many replies kills the gateway in that moment.
async fn ask_on(victim: Arc<Victim>, first: usize, whole: Whole) {
    let client = client_builder().build().expect("a client");
    for number in first.. {
        let Some(asked) = ask(&client, &victim.base, number).await else {
            return;
        };
        let read = {
            let mut whole = whole.lock().expect("no panic");
            whole.push(asked);
            whole.len()
        };
        if read == victim.last {
            kill(victim.process, Signal::SIGKILL).expect("it runs");
        }
    }
}

struct Victim {
    process: Pid,
    base: String,
    /// How many replies all clients have when it dies.
    last: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_a_whole_reply_has_a_receipt_and_only_one() {
    let mock = Mock::start();
    let folder = tempfile::tempdir().expect("a folder");
    let whole = Whole::default();
    for round in 0..KILLS {
        let gateway = Gateway::start(&upstreams(&mock), folder.path(), &Options::default());
        let before = whole.lock().expect("no panic").len();
        let process = i32::try_from(gateway.process.id()).expect("an id");
        let victim = Arc::new(Victim {
            process: Pid::from_raw(process),
            base: gateway.url(""),
            last: before + 1 + round * 3,
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let first = round * 7 + number * 5;
                tokio::spawn(ask_on(victim.clone(), first, whole.clone()))
            })
            .collect();
        for client in clients {
            client.await.expect("no panic");
        }
    }
    let whole = std::mem::take(&mut *whole.lock().expect("no panic"));
    assert!(whole.len() > KILLS * KILLS, "{} replies", whole.len());
    let receipts = left_in(folder.path()).await;
    let mut by_id = HashMap::new();
    for receipt in &receipts {
        let twice = by_id.insert(&*receipt.id, receipt);
        assert_eq!(twice, None, "twice in the journal");
    }
    for (id, cost) in &whole {
        let receipt = by_id
            .get(&**id)
            .unwrap_or_else(|| panic!("no receipt of {id}"));
        let usage = receipt.usage;
        assert_eq!((usage.input, usage.output), (1000, 50), "{receipt:?}");
        assert!(!receipt.estimated && receipt.status == 200, "{receipt:?}");
        assert_eq!(receipt.stream, cost.is_none(), "{receipt:?}");
        if let Some(cost) = cost {
            assert_eq!(receipt.cost.to_string(), *cost);
        }
    }
    println!("{} replies, {} receipts", whole.len(), receipts.len());
}
