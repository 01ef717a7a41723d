//! What becomes of the slices of a cap: when a gateway leaves, is killed, or has lost its store.

use omniglot_test_support::{Database, Postgres, TcpProxy, send, wait_until};
use rstest::rstest;

use crate::{Team, ask, asking, money, spent, until_carried, use_up};

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn one_gateway_alone_can_spend_all_of_a_cap_at_once(#[case] database: Database) {
    let team = Team::new(database);
    let gateway = team.start(0);
    for _ in 0..10 {
        let answer = ask(&gateway, 100).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let answer = ask(&gateway, 1).await;
    let told = "the API key `shared` has reached its spending cap of 1; it does not reset";
    assert_eq!(answer.error("chat"), told);
    until_carried(&[gateway]).await;
    assert_eq!(spent(&team.open().await).await, money("1"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_gives_back_what_it_did_not_use(#[case] database: Database) {
    let team = Team::new(database);
    let (mut one, other) = (team.start(0), team.start(1));
    assert_eq!(ask(&one, 400).await.status, 200);
    until_carried(std::slice::from_ref(&one)).await;
    // It has more than it used, ahead of the next request.
    let answer = ask(&other, 600).await;
    let told = answer.error("chat");
    assert!(told.contains("by other gateways"), "{told}");
    assert_eq!(answer.header("retry-after"), "1");
    one.process.signal("TERM");
    assert_eq!(one.process.wait().code(), Some(0));
    assert_eq!(ask(&other, 600).await.status, 200);
    assert_eq!(ask(&other, 1).await.status, 429);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_after_a_killed_one_has_all_that_is_left(#[case] database: Database) {
    let team = Team::new(database);
    let one = team.start(0);
    assert_eq!(ask(&one, 300).await.status, 200);
    drop(one);
    let again = team.start(0);
    let answer = ask(&again, 700).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(ask(&again, 1).await.status, 429);
    until_carried(&[again]).await;
    assert_eq!(spent(&team.open().await).await, money("1"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_one_may_have_spent_is_not_spent_again(#[case] database: Database) {
    let team = Team::new(database);
    let (one, other) = (team.start(0), team.start(1));
    let words = "mock:wait=never mock:name=begun";
    let begun = tokio::spawn(send(asking(&one, "chat", words, 400, true)));
    team.mock.until_seen("begun", "started", 1).await;
    drop(one);
    begun.abort();
    let answer = ask(&other, 700).await;
    let told = answer.error("chat");
    assert!(told.contains("by other gateways"), "{told}");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn without_the_store_a_slice_is_used_and_no_more() {
    let postgres = Postgres::shared();
    let proxy = TcpProxy::to(postgres.port()).await;
    proxy.open().await;
    let database = postgres.database();
    let team = Team::on(omniglot_test_support::postgres_url(
        proxy.address.port(),
        &database,
    ));
    let gateways = [team.start(0), team.start(1)];
    for gateway in &gateways {
        assert_eq!(ask(gateway, 10).await.status, 200);
    }
    proxy.close();
    // The slice in hand was 50 and one more request, and what may go on without asking is as much again.
    for gateway in &gateways {
        let mut served = 0;
        let told = loop {
            let answer = ask(gateway, 10).await;
            if answer.status != 200 {
                assert_eq!(answer.status, 429);
                assert_eq!(answer.header("retry-after"), "1");
                break answer.error("chat");
            }
            served += 1;
            assert!(served <= 12, "it goes on for ever");
        };
        assert!(served > 0, "known keys go on");
        assert!(told.contains("cannot be asked for now"), "{told}");
    }
    proxy.open().await;
    for gateway in &gateways {
        wait_until("the store is there again", async || {
            gateway.metric("omniglot_store_up").await == ["omniglot_store_up{} 1"]
        })
        .await;
    }
    // Larger ones would have larger slices, also of what may go on should it be slow once more.
    use_up(&gateways, &[10, 1]).await;
    until_carried(&gateways).await;
    // The store did not know of what each of them took without asking: 50 tokens.
    let spent = spent(&team.open().await).await;
    assert!(money("1") <= spent && spent <= money("1.1"), "{spent}");
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn a_slice_that_nobody_uses_comes_back(#[case] database: Database) {
    let team = Team::new(database);
    let (one, other) = (team.start(0), team.start(1));
    assert_eq!(ask(&one, 300).await.status, 200);
    wait_until("the other has all that is left", async || {
        ask(&other, 700).await.status == 200
    })
    .await;
    until_carried(&[one, other]).await;
    assert_eq!(spent(&team.open().await).await, money("1"));
}
