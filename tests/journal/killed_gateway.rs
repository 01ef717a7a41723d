//! A gateway that is killed under load fifty times: the store has a usage record of every complete response.

use std::sync::Arc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use omniglot::model::Money;
use omniglot_test_support::{Gateway, Mock};

use crate::load::{COST, CompletedRequests, NAME, send_requests};
use crate::usage_store::{UsageStore, stop, upstreams, wait_until_flushed};

const KILLS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_complete_response_has_one_usage_record() {
    let mock = Mock::start();
    let store = UsageStore::in_sqlite();
    let config = store.config(&upstreams(&mock));
    let whole = Arc::new(CompletedRequests::default());
    let mut cut_off = 0;
    for round in 0..KILLS {
        let gateway = Gateway::start(&config);
        let process = i32::try_from(gateway.process.id()).expect("an id");
        let process = Pid::from_raw(process);
        let last = whole.count() + 1 + round * 3;
        // Whoever has read the last of so many replies kills the gateway in that moment.
        let kill_at_last = move |count| {
            if count == last {
                kill(process, Signal::SIGKILL).expect("it runs");
            }
            false
        };
        cut_off += send_requests(&gateway.url(""), round * 7, &whole, kill_at_last).await;
    }
    let gateway = Gateway::start(&config);
    wait_until_flushed(&gateway).await;
    stop(gateway);

    let whole = whole.sorted();
    assert!(whole.len() > KILLS * KILLS, "{} replies", whole.len());
    let rows = store.rows().await;
    for row in &rows {
        assert_eq!((row.status, row.input, row.output), (200, 1000, 50));
        assert_eq!(Some(row.cost), Money::parse(COST), "{row:?}");
        assert!(!row.estimated, "{row:?}");
    }
    // Both are sorted, and an id is the key of a row: it cannot be there twice.
    let is_missing = |id: &&String| rows.binary_search_by(|row| row.id.cmp(id)).is_err();
    let missing: Vec<&String> = whole.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "of {}: {missing:?}", whole.len());
    // Beside those there are only some that were written down when their reply was cut off.
    let more = rows.len() - whole.len();
    assert!(more <= cut_off, "{more} of {cut_off}");
    let started = mock.seen(NAME, "started").await;
    assert!(rows.len() as u64 <= started, "{} of {started}", rows.len());
    println!(
        "{} replies, {more} more rows, {cut_off} cut off",
        whole.len()
    );
}
