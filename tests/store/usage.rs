//! Usage records in the store: each counted once, with exact sums.

use jiff::Timestamp;
use omniglot::model::{Money, Spending, Usage, UsageDetails, UsageRecord};
use omniglot::store::{RequestCursor, RequestFilter, UsageFilter, UsageGrouping, UsageSum};
use omniglot_test_support::Database;
use rstest::rstest;
use sqlx::Executor as _;

use crate::{TestStore, money};

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn receipt(id: &str, when: &str, key: &str, cost: &str) -> UsageRecord<'static> {
    UsageRecord {
        id: id.to_owned().into(),
        at: at(when).as_millisecond(),
        key_id: key.to_owned().into(),
        key: key.to_owned().into(),
        model: "m".into(),
        upstream: "up".into(),
        format: "chat".into(),
        stream: true,
        status: 200,
        usage: Usage {
            input: 10,
            output: 3,
            ..Usage::default()
        },
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
async fn nothing_is_counted_twice(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let noon = "2026-11-15T12:00:00Z";
    let first = [
        receipt("a", noon, "dev", "0.1"),
        receipt("b", noon, "dev", "0.2"),
        receipt("a", noon, "dev", "0.1"),
    ];
    assert_eq!(store.record(&first).await.expect("recorded"), 2);
    let second = [
        receipt("b", noon, "dev", "0.2"),
        receipt("c", noon, "ops", "0.3"),
    ];
    assert_eq!(store.record(&second).await.expect("recorded"), 1);
    assert_eq!(store.record(&second).await.expect("recorded"), 0);
    assert_eq!(store.record(&[]).await.expect("recorded"), 0);
    let sums = store
        .usage_sums(UsageGrouping::Key, None)
        .await
        .expect("sums");
    let sum = |requests: u64, cost: &str| UsageSum {
        requests,
        input: 10 * requests,
        output: 3 * requests,
        cost: money(cost),
        ..UsageSum::default()
    };
    let expected = [
        ("dev".to_owned(), sum(2, "0.3")),
        ("ops".to_owned(), sum(1, "0.3")),
    ];
    assert_eq!(sums, expected);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn sums_of_small_and_large_amounts_are_exact(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let least = money("0.000000001").per_token();
    let large = money("999999999.999999999").per_token().times(u64::MAX);
    let mut receipts: Vec<UsageRecord<'static>> = (0..1203)
        .map(|number| UsageRecord {
            cost: least,
            ..receipt(&number.to_string(), "2026-11-15T12:00:00Z", "dev", "0")
        })
        .collect();
    receipts.push(UsageRecord {
        cost: large,
        usage: Usage {
            input: u64::MAX,
            ..Usage::default()
        },
        ..receipt("large", "2026-11-15T12:00:00Z", "dev\0", "0")
    });
    assert_eq!(store.record(&receipts).await.expect("recorded"), 1204);
    let again = [UsageRecord {
        id: "larger".into(),
        ..receipts[1203].clone()
    }];
    assert_eq!(store.record(&again).await.expect("recorded"), 1);
    let sums = store
        .usage_sums(UsageGrouping::Model, None)
        .await
        .expect("sums");
    let small: Money = (0..1203).map(|_| least).sum();
    assert_eq!(sums[0].1.cost, small + large + large);
    assert_eq!(sums[0].1.requests, 1205);
    assert!(sums[0].1.input >= i64::MAX as u64);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_lose_no_usage_record(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..10 {
                    // Every receipt is brought by two of them.
                    let id = format!("{}-{number}", writer / 2);
                    let one = receipt(&id, "2026-11-15T12:00:00Z", "dev", "0.001");
                    store.record(&[one]).await.expect("recorded");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    let sums = store
        .usage_sums(UsageGrouping::Day, None)
        .await
        .expect("sums");
    assert_eq!(sums.len(), 1);
    assert_eq!(sums[0].0, "2026-11-15");
    assert_eq!((sums[0].1.requests, sums[0].1.cost), (40, money("0.04")));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn sums_start_at_a_day(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let days = [
        "2026-10-31T23:59:59Z",
        "2026-11-01T00:00:00Z",
        "2026-11-15T12:00:00Z",
    ];
    let receipts: Vec<_> = days
        .iter()
        .map(|day| receipt(day, day, "dev", "1"))
        .collect();
    store.record(&receipts).await.expect("recorded");
    for (since, expected) in [("2026-10-31", 3), ("2026-11-01", 2), ("2026-11-16", 0)] {
        let since = since.parse().expect("a day");
        let sums = store
            .usage_sums(UsageGrouping::Key, Some(since))
            .await
            .expect("sums");
        let requests: u64 = sums.iter().map(|(_, sum)| sum.requests).sum();
        assert_eq!(requests, expected, "{since}");
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn spending_is_that_of_the_current_periods_before_the_process_started(
    #[case] database: Database,
) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let receipts = [
        receipt("1", "2026-10-31T12:00:00Z", "dev", "1"),
        receipt("2", "2026-11-01T12:00:00Z", "dev", "2"),
        receipt("3", "2026-11-15T12:00:00Z", "dev", "4"),
        receipt("4", "2026-11-15T13:00:00Z", "dev", "8"),
        receipt("5", "2026-11-15T12:00:00Z", "ops", "16"),
        receipt("6", "2026-11-15T12:00:00Z", "free", "0"),
    ];
    store.record(&receipts).await.expect("recorded");
    let spending = |ever: &str, month: &str, day: &str| Spending {
        total: money(ever),
        month: money(month),
        day: money(day),
    };
    let now = at("2026-11-15T14:00:00Z");
    for (began, expected) in [
        ("2026-11-15T14:00:00Z", spending("15", "14", "12")),
        // It made the last one itself, and need not be told.
        ("2026-11-15T12:30:00Z", spending("7", "6", "4")),
        ("2026-11-10T00:00:00Z", spending("3", "2", "0")),
        ("2026-10-01T00:00:00Z", spending("0", "0", "0")),
    ] {
        let all = store
            .spending(None, at(began), now)
            .await
            .expect("spending");
        assert_eq!(all["dev"], expected, "{began}");
        let one = store.spending(Some("dev"), at(began), now).await;
        let one = one.expect("spending");
        assert_eq!((one.len(), one["dev"]), (1, expected), "{began}");
    }
    let later = at("2026-12-01T00:00:00Z");
    let all = store.spending(None, later, later).await.expect("spending");
    assert_eq!(all["dev"], spending("15", "0", "0"));
    assert_eq!(all["ops"], spending("16", "0", "0"));
    assert!(!all.contains_key("free"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn requests_are_read_again_as_they_were_recorded(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let details = UsageDetails {
        prices: "input=1.25 output=10".into(),
        priced: 1,
        audio: 2,
        took: 345,
        first_byte: 67,
        upstream_format: "messages".into(),
        earlier: r#"[{"upstream":"a","error":"overloaded","ms":5}]"#.into(),
        dropped: "seed".into(),
        adjusted: "temperature".into(),
    };
    let full = UsageRecord {
        status: 500,
        estimated: true,
        details,
        ..receipt("full", "2026-11-16T08:00:00Z", "ops", "0.25")
    };
    let mut records: Vec<UsageRecord<'static>> = (0..7)
        .map(|number| {
            let key = if number % 2 == 0 { "dev" } else { "ops" };
            receipt(&format!("r{number}"), "2026-11-15T12:00:00Z", key, "0.1")
        })
        .collect();
    records.push(full.clone());
    assert_eq!(store.record(&records).await.expect("recorded"), 8);
    let read = store.request("full").await.expect("an answer");
    assert_eq!(read.expect("a request"), full);
    assert_eq!(store.request("none").await.expect("an answer"), None);

    let everything = RequestFilter {
        keys: None,
        model: None,
        is_failed: false,
        is_estimated: false,
        from: 0,
        until: i64::MAX,
        after: None,
    };
    let list = async |filter: &RequestFilter, limit: usize| -> Vec<String> {
        let found = store.requests(filter, limit).await.expect("requests");
        found.iter().map(|record| record.id.to_string()).collect()
    };
    let all = ["full", "r6", "r5", "r4", "r3", "r2", "r1", "r0"];
    assert_eq!(list(&everything, 100).await, all);
    // Page by page, of some keys and of all, also among those of one moment.
    for keys in [None, Some(vec!["dev".to_owned(), "ops".to_owned()])] {
        let mut found = Vec::new();
        let mut filter = RequestFilter {
            keys,
            ..everything.clone()
        };
        loop {
            let page = store.requests(&filter, 3).await.expect("requests");
            let Some(last) = page.last() else {
                break;
            };
            filter.after = Some(RequestCursor {
                ended: last.at,
                id: last.id.to_string(),
            });
            found.extend(page.iter().map(|record| record.id.to_string()));
        }
        assert_eq!(found, all);
    }
    let of_dev = RequestFilter {
        keys: Some(vec!["dev".to_owned()]),
        ..everything.clone()
    };
    assert_eq!(list(&of_dev, 100).await, ["r6", "r4", "r2", "r0"]);
    let failed = RequestFilter {
        is_failed: true,
        is_estimated: true,
        ..everything.clone()
    };
    assert_eq!(list(&failed, 100).await, ["full"]);
    let before = RequestFilter {
        until: at("2026-11-16T00:00:00Z").as_millisecond(),
        model: Some("m".to_owned()),
        ..everything.clone()
    };
    assert_eq!(list(&before, 2).await, ["r6", "r5"]);
    let nobody = RequestFilter {
        keys: Some(Vec::new()),
        ..everything
    };
    assert!(list(&nobody, 100).await.is_empty());

    let filter = UsageFilter {
        from: "2026-11-15".parse().expect("a day"),
        until: "2026-11-16".parse().expect("a day"),
        account: None,
        key: Some("ops".to_owned()),
        model: None,
    };
    let report = store.usage_report(&filter).await.expect("a report");
    assert_eq!(report.total.cost, money("0.55"));
    let days: Vec<(&str, u64)> = report
        .days
        .iter()
        .map(|(day, sum)| (day.as_str(), sum.requests))
        .collect();
    assert_eq!(days, [("2026-11-15", 3), ("2026-11-16", 1)]);
    assert_eq!(report.models["m"], report.total);
    let of_account = UsageFilter {
        account: Some("default".to_owned()),
        ..filter
    };
    let report = store.usage_report(&of_account).await.expect("a report");
    assert_eq!(report.total.requests, 0, "it has no such key");
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn days_that_are_added_up_give_the_same_report(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let mut records = Vec::new();
    for day in ["2026-09-01", "2026-09-02", "2026-09-20"] {
        for number in 0..70 {
            let (id, noon) = (format!("{day}-{number}"), format!("{day}T12:00:00Z"));
            let key = format!("key-{}", number % 60);
            records.push(UsageRecord {
                model: format!("model-{}", number % 3).into(),
                ..receipt(&id, &noon, &key, "0.000000001")
            });
        }
    }
    records[0].usage.input = 1 << 50;
    records[1].cost = money("12.5");
    store.record(&records).await.expect("recorded");
    let filter = UsageFilter {
        from: "2026-09-01".parse().expect("a day"),
        until: "2026-09-30".parse().expect("a day"),
        account: None,
        key: None,
        model: None,
    };
    let before = store.usage_report(&filter).await.expect("a report");
    assert_eq!(before.total.requests, 210);
    assert_eq!(before.total.cost, money("12.500000209"));
    assert_eq!((before.days.len(), before.models.len()), (3, 3));
    assert_eq!(before.keys.len(), 60);

    // The 20th is not over for long enough.
    let time = at("2026-09-22T08:00:00Z");
    assert_eq!(store.sum_up_days(time).await.expect("added up"), 2);
    assert_eq!(store.sum_up_days(time).await.expect("added up"), 0);
    let after = store.usage_report(&filter).await.expect("a report");
    assert_eq!(after, before);

    let late = receipt("late", "2026-09-02T23:59:59Z", "key-1", "1");
    store.record(&[late]).await.expect("recorded");
    let after = store.usage_report(&filter).await.expect("a report");
    assert_eq!(after.total.cost, money("13.500000209"));
    assert_eq!(after.days["2026-09-02"].requests, 71);
    assert_eq!(store.sum_up_days(time).await.expect("added up"), 1);
    let again = store.usage_report(&filter).await.expect("a report");
    assert_eq!(again, after);

    // Without its rows, a day that is added up is still there.
    let mut connection = test_store.connect().await;
    let delete = "DELETE FROM daily WHERE day = '2026-09-02'";
    connection.execute(delete).await.expect("deleted");
    let read = store.usage_report(&filter).await.expect("a report");
    assert_eq!(read, after);
    let one_day = UsageFilter {
        from: "2026-09-20".parse().expect("a day"),
        ..filter
    };
    let report = store.usage_report(&one_day).await.expect("a report");
    assert_eq!(report.total.requests, 70);
    assert_eq!(report.days.len(), 1);

    // Counts that no request has are capped, and hide nothing else.
    let absurd = ["x", "y"].map(|id| {
        let mut record = receipt(id, "2026-09-21T12:00:00Z", id, "2");
        record.usage.input = u64::MAX;
        record
    });
    store.record(&absurd).await.expect("recorded");
    let report = store.usage_report(&one_day).await.expect("a report");
    assert!(report.total.input >= i64::MAX as u64);
    assert_eq!(report.total.cost, money("4.00000007"));
}
