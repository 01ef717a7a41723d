//! Leases of several processes, at fixed times.

use jiff::{SignedDuration, Timestamp};
use omniglot::config::Reset;
use omniglot::model::{CapKind, LeaseGrant, LeaseRequest, Usage, UsageDetails, UsageRecord};
use omniglot::store::{CapLeaseRequest, KeyChange, LEASED_FOR, LeaseHolder, Store};
use omniglot_test_support::Database;
use rstest::rstest;

use crate::{TestStore, money};

fn noon() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

fn later(milliseconds: i64) -> Timestamp {
    noon() + SignedDuration::from_millis(milliseconds)
}

fn with_holder(store: &Store, id: &str, journal: &str) -> Store {
    store.clone().with_holder(LeaseHolder {
        id: id.to_owned(),
        journal: journal.to_owned(),
        began: noon(),
    })
}

async fn lease(
    store: &Store,
    reset: Reset,
    floor: &str,
    desired: &str,
    now: Timestamp,
) -> LeaseGrant {
    let ask = CapLeaseRequest {
        kind: CapKind::Key,
        id: "dev".into(),
        reset,
        lease: LeaseRequest {
            cap: money("10"),
            floor: money(floor),
            minimum: money("0.5"),
            desired: money(desired),
        },
    };
    let given = store.lease(&[ask], now).await.expect("an answer");
    given[0]
}

