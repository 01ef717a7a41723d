//! PostgreSQL is stopped and started again under load: no request fails and no usage record is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use omniglot_test_support::{Gateway, Mock, Postgres, wait_until};

use crate::load::{CompletedRequests, send_requests};
use crate::usage_store::{UsageStore, metric_value, stop, upstreams, wait_until_flushed};

/// How many replies come before, during and after, at the least.
const SOME: usize = 200;

async fn stopped_for(postgres: &Postgres, time: Duration) {
    let mock = Mock::start();
    let store = UsageStore::at(postgres.url(&postgres.database()));
    let gateway = Gateway::start(&store.config(&upstreams(&mock)));
    let whole = Arc::new(CompletedRequests::default());
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let base = gateway.url("");
    let asking = send_requests(&base, 0, &whole, move |_| is_over.load(Ordering::Acquire));
    let watching = async {
        let some_more = async || {
            let before = whole.count();
            wait_until("more replies", async || whole.count() >= before + SOME).await;
        };
        some_more().await;
        postgres.stop();
        wait_until("the store is away", async || {
            gateway.metric("omniglot_store_up").await == ["omniglot_store_up{} 0"]
        })
        .await;
        tokio::time::sleep(time).await;
        some_more().await;
        let waiting = metric_value(&gateway, "omniglot_journal_waiting").await;
        assert!(waiting >= SOME as f64, "{waiting}");
        postgres.start_again();
        some_more().await;
        wait_until("the store is in use again", async || {
            gateway.metric("omniglot_store_up").await == ["omniglot_store_up{} 1"]
        })
        .await;
        over.store(true, Ordering::Release);
        waiting
    };
    let (cut_off, waiting) = tokio::join!(asking, watching);
    assert_eq!(cut_off, 0, "every request is answered");
    wait_until_flushed(&gateway).await;
    stop(gateway);
    let rows = store.rows().await;
    let ids: Vec<String> = rows.into_iter().map(|row| row.id).collect();
    assert!(ids == whole.sorted(), "{} of {}", ids.len(), whole.count());
    println!("{} replies, {waiting} receipts had to wait", whole.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_database_stopped_under_load_loses_no_request_and_no_usage_record() {
    let postgres = Postgres::start();
    stopped_for(&postgres, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_database_stopped_for_a_minute_loses_nothing() {
    let postgres = Postgres::start();
    stopped_for(&postgres, Duration::from_secs(60)).await;
}
