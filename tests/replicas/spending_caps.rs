//! The leases of a spending cap when a gateway exits, is killed, or has lost its store.

use omniglot_test_support::{Database, Postgres, TcpProxy, send, wait_until};
use rstest::rstest;

use crate::{
    Replicas, capped_request, money, send_request, spend_rest, total_cost, wait_until_flushed,
};

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn a_single_gateway_can_spend_the_whole_cap(#[case] database: Database) {
    let replicas = Replicas::new(database);
    let gateway = replicas.start(0);
    for _ in 0..10 {
        let response = send_request(&gateway, 100).await;
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let response = send_request(&gateway, 1).await;
    let message = "the API key `shared` has reached its spending cap of 1; it does not reset";
    assert_eq!(response.error("chat"), message);
    wait_until_flushed(&[gateway]).await;
    assert_eq!(total_cost(&replicas.open().await).await, money("1"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_exits_returns_its_unused_lease(#[case] database: Database) {
    let replicas = Replicas::new(database);
    let (mut one, other) = (replicas.start(0), replicas.start(1));
    assert_eq!(send_request(&one, 400).await.status, 200);
    wait_until_flushed(std::slice::from_ref(&one)).await;
    // It has more than it used, ahead of the next request.
    let response = send_request(&other, 600).await;
    let message = response.error("chat");
    assert!(message.contains("by other gateways"), "{message}");
    assert_eq!(response.header("retry-after"), "1");
    one.process.signal("TERM");
    assert_eq!(one.process.wait().code(), Some(0));
    assert_eq!(send_request(&other, 600).await.status, 200);
    assert_eq!(send_request(&other, 1).await.status, 429);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn the_successor_of_a_killed_gateway_gets_the_rest_of_the_cap(#[case] database: Database) {
    let replicas = Replicas::new(database);
    let one = replicas.start(0);
    assert_eq!(send_request(&one, 300).await.status, 200);
    drop(one);
    let again = replicas.start(0);
    let response = send_request(&again, 700).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(send_request(&again, 1).await.status, 429);
    wait_until_flushed(&[again]).await;
    assert_eq!(total_cost(&replicas.open().await).await, money("1"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_a_killed_gateway_is_not_spent_by_others(#[case] database: Database) {
    let replicas = Replicas::new(database);
    let (one, other) = (replicas.start(0), replicas.start(1));
    let words = "mock:wait=never mock:name=begun";
    let begun = tokio::spawn(send(capped_request(&one, "chat", words, 400, true)));
    replicas.mock.until_seen("begun", "started", 1).await;
    drop(one);
    begun.abort();
    let response = send_request(&other, 700).await;
    let message = response.error("chat");
    assert!(message.contains("by other gateways"), "{message}");
    assert_eq!(response.header("retry-after"), "1");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn without_the_store_a_gateway_spends_only_its_lease() {
    let postgres = Postgres::shared();
    let proxy = TcpProxy::to(postgres.port()).await;
    proxy.open().await;
    let database = postgres.database();
    let replicas = Replicas::on(omniglot_test_support::postgres_url(
        proxy.address.port(),
        &database,
    ));
    let gateways = [replicas.start(0), replicas.start(1)];
    for gateway in &gateways {
        assert_eq!(send_request(gateway, 10).await.status, 200);
    }
    proxy.close();
    // The slice in hand was 50 and one more request, and what may go on without asking is as much again.
    for gateway in &gateways {
        let mut served = 0;
        let message = loop {
            let response = send_request(gateway, 10).await;
            if response.status != 200 {
                assert_eq!(response.status, 429);
                assert_eq!(response.header("retry-after"), "1");
                break response.error("chat");
            }
            served += 1;
            assert!(served <= 12, "it goes on for ever");
        };
        assert!(served > 0, "known keys go on");
        assert!(message.contains("cannot be asked for now"), "{message}");
    }
    proxy.open().await;
    for gateway in &gateways {
        wait_until("the store is there again", async || {
            gateway.metric("omniglot_store_up").await == ["omniglot_store_up{} 1"]
        })
        .await;
    }
    // Larger ones would have larger slices, also of what may go on should it be slow once more.
    spend_rest(&gateways, &[10, 1]).await;
    wait_until_flushed(&gateways).await;
    // The store did not know of what each of them took without asking: 50 tokens.
    let spent = total_cost(&replicas.open().await).await;
    assert!(money("1") <= spent && spent <= money("1.1"), "{spent}");
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn an_unused_lease_is_returned(#[case] database: Database) {
    let replicas = Replicas::new(database);
    let (one, other) = (replicas.start(0), replicas.start(1));
    assert_eq!(send_request(&one, 300).await.status, 200);
    wait_until("the other has all that is left", async || {
        send_request(&other, 700).await.status == 200
    })
    .await;
    wait_until_flushed(&[one, other]).await;
    assert_eq!(total_cost(&replicas.open().await).await, money("1"));
}
