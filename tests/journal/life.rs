//! A journal from one process to the next, and where there is no room for it.

use crate::asking::post;
use crate::ledger::{Gateway, Options, entries, left_in, upstreams};
use crate::stage::{Mock, Stderr, request, until};

async fn ask(gateway: &Gateway, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let (path, body) = request("chat", "priced-chat", "hello", false);
        let answer = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        ids.push(answer.header("x-request-id").to_owned());
    }
    ids
}

#[tokio::test]
async fn what_closed_books_did_not_take_the_next_process_brings() {
    let mock = Mock::start();
    let folder = tempfile::tempdir().expect("a folder");
    let (books, journal) = (folder.path().join("books"), folder.path().join("journal"));
    let gateway = Gateway::start(&upstreams(&mock), &journal, &Options::default());
    let mut ids = ask(&gateway, 5).await;
    assert_eq!(gateway.metric("omniglot_journal_waiting").await, Some(5.0));
    let carried = gateway.metric("omniglot_journal_carried_total").await;
    assert_eq!(carried, Some(0.0));
    gateway.leave();
    let options = Options {
        books: Some(&books),
        ..Options::default()
    };
    let gateway = Gateway::start(&upstreams(&mock), &journal, &options);
    ids.extend(ask(&gateway, 5).await);
    until("everything is carried", async || {
        gateway.metric("omniglot_journal_waiting").await == Some(0.0)
    })
    .await;
    let carried = gateway.metric("omniglot_journal_carried_total").await;
    assert_eq!(carried, Some(10.0));
    for (name, value) in [
        ("omniglot_journal_lost_total", 0.0),
        ("omniglot_journal_damaged_total", 0.0),
        ("omniglot_journal_nearly_full", 0.0),
        ("omniglot_journal_limit_bytes", f64::from(1 << 30)),
    ] {
        assert_eq!(gateway.metric(name).await, Some(value), "{name}");
    }
    let bytes = gateway.metric("omniglot_journal_bytes").await;
    assert!(bytes.is_some_and(|bytes| bytes > 1000.0), "{bytes:?}");
    let behind = gateway.metric("omniglot_journal_behind_seconds").await;
    assert!(behind.is_some());
    gateway.leave();
    let found: Vec<String> = entries(&books).into_iter().map(|entry| entry.id).collect();
    assert_eq!(found, ids);
}

#[test]
fn a_second_process_is_refused_the_folder_and_told_why() {
    let mock = Mock::start();
    let folder = tempfile::tempdir().expect("a folder");
    let first = Gateway::start(&upstreams(&mock), folder.path(), &Options::default());
    let stderr = Stderr::new();
    let options = Options {
        stderr: Some(&stderr),
        ..Options::default()
    };
    let mut second = Gateway::begin(&upstreams(&mock), folder.path(), &options);
    assert!(!second.process.wait().success());
    let said = stderr.text();
    let path = folder.path().display().to_string();
    for words in ["another process uses it", "journal.path", &path] {
        assert!(said.contains(words), "{words} in {said}");
    }
    first.leave();
}

#[tokio::test]
async fn a_disk_without_room_costs_receipts_but_no_request() {
    let mock = Mock::start();
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        // No multiple of a line's length: then some part of a line still fits.
        longest_file: Some(1009),
        ..Options::default()
    };
    let gateway = Gateway::start(&upstreams(&mock), folder.path(), &options);
    let ids = ask(&gateway, 20).await;
    let lost = gateway.metric("omniglot_journal_lost_total").await;
    let waiting = gateway.metric("omniglot_journal_waiting").await;
    let waiting = waiting.expect("a count");
    assert!((1.0..10.0).contains(&waiting), "{waiting}");
    assert_eq!(lost, Some(20.0 - waiting));
    gateway.leave();
    let kept = left_in(folder.path()).await;
    let kept: Vec<String> = kept.into_iter().map(|receipt| receipt.id).collect();
    assert_eq!(kept, ids[..kept.len()]);
    assert_eq!(kept.len() as f64, waiting);
}
