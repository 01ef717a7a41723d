//! A journal over several processes, and on a disk that is full.

use std::process::{Command, Stdio};

use omniglot_test_support::{Gateway, Mock, free_address, omniglot, post, request};

use crate::usage_store::{UsageStore, metric_value, stop, upstreams, wait_until_flushed};

async fn send_request(gateway: &Gateway, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let (path, body) = request("chat", "priced-chat", "hello", false);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        ids.push(response.header("x-request-id").to_owned());
    }
    ids
}

/// The ids in a store, in their order.
async fn stored(store: &UsageStore) -> Vec<String> {
    let rows = store.rows().await;
    rows.into_iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn the_next_process_flushes_what_an_unreachable_store_did_not_take() {
    let mock = Mock::start();
    let closed = UsageStore::unreachable();
    let gateway = Gateway::start(&closed.config(&upstreams(&mock)));
    let mut ids = send_request(&gateway, 5).await;
    for (name, value) in [("waiting", 5.0), ("carried_total", 0.0)] {
        let name = format!("omniglot_journal_{name}");
        assert_eq!(metric_value(&gateway, &name).await, value, "{name}");
    }
    let bytes = metric_value(&gateway, "omniglot_journal_bytes").await;
    assert!(bytes > 1000.0, "{bytes:?}");
    stop(gateway);

    let store = closed.with_sqlite();
    let gateway = Gateway::start(&store.config(&upstreams(&mock)));
    // It is there before the first request is.
    assert_eq!(stored(&store).await.len(), 5);
    ids.extend(send_request(&gateway, 5).await);
    wait_until_flushed(&gateway).await;
    for (name, value) in [
        ("carried_total", 10.0),
        ("nearly_full", 0.0),
        ("limit_bytes", f64::from(1 << 30)),
    ] {
        let name = format!("omniglot_journal_{name}");
        assert_eq!(metric_value(&gateway, &name).await, value, "{name}");
    }
    let behind = metric_value(&gateway, "omniglot_journal_behind_seconds").await;
    assert!(behind >= 0.0);
    stop(gateway);
    ids.sort();
    assert_eq!(stored(&store).await, ids);
}

#[test]
fn a_second_process_with_the_same_journal_exits_with_an_error() {
    let mock = Mock::start();
    let store = UsageStore::in_sqlite();
    let config = store.config(&upstreams(&mock));
    let first = Gateway::start(&config);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("second.yaml");
    let config = config
        .replace("LISTEN", &free_address().to_string())
        .replace("ADMIN", &free_address().to_string());
    std::fs::write(&file, config).expect("a config");
    let second = omniglot().args(["run", "-c"]).arg(&file).output();
    let second = second.expect("it runs");
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8(second.stderr).expect("text");
    let path = store.journal().display().to_string();
    for words in ["another process uses it", "journal.path", &path] {
        assert!(text.contains(words), "{words} in {text}");
    }
    stop(first);
}

/// No file of the process may be longer than this: no multiple of a line's length, so that some
/// part of a line still fits.
fn limit_files(command: &mut Command) {
    let mut limited = Command::new("prlimit");
    limited.arg("--fsize=1009").arg(command.get_program());
    limited.args(command.get_args());
    // Where the log is a file, it would count as one too.
    limited.stderr(Stdio::null());
    *command = limited;
}

#[tokio::test]
async fn a_full_disk_loses_usage_records_but_fails_no_request() {
    let mock = Mock::start();
    let closed = UsageStore::unreachable();
    let gateway = Gateway::start_with(&closed.config(&upstreams(&mock)), limit_files);
    let ids = send_request(&gateway, 20).await;
    let lost = metric_value(&gateway, "omniglot_journal_lost_total").await;
    let waiting = metric_value(&gateway, "omniglot_journal_waiting").await;
    assert!((1.0..20.0).contains(&waiting), "{waiting}");
    assert_eq!(lost, 20.0 - waiting);
    stop(gateway);

    let store = closed.with_sqlite();
    let gateway = Gateway::start(&store.config(&upstreams(&mock)));
    wait_until_flushed(&gateway).await;
    stop(gateway);
    let kept = stored(&store).await;
    assert_eq!(kept.len() as f64, waiting);
    assert!(kept.iter().all(|id| ids.contains(id)));
}
