//! Stored responses: found by their own key only, kept as long as their conversation continues.

use jiff::Timestamp;
use omniglot::store::StoredResponse;
use omniglot_test_support::Database;
use rstest::rstest;

use crate::TestStore;

fn reply(previous: Option<&str>) -> StoredResponse {
    StoredResponse {
        previous: previous.map(str::to_owned),
        input: b"{\"a\":1}".to_vec(),
        input_items: 1,
        reply: b"{\"id\":\"\\u0000\"}".to_vec(),
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_response_is_stored_found_and_deleted(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let later = Timestamp::now().as_millisecond() + 60_000;
    for again in 0..2 {
        let kept = store
            .insert_response("dev", "1", reply(None), later + again)
            .await;
        kept.expect("kept");
    }
    let found = store.response("dev", "1").await.expect("an answer");
    assert_eq!(found, Some(reply(None)));
    assert_eq!(store.response("ops", "1").await.expect("an answer"), None);
    store.delete_response("ops", "1").await.expect("done");
    assert!(
        store
            .response("dev", "1")
            .await
            .expect("an answer")
            .is_some()
    );
    store.delete_response("dev", "1").await.expect("done");
    assert_eq!(store.response("dev", "1").await.expect("an answer"), None);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn continuing_a_conversation_extends_the_life_of_all_of_it(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let now = Timestamp::now().as_millisecond();
    for (key, id, previous) in [
        ("dev", "1", None),
        ("dev", "2", Some("1")),
        ("dev", "other", Some("1")),
        ("ops", "1", None),
        // One that leads to itself ends all the same.
        ("dev", "loop", Some("loop")),
    ] {
        let kept = store
            .insert_response(key, id, reply(previous), now - 1)
            .await;
        kept.expect("kept");
    }
    let next = store.insert_response("dev", "3", reply(Some("2")), now + 60_000);
    next.await.expect("kept");
    for (key, id, is_there) in [
        ("dev", "1", true),
        ("dev", "2", true),
        ("dev", "3", true),
        ("dev", "other", false),
        ("ops", "1", false),
        ("dev", "loop", false),
    ] {
        let found = store.response(key, id).await.expect("an answer");
        assert_eq!(found.is_some(), is_there, "{key} {id}");
    }
    assert_eq!(store.delete_expired_responses().await.expect("done"), 3);
    assert_eq!(store.delete_expired_responses().await.expect("done"), 0);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn an_invalid_query_does_not_block_others(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    // PostgreSQL refuses it, SQLite finds nothing.
    let strange = store.query("dev", store.response("dev", "\0")).await;
    assert!(!matches!(strange, Ok(Some(_))));
    let usual = store.query("dev", store.response("dev", "1")).await;
    assert_eq!(usual.expect("an answer"), None);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn the_responses_of_a_key_that_expire_first_are_trimmed(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let later = Timestamp::now().as_millisecond() + 60_000;
    for number in 0..10 {
        for key in ["dev", "ops"] {
            let id = number.to_string();
            let kept = store.insert_response(key, &id, reply(None), later + number);
            kept.await.expect("kept");
        }
    }
    let one = reply(None).bytes() as u64;
    let held = async |key: &str| store.response_bytes(key).await.expect("a sum");
    assert_eq!(held("dev").await, 10 * one);
    assert_eq!(held("nobody").await, 0);
    store
        .trim_responses("dev", 4 * one - 1)
        .await
        .expect("done");
    assert_eq!((held("dev").await, held("ops").await), (3 * one, 10 * one));
    for number in 0..10 {
        let found = store.response("dev", &number.to_string()).await;
        assert_eq!(found.expect("an answer").is_some(), number > 6, "{number}");
    }
    store.trim_responses("dev", 0).await.expect("done");
    assert_eq!(held("dev").await, 0);
}

#[tokio::test]
async fn the_last_part_of_the_disk_is_left_to_usage_records() {
    let test_store = TestStore::new(Database::Sqlite);
    let store = test_store.open().await;
    assert!(store.has_free_disk());
    let later = Timestamp::now().as_millisecond() + 60_000;
    let store = store.with_min_free(&test_store.settings, 1);
    assert!(store.has_free_disk());
    let kept = store.insert_response("dev", "1", reply(None), later).await;
    kept.expect("kept");
    let store = store.with_min_free(&test_store.settings, u64::MAX);
    assert!(!store.has_free_disk());
    let refused = store.insert_response("dev", "2", reply(None), later).await;
    let message = refused.expect_err("no room").to_string();
    assert!(message.contains("journal.min_free"), "{message}");
    assert!(
        store
            .response("dev", "1")
            .await
            .expect("an answer")
            .is_some()
    );
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn many_responses_are_found_with_one_query_up_to_a_length(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let later = Timestamp::now().as_millisecond() + 60_000;
    let mut previous: Option<String> = None;
    for number in 0..20 {
        let id = number.to_string();
        for key in ["dev", "ops"] {
            let response = reply(previous.as_deref());
            let kept = store.insert_response(key, &id, response, later).await;
            kept.expect("kept");
        }
        previous = Some(id);
    }
    let sorted = |found: Vec<(String, StoredResponse)>| {
        let mut ids: Vec<u32> = found
            .iter()
            .map(|(id, _)| id.parse().expect("a number"))
            .collect();
        ids.sort_unstable();
        ids
    };
    let ids = ["3", "17", "no such", "3"].map(str::to_owned);
    let found = store.responses("dev", &ids, usize::MAX).await;
    assert_eq!(sorted(found.expect("an answer")), [3, 17]);
    let found = store.responses("other", &ids, usize::MAX).await;
    assert!(found.expect("an answer").is_empty());
    let thread = store.thread("dev", "9", usize::MAX).await;
    assert_eq!(
        sorted(thread.expect("an answer")),
        Vec::from_iter(0..10_u32)
    );
    // Beyond the limit nothing more is read.
    let limit = 3 * reply(None).bytes();
    let thread = store.thread("dev", "19", limit).await;
    assert_eq!(thread.expect("an answer").len(), 4);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn marks_are_stored_together_and_leave_responses_alone(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let later = Timestamp::now().as_millisecond() + 60_000;
    let kept = store.insert_response("dev", "1", reply(None), later).await;
    kept.expect("kept");
    let ids: Vec<String> = (1..=256).map(|number| number.to_string()).collect();
    for origin in [b"one", b"two"] {
        let marked = store.insert_marks("dev", &ids, origin, later).await;
        marked.expect("marked");
    }
    let found = store.response("dev", "1").await.expect("an answer");
    assert_eq!(found, Some(reply(None)));
    let found = store.responses("dev", &ids, usize::MAX).await;
    assert_eq!(found.expect("an answer").len(), 256);
    let mark = store.response("dev", "256").await.expect("an answer");
    let mark = mark.expect("a mark");
    assert!(mark.reply.is_empty() && mark.previous.is_none());
    // The last one that gave the id.
    assert_eq!(mark.input, b"two");
    assert_eq!(store.response("ops", "256").await.expect("an answer"), None);
}
