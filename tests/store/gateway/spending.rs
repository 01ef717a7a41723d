//! Spending from before a restart still counts, for keys of the config and of the store.

use omniglot_test_support::{Database, Gateway, KEY, Mock, Postgres, wait_until};
use rstest::rstest;
use serde_json::Value;

use super::{command, config, create, is_up, send_request, store_behind_proxy};
use crate::TestStore;

async fn spend(gateway: &Gateway, secret: &str, tokens: u64) {
    let response = send_request(gateway, "chat", secret, tokens).await;
    assert_eq!(response.status, 200, "{}", response.text());
}

/// What a key has left, in thousandths; asked with a request that no key can pay.
async fn has_left(gateway: &Gateway, secret: &str, thousandths: u64) -> bool {
    let response = send_request(gateway, "chat", secret, 1_000_000).await;
    assert_eq!(response.status, 429, "{}", response.text());
    let left = format!("has {} left", thousandths as f64 / 1000.0);
    response.error("chat").contains(&left)
}

fn stop(mut gateway: Gateway) {
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

fn kill(mut gateway: Gateway) {
    gateway.process.signal("KILL");
    gateway.process.wait();
}

/// However the process ended, and whether the store had its receipts by then or not.
#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn spending_survives_a_restart(#[case] database: Database) {
    let mock = Mock::start();
    let test_store = TestStore::new(database);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let capped = ["dev", "--cap", "0.8", "--reset", "monthly"];
    let secret = create(&gateway, &capped);
    spend(&gateway, KEY, 123).await;
    spend(&gateway, &secret, 100).await;
    stop(gateway);

    let gateway = Gateway::start(&config(&mock, &test_store));
    assert!(has_left(&gateway, KEY, 877).await);
    assert!(has_left(&gateway, &secret, 700).await);
    spend(&gateway, KEY, 200).await;
    spend(&gateway, &secret, 400).await;
    // Most likely they are in the journal only.
    kill(gateway);

    let gateway = Gateway::start(&config(&mock, &test_store));
    assert!(has_left(&gateway, KEY, 677).await);
    assert!(has_left(&gateway, &secret, 300).await);
    spend(&gateway, &secret, 300).await;
    assert_eq!(send_request(&gateway, "chat", &secret, 1).await.status, 429);
    wait_until("the store has it", async || {
        let listed = command(&gateway, &["key", "list", "--json"]);
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        listed[0]["spent"] == 0.8
    })
    .await;
    // What this process spends is written down too; that must not count again when its key changes.
    command(&gateway, &["key", "set", "dev", "--cap", "0.9"]);
    wait_until("the higher cap holds", async || {
        send_request(&gateway, "chat", &secret, 100).await.status == 200
    })
    .await;
    assert_eq!(send_request(&gateway, "chat", &secret, 1).await.status, 429);
    stop(gateway);
    usage(&mock, &test_store);
}

/// What the command line says of all that.
fn usage(mock: &Mock, test_store: &TestStore) {
    let gateway = Gateway::start(&config(mock, test_store));
    let by_key = ["usage", "--csv", "--by", "key", "--since", "1d"];
    let by_key = command(&gateway, &by_key);
    let expected = [
        "key,requests,estimated,input,cached,cache_written,output,thinking,images,cost",
        "all,2,0,10,0,0,323,0,0,0.323",
        "dev,4,0,20,0,0,900,0,0,0.9",
    ];
    assert_eq!(by_key.lines().collect::<Vec<_>>(), expected);
    let by_model = command(&gateway, &["usage", "--json", "--by", "model"]);
    let by_model: Value = serde_json::from_str(&by_model).expect("JSON");
    assert_eq!(by_model[0]["model"], "chat");
    assert_eq!(by_model[0]["requests"], 6);
    assert_eq!(by_model[0]["cost"], 1.223);
    assert_eq!(by_model.as_array().map(Vec::len), Some(1));
    let by_day = command(&gateway, &["usage", "--by", "day"]);
    let last = by_day.lines().last().expect("a line");
    assert!(last.contains("1.223"), "{by_day}");
    let listed = command(&gateway, &["key", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed[0]["spent"], 0.9);
    assert_eq!(listed[0]["spending_cap"], 0.9);
}

/// Receipts that no process could bring to the store count as soon as one can, and not before all
/// of them are there.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn spending_during_an_outage_counts_when_the_store_is_up() {
    let postgres = Postgres::shared();
    let mock = Mock::start();
    let (proxy, test_store) = store_behind_proxy(postgres).await;
    proxy.open().await;
    let gateway = Gateway::start(&config(&mock, &test_store));
    let secret = create(&gateway, &["dev", "--cap", "0.8"]);
    spend(&gateway, &secret, 50).await;
    proxy.close();
    wait_until("the store is away", async || is_up(&gateway, 0).await).await;
    spend(&gateway, KEY, 300).await;
    spend(&gateway, &secret, 150).await;
    kill(gateway);

    // Still away: the key of the config is served, and what it has spent is not known.
    let gateway = Gateway::start(&config(&mock, &test_store));
    assert!(has_left(&gateway, KEY, 1000).await);
    spend(&gateway, KEY, 200).await;
    proxy.open().await;
    wait_until("all of it counts", async || {
        has_left(&gateway, KEY, 500).await
    })
    .await;
    assert!(has_left(&gateway, &secret, 600).await);
    proxy.close();
    wait_until("the store is away", async || is_up(&gateway, 0).await).await;
    spend(&gateway, &secret, 599).await;
    kill(gateway);

    // There again: it counts from the first request on.
    proxy.open().await;
    let gateway = Gateway::start(&config(&mock, &test_store));
    assert!(has_left(&gateway, &secret, 1).await);
    assert!(has_left(&gateway, KEY, 500).await);
}