fn receipt(id: &str, at: Timestamp, cost: &str) -> UsageRecord<'static> {
    UsageRecord {
        id: id.to_owned().into(),
        at: at.as_millisecond(),
        key_id: "dev".into(),
        key: "dev".into(),
        model: "m".into(),
        upstream: "up".into(),
        format: "chat".into(),
        stream: false,
        status: 200,
        usage: Usage::default(),
        images: 0,
        estimated: false,
        cost: money(cost),
        details: UsageDetails::default(),
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_lease_counts_for_other_processes_until_it_expires(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (one, other) = (with_holder(&store, "1", "a"), with_holder(&store, "2", "b"));
    let given = lease(&one, Reset::Never, "0", "8", noon()).await;
    assert_eq!(
        (given.amount, given.leased_elsewhere),
        (money("8"), money("0"))
    );
    let given = lease(&other, Reset::Never, "0", "8", later(1)).await;
    assert_eq!(
        (given.amount, given.leased_elsewhere),
        (money("2"), money("8"))
    );
    // The same question again is no second lease.
    let given = lease(&one, Reset::Never, "0", "8", later(2)).await;
    assert_eq!(
        (given.amount, given.leased_elsewhere),
        (money("8"), money("2"))
    );
    assert_eq!(one.renew_leases(later(20_000)).await.expect("renewed"), 1);
    let over = 20_000 + LEASED_FOR;
    let given = lease(&other, Reset::Never, "2", "8", later(over - 1)).await;
    assert_eq!(
        (given.amount, given.leased_elsewhere),
        (money("2"), money("8"))
    );
    let given = lease(&other, Reset::Never, "2", "8", later(over)).await;
    assert_eq!(
        (given.amount, given.leased_elsewhere),
        (money("10"), money("0"))
    );
    assert_eq!(other.renew_leases(later(over)).await.expect("renewed"), 1);
    // It was thought dead: what it has spent still counts, and it gets nothing more.
    assert_eq!(one.renew_leases(later(over)).await.expect("none"), 0);
    let given = lease(&one, Reset::Never, "3", "5", later(over)).await;
    assert_eq!(
        (given.amount, given.leased_elsewhere),
        (money("3"), money("10"))
    );
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn recorded_usage_counts_once(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (one, other) = (with_holder(&store, "1", "a"), with_holder(&store, "2", "b"));
    lease(&one, Reset::Monthly, "0", "6", noon()).await;
    let receipts = [
        receipt("1", later(5), "2"),
        // Of a process that had the journal before, and of the month before.
        receipt("2", later(-5), "1"),
        receipt("3", "2026-10-31T12:00:00Z".parse().expect("a time"), "50"),
    ];
    for new in [3, 0] {
        assert_eq!(one.record(&receipts).await.expect("recorded"), new);
        let given = lease(&other, Reset::Monthly, "0", "0.5", later(9)).await;
        assert_eq!(
            (given.spent, given.leased_elsewhere),
            (money("3"), money("4"))
        );
    }
    // All of it is spent: nothing is left of the lease.
    one.record(&[receipt("4", later(6), "4.5")])
        .await
        .expect("recorded");
    let given = lease(&other, Reset::Monthly, "0", "9", later(10)).await;
    assert_eq!(
        (given.spent, given.leased_elsewhere),
        (money("7.5"), money("0"))
    );
    assert_eq!(given.amount, money("2.5"));
    // A new month has nothing to do with it.
    let december = "2026-12-01T00:00:00Z".parse().expect("a time");
    let given = lease(&one, Reset::Monthly, "0", "10", december).await;
    assert_eq!((given.spent, given.amount), (money("0"), money("10")));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_successor_takes_over_the_leases_of_its_journal(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (one, other) = (with_holder(&store, "1", "a"), with_holder(&store, "2", "b"));
    lease(&one, Reset::Daily, "0", "3", noon()).await;
    lease(&other, Reset::Daily, "0", "4", noon()).await;
    let next = with_holder(&store, "3", "a");
    next.take_over().await.expect("in its place");
    let given = lease(&next, Reset::Daily, "0", "10", noon()).await;
    assert_eq!(
        (given.amount, given.leased_elsewhere),
        (money("6"), money("4"))
    );
    // What is given back is there for all.
    let given = lease(&next, Reset::Daily, "0", "0", noon()).await;
    assert_eq!(given.amount, money("0"));
    let given = lease(&other, Reset::Daily, "4", "9", noon()).await;
    assert_eq!(
        (given.amount, given.leased_elsewhere),
        (money("10"), money("0"))
    );
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_leases_never_exceed_the_cap(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let all: Vec<_> = (0..12)
        .map(|number| {
            let process = with_holder(&store, &number.to_string(), &number.to_string());
            tokio::spawn(async move { lease(&process, Reset::Never, "0", "1.5", noon()).await })
        })
        .collect();
    let mut sum = money("0");
    for one in all {
        sum += one.await.expect("no panic").amount;
    }
    assert_eq!(sum, money("10"));
}

/// A lease of an account's cap counts what all of its keys have spent, and shrinks with what any of them spends.
#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_lease_of_an_account_is_of_all_its_keys(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (one, other) = (with_holder(&store, "1", "a"), with_holder(&store, "2", "b"));
    let mut keys = Vec::new();
    for name in ["first", "second"] {
        let change = KeyChange {
            account: Some("team".to_owned()),
            ..KeyChange::default()
        };
        let made = store.create_key(name, &change).await;
        keys.push(made.expect("a key").0.id);
    }
    let account = store.account("team").await.expect("an answer");
    let account = account.expect("the account").id;
    let ask = |desired: &str| CapLeaseRequest {
        kind: CapKind::Account,
        id: account.clone(),
        reset: Reset::Never,
        lease: LeaseRequest {
            cap: money("10"),
            floor: money("0"),
            minimum: money("0"),
            desired: money(desired),
        },
    };
    one.lease(&[ask("6")], noon()).await.expect("a lease");
    let of_key = |id: &str, key: &String, cost: &str| UsageRecord {
        key_id: key.clone().into(),
        ..receipt(id, later(5), cost)
    };
    let records = [
        of_key("1", &keys[0], "2"),
        of_key("2", &keys[1], "1.5"),
        // Of a key that is not the account's.
        receipt("3", later(5), "5"),
    ];
    assert_eq!(one.record(&records).await.expect("recorded"), 3);
    let given = other.lease(&[ask("9")], later(9)).await.expect("a lease")[0];
    let expected = (money("3.5"), money("2.5"), money("4"));
    assert_eq!(
        (given.spent, given.leased_elsewhere, given.amount),
        expected
    );
    let spent = store.account_spending(&account, Timestamp::MAX, later(9));
    let spent = spent.await.expect("sums");
    assert_eq!((spent.total, spent.day), (money("3.5"), money("3.5")));
    // A process that began before the records counts them itself.
    let spent = store.account_spending(&account, noon(), later(9)).await;
    assert_eq!(spent.expect("sums").total, money("0"));
}
